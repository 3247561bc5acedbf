// @ts-check
// Training: steps until the model gives another translation, or one step of gradient descent or Adam; which
// weights moved most, and how the probabilities of the target changed.
import { button, byId, choice, replaceContent, scroller, table, tell } from "../drawing/page_elements.js";
import { rowOf } from "../engine/tape.js";
import { blockOf } from "../state/sentences.js";
import { comparison, withBar } from "./probability_table.js";
import { numberText } from "../drawing/number_texts.js";
import { placeText, vocabularyAxis } from "../state/axes.js";
import { exchangedWords, sentenceField } from "./sentence_field.js";
import { ReaderError } from "../state/reader_error.js";
import { counted, t } from "../words/text.js";

/** @typedef {import("../engine/optimizers.js").Parameters} Parameters */

const LARGEST_SHOWN = 10;
const OPTIMIZERS = /** @type {[string, string][]} */ ([
  ["gradient descent", t("gradient descent")],
  ["adam", t("Adam")],
]);

const MOST_STEPS = 60; // of one press on Train
const TRAIN_RATE = 0.001; // of Adam
const PAUSE = 150; // ms after each of the first steps, so that a reader sees the words change

export class TrainingView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.optimizer = "gradient descent";
    this.isTraining = false; // whether Train goes on
    this.source = ""; // the text for which a translation was proposed
    this.listed = 0; // the number of training steps whose moves are listed
    const { task, ids } = explorer.session;
    this.rate = byId("teach-rate");
    this.rate.value = task?.rate;
    this.goal = sentenceField(explorer, "teach-target", "target");
    this.goal.addEventListener("input", () => (byId("teach-told").textContent = ""));
    this.goal.addEventListener("change", () => this.tellExchanged());
    byId("teach-form").hidden = !ids?.source.length;
    byId("teach-form").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (this.isTraining) this.isTraining = false;
      else this.train();
    });
    byId("teach-forget").addEventListener("click", () => this.forgetAll());
    byId("teach-step").addEventListener("click", () => this.take());
    byId("teach-undo").addEventListener("click", () => this.undo());
  }

  render() {
    const { explorer } = this,
      { session } = explorer;
    explorer.mark("loss");
    const before = session.log.length ? session.origin : null;
    replaceContent(
      byId("teach-optimizer"),
      choice(t("optimizer"), OPTIMIZERS, this.optimizer, (name) => this.chooseOptimizer(name)),
    );
    byId("teach-undo").disabled = !session.past.length;
    byId("teach-train").textContent = this.isTraining ? t("Stop") : t("Train");
    if (this.source !== session.texts.source) {
      this.source = session.texts.source;
      this.goal.value = session.isOwnOutput ? this.otherTarget() : session.texts.target;
      this.goal.dispatchEvent(new Event("input"));
    }
    this.tellExchanged();
    replaceContent(byId("teach-result"), before ? comparison(explorer, before.summary, withBar) : "");
    if (session.log.length !== this.listed) this.renderMoved(before?.parameters);
    this.listed = session.log.length;
  }

  /** Say which words of the model's translation the reader exchanges for others, or does not find there. */
  tellExchanged() {
    const { output: written, task } = this.explorer.session,
      exchanged = exchangedWords(written, this.goal.value),
      values = { written, exchanged },
      told = exchanged && t("The model writes “{written}”. “Train” teaches it: {exchanged}", values);
    tell(byId("teach-exchanged"), task?.about("target", this.goal.value)?.message ?? told);
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

  /** Make steps of Adam towards the translation that the reader wrote, until the model gives it. */
  async train() {
    const { explorer } = this,
      { session } = explorer,
      goal = this.goal.value.trim();
    byId("message").textContent = "";
    try {
      if (goal && goal !== session.texts.target) session.aim(goal);
    } catch (error) {
      if (!(error instanceof ReaderError)) throw error;
      byId("message").textContent = error.message;
      return;
    }
    const { ids } = session,
      wanted = session.task?.textOf(ids?.targetOut ?? [], "target");
    let count = 0;
    this.isTraining = true;
    do {
      session.optimize(TRAIN_RATE, "adam");
      session.generate();
      count++;
      this.isTraining &&= count < MOST_STEPS && session.output !== wanted && explorer.view === "training";
      const steps = counted(count, t("{count} step"), t("{count} steps")),
        values = { count, steps, most: MOST_STEPS, rate: TRAIN_RATE, output: session.output };
      const told = this.isTraining
        ? t("Step {count} of {most} at most, of Adam with learning rate {rate}: “{output}”.", values)
        : session.output === wanted
          ? t("Learned after {steps}: the model now writes “{output}”.", values)
          : t("After {steps}, the model still writes “{output}”: press Train to go on.", values);
      tell(byId("teach-told"), told);
      explorer.renew();
      await new Promise((resolve) => setTimeout(resolve, count < 10 ? PAUSE : 0));
    } while (this.isTraining && session.ids === ids);
    this.isTraining = false;
    explorer.changed();
  }

  /** Go back to the parameters, the target and the loss before all training steps; what was typed stays. */
  forgetAll() {
    const { explorer } = this;
    this.isTraining = false;
    explorer.session.forget();
    this.afterChange();
    const told = t(
      "Forgotten: the weights are those of the beginning, and the model writes “{output}” again.",
      explorer.session,
    );
    tell(byId("teach-told"), told);
  }

  /** @param {string} name */
  chooseOptimizer(name) {
    this.optimizer = name;
    this.rate.value = name === "adam" ? "0.001" : this.explorer.session.task?.rate;
    this.render();
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
    this.afterChange();
  }

  undo() {
    this.explorer.session.undo();
    this.afterChange();
  }

  afterChange() {
    byId("teach-told").textContent = "";
    this.explorer.renew();
    this.explorer.generateLater();
  }

  /**
   * List the weights that moved most in the training steps.
   * @param {Parameters | undefined} before   the parameters before all of them, if there is one
   */
  renderMoved(before) {
    byId("teach-moved").replaceChildren();
    this.explorer.memory.moved = null;
    if (!before) return;
    const now = /** @type {any} */ (this.explorer.session.model).parameters;
    const moved = largestMoves(before, now);
    this.explorer.memory.moved = new Set(moved.map(({ name }) => blockOf(name)));
    const rows = moved.map(({ name, index, old, value }) => [
      this.moveButton(name, index),
      ...[value - old, old, value].map(numberText),
    ]);
    const head = [t("parameter"), t("change"), t("before"), t("after")],
      caption = t("The weights that moved most"),
      isEqual = moved[0].size < 1.01 * moved[moved.length - 1].size;
    byId("teach-moved").replaceChildren(
      isEqual ? t("Adam’s first steps move all weights by about the learning rate.") : "",
      scroller(caption, table(head, rows, { caption })),
    );
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
