// @ts-check
// One step of gradient descent or Adam: which weights moved most, and how the probabilities of the right
// tokens changed.
import { button, byId, choice, element, replaceContent, scroller, table } from "../drawing/page_elements.js";
import { textInput, titled } from "../drawing/page_elements.js";
import { rowOf } from "../engine/tape.js";
import { Picture } from "../drawing/picture.js";
import { blockOf } from "../state/sentences.js";
import { comparison } from "./probability_table.js";
import { numberText, tickTexts } from "../drawing/number_texts.js";
import { placeText, vocabularyAxis } from "../state/axes.js";
import { ReaderError } from "../state/reader_error.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */
/** @typedef {import("../engine/optimizers.js").Parameters} Parameters */

const LARGEST_SHOWN = 10;
const OPTIMIZERS = /** @type {[string, string][]} */ ([
  ["gradient descent", t("gradient descent")],
  ["adam", t("Adam")],
]);

export class TrainingView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.optimizer = "gradient descent";
    this.isRestored = false; // whether the address was read
    /** @type {any} the training step whose moves are listed */
    this.listed = null;
    /** @type {number[]} */
    this.losses = [];
    const { task } = explorer.session;
    const label = { "aria-label": t("learning rate"), inputMode: "decimal" };
    this.rate = textInput({ value: task?.rate, size: 8, ...label });
    this.rate.addEventListener("change", () => this.remember());
    this.goal = textInput({ id: "teach-target", className: "wide" });
    this.forget = button(t("Forget"), () => this.forgetAll());
    this.form = element(
      "form",
      { className: "teaching", hidden: !explorer.session.ids?.source.length },
      element("label", {}, t("Teach it the translation "), this.goal),
      element("button", { className: "teach", textContent: t("Train") }),
      this.forget,
    );
    this.form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.train();
    });
    this.controls = element("div", { className: "controls" });
    this.moved = element("div");
    this.result = element("div", { "aria-live": "polite" });
    this.id = "losses";
    this.picture = new Picture(this);
    const about = t(
      "A training step subtracts a part of its gradient from each parameter. Here it is made {learned}.",
      { learned: task?.words.learned },
    );
    const losses = titled("div", t("Loss after each step"), this.picture.root, this.moved);
    byId("training").append(
      element("p", {}, about),
      this.form,
      this.controls,
      element("div", { className: "beside" }, element("div", {}, this.result), losses),
    );
  }

  render() {
    const { explorer } = this,
      { session } = explorer;
    this.restore();
    explorer.mark("loss");
    const last = session.past[session.past.length - 1];
    replaceContent(
      this.controls,
      choice(t("optimizer"), OPTIMIZERS, this.optimizer, (name) => this.chooseOptimizer(name)),
      element("label", {}, t("learning rate "), this.rate),
      button(t("Take one step"), () => this.take(), { className: "main" }),
      button(t("Undo"), () => this.undo(), { disabled: !session.past.length }),
    );
    this.forget.disabled = !session.origin;
    if (!this.goal.value && session.isOwnOutput && !this.form.hidden) this.goal.value = this.otherTarget();
    replaceContent(this.result, ...(last ? [comparison(explorer, (session.origin ?? last).summary)] : []));
    if (last !== this.listed) this.renderMoved(last?.parameters);
    this.listed = last;
    this.losses = [...session.past.map(({ loss }) => loss), session.loss];
    this.picture.draw(
      t("The loss after each step: {losses}.", { losses: this.losses.map(numberText).join(", ") }),
    );
  }

  /** Return a translation that the model does not give: its last word is the next probable other word. */
  otherTarget() {
    const { task, ids, tape, head } = this.explorer.session,
      words = head.target_words,
      place = Math.max(0, (ids?.targetOut.length ?? 0) - 2);
    if (!task || !ids) return "";
    const row = rowOf(/** @type {import("../engine/tape.js").Step} */ (tape.names.get("logits")), place);
    const best = [...row.keys()]
      .filter((id) => id >= task.specials && !words[id].startsWith(words[ids.targetOut[place]].slice(0, 3)))
      .reduce((a, b) => (row[b] > row[a] ? b : a));
    return task.withToken(ids, "target", place, best).texts.target;
  }

  /** Make a step of Adam towards the translation that the reader wrote. */
  train() {
    const { session } = this.explorer,
      goal = this.goal.value.trim();
    try {
      if (goal && goal !== session.texts.target) session.setSentence(session.texts.source, goal);
    } catch (error) {
      if (!(error instanceof ReaderError)) throw error;
      byId("message").textContent = error.message;
      return;
    }
    if (this.optimizer !== "adam") this.chooseOptimizer("adam");
    this.take();
  }

  /** Go back to the parameters before all training steps. */
  forgetAll() {
    const { session } = this.explorer;
    if (session.origin) session.restart(session.origin.parameters);
    this.afterChange();
  }

  /** @param {string} name */
  chooseOptimizer(name) {
    this.optimizer = name;
    this.rate.value = name === "adam" ? "0.001" : this.explorer.session.task?.rate;
    this.remember();
    this.render();
  }

  /** Write the optimizer and the learning rate into the address. */
  remember() {
    this.explorer.remember("optimizer", `${this.optimizer}:${this.rate.value}`);
  }

  /** Show the optimizer and the learning rate of the address, once. */
  restore() {
    const [name, rate] = (this.explorer.memory.shared?.optimizer ?? "").split(":");
    if (this.isRestored || !rate || !OPTIMIZERS.some(([known]) => known === name)) return;
    this.isRestored = true;
    this.optimizer = name;
    this.rate.value = rate;
  }

  take() {
    const { explorer } = this,
      { session } = explorer,
      rate = Number(this.rate.value.replace(",", "."));
    if (!(rate > 0) || !Number.isFinite(rate)) {
      byId("message").textContent = t(
        "The learning rate “{rate}” is not a positive number: write one such as 0.05.",
        { rate: this.rate.value },
      );
      return;
    }
    byId("message").textContent = "";
    session.optimize(rate, /** @type {any} */ (this.optimizer));
    this.remember();
    this.afterChange();
  }

  undo() {
    this.explorer.session.undo();
    this.afterChange();
  }

  afterChange() {
    this.explorer.renew();
    this.explorer.generateLater();
  }

  /**
   * List the weights that moved most in the last training step.
   * @param {Parameters | undefined} before   the parameters before it, if there is one
   */
  renderMoved(before) {
    this.moved.replaceChildren();
    if (!before) return;
    const now = /** @type {any} */ (this.explorer.session.model).parameters;
    const moved = largestMoves(before, now);
    this.explorer.memory.moved = new Set(moved.map(({ name }) => blockOf(name)));
    const rows = moved.map(({ name, index, old, value }) => [
      this.moveButton(name, index),
      ...[old, value, value - old].map(numberText),
    ]);
    const head = [t("parameter"), t("before"), t("after"), t("change")],
      caption = t("The weights that moved most");
    this.moved.replaceChildren(scroller(caption, table(head, rows, { caption })));
  }

  /**
   * Make the button that shows how the gradient of a weight is computed, under a name that says what it is.
   * @param {string} name
   * @param {number} index
   */
  moveButton(name, index) {
    const { explorer } = this,
      step = /** @type {import("../engine/tape.js").Step} */ (explorer.tape.names.get(name)),
      place = placeText(explorer.session, step, index);
    const isEmbedding = vocabularyAxis(explorer.session, step, 1) !== null;
    const text = isEmbedding ? t("embedding of {place}", { place }) : `${name}, ${place}`;
    return button(text, () => explorer.follow(step, index, "backward"), {
      className: "follow",
      title: t("{name}: show how its gradient is computed", { name }),
    });
  }

  /** @param {number} width */
  layout(width) {
    return { width: Math.min(width, 560), height: 150 };
  }

  /** @type {import("../drawing/surfaces.js").Drawing} */
  draw(surface, theme) {
    const { losses } = this,
      { width, height } = this.picture.size;
    const high = Math.max(...losses),
      low = Math.min(...losses, high - 1e-9);
    const x = (/** @type {number} */ i) => 64 + (i / Math.max(1, losses.length - 1)) * (width - 84);
    const y = (/** @type {number} */ loss) => 14 + ((high - loss) / (high - low)) * (height - 44);
    surface.line(56, height - 22, width - 8, height - 22, theme.faint);
    const points = losses.map((loss, i) => /** @type {[number, number]} */ ([x(i), y(loss)]));
    surface.path(points, theme.tints[0], 2.5);
    losses.forEach((loss, i) => surface.rectangle(x(i) - 3, y(loss) - 3, 6, 6, theme.tints[0]));
    const marked = [...new Set([high, losses[losses.length - 1]])],
      ticks = tickTexts(marked);
    for (const [i, loss] of marked.entries()) {
      surface.text(52, y(loss), ticks[i], { size: 11, color: theme.faint, align: "right" });
    }
    const style = { size: 11.5, color: theme.faint, align: /** @type {const} */ ("center") };
    surface.text(width / 2, height - 9, t("training steps"), style);
  }
}

/**
 * Return the entries of all parameters that changed most.
 * @param {Parameters} before
 * @param {Parameters} now
 */
function largestMoves(before, now) {
  /** @type {{name: string, index: number, shape: number[], old: number, value: number, size: number}[]} */
  let best = [];
  for (const [name, { shape, data }] of now) {
    const old = /** @type {any} */ (before.get(name)).data;
    for (let index = 0; index < data.length; index++) {
      const size = Math.abs(data[index] - old[index]);
      if (best.length === LARGEST_SHOWN && size <= best[best.length - 1].size) continue;
      best.push({ name, index, shape, old: old[index], value: data[index], size });
      best.sort((a, b) => b.size - a.size);
      best = best.slice(0, LARGEST_SHOWN);
    }
  }
  return best;
}
