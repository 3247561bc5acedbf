// @ts-check
// A gradient checked by hand: an entry is nudged, and the slope of the loss stands beside the gradient.
import { byId, choice, element, replaceContent, table, tell } from "../drawing/page_elements.js";
import { Picture } from "../drawing/picture.js";
import { entryForm } from "./entry_form.js";
import { numberText, scientific } from "../drawing/number_texts.js";
import { drawSlope } from "./slope_picture.js";
import { t } from "../words/text.js";

const POINTS = 33;
const REACHES = [0.01, 0.1, 1, 10];

export class SlopeView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.reach = 1;
    this.nudge = 0;
    /** @type {{step: Step, index: number} | null} */
    this.entry = null;
    /** @type {[number, number][]} pairs of a nudge and its loss */
    this.curve = [];
    /** @type {[number, number] | null} the nudge of the slider, and its loss */
    this.nudged = null;
    this.known = ""; // what the curve was computed for
    this.form = entryForm(
      explorer,
      "slope-of",
      t("Check this entry"),
      (step, index) => this.choose(step, index),
      () => proposalOf(explorer),
    );
    this.form.form.addEventListener("change", () => this.hideOther());
    this.form.form.dataset.eager = "yes";
    this.slider = byId("slope-slider");
    this.slider.addEventListener("input", () => {
      this.nudge = Number(this.slider.value) * this.reach;
      this.renderNudge();
    });
    this.reaches = element("span");
    this.told = element("p", { "aria-live": "polite" });
    this.result = element("div");
    this.id = "slope-of-the-loss";
    this.picture = new Picture(this);
    this.outcome = element("div", {}, this.told, this.picture.root, this.result);
    byId("slope-nudge").before(this.form.root);
    byId("slope-nudge").append(this.reaches);
    byId("slope").append(this.outcome);
  }

  render() {
    if (!this.entry) this.restore();
    this.form.render();
    const pairs = REACHES.map((reach) => /** @type {[number, string]} */ ([reach, `± ${reach}`]));
    replaceContent(
      this.reaches,
      choice(t("reach of the slider"), pairs, this.reach, (reach) => {
        this.reach = reach;
        this.explorer.changed();
      }),
    );
    this.compute();
  }

  /** Show what the address says: the entry, the nudge and the range. */
  restore() {
    const [path, place, nudge, range] = (this.explorer.memory.shared?.slope ?? "").split(":");
    const step = this.explorer.tape.names.get(path),
      index = Number(place || NaN);
    if (!step || !(index in step.data)) return;
    this.form.show(step, index);
    this.entry = { step, index };
    this.reach = REACHES.find((reach) => String(reach) === range) ?? this.reach;
    this.slider.value = String(Number(nudge) / this.reach || 0);
  }

  /** @type {(step: Step, index: number) => void} */
  choose(step, index) {
    this.entry = { step, index };
    this.outcome.hidden = false;
    this.nudge = 0;
    this.slider.value = "0";
    this.compute();
  }

  /** Hide what was found for an entry that the form no longer names. */
  hideOther() {
    const named = /** @type {any} */ (this.form.chosen());
    this.outcome.hidden = !(named.step === this.step && named.index === this.entry?.index);
  }

  /** The step as it is on the present tape. */
  get step() {
    return this.entry && this.explorer.tape.names.get(this.entry.step.path);
  }

  /** @param {number} nudge */
  lossAt(nudge) {
    const step = /** @type {Step} */ (this.step),
      { index } = /** @type {any} */ (this.entry);
    return this.explorer.session.lossWith(step.path, index, step.data[index] + nudge);
  }

  /** Compute the curve, if it is not known. */
  compute() {
    const { step, entry, reach } = this,
      { session } = this.explorer;
    if (!step || !entry) return;
    this.explorer.mark(step.path);
    const known = `${step.path} ${entry.index} ${step.data[entry.index]} ${reach} ${session.loss}`;
    if (known !== this.known) {
      this.known = known;
      this.curve = Array.from({ length: POINTS }, (_, i) => {
        const part = (2 * i) / (POINTS - 1) - 1,
          nudge = reach * part * Math.abs(part); // more points near 0, where the tangent touches the curve
        return [nudge, this.lossAt(nudge)];
      });
      this.nudge = Number(this.slider.value) * reach;
      this.renderSlope(step, entry.index);
    }
    this.renderNudge();
  }

  /** @type {(step: Step, index: number) => void} */
  renderSlope(step, index) {
    const small = 1e-4 * Math.max(1, Math.abs(step.data[index])),
      gradient = step.grad[index];
    const slope = (this.lossAt(small) - this.lossAt(-small)) / (2 * small);
    const relative = Math.abs(slope - gradient) / Math.max(Math.abs(slope), Math.abs(gradient), 1e-12);
    const rows = [
      [t("Slope of the loss, (loss(x + h) − loss(x − h)) / 2h"), scientific(slope, 6)],
      [t("Gradient by backpropagation"), scientific(gradient, 6)],
      [t("Difference, relative to the larger one"), scientific(relative, 1)],
    ];
    const verdict =
      Math.abs(slope - gradient) < 1e-8 || relative < 1e-4
        ? t("The gradient agrees with the slope.")
        : t("The gradient differs from the slope: the loss bends within h, as at the kink of a ReLU.");
    replaceContent(
      this.result,
      table([], rows),
      element("p", { textContent: `h = ${small.toPrecision(2)}. ${verdict}`, className: "verdict" }),
    );
  }

  renderNudge() {
    const { step, entry, nudge } = this;
    if (!step || !entry) return;
    const { loss } = this.explorer.session,
      now = nudge ? this.lossAt(nudge) : loss;
    const told = t(
      "The entry is {value}, nudged by {nudge}. The loss goes from {loss} to {now}; the gradient alone " +
        "predicts {predicted}.",
      {
        value: numberText(step.data[entry.index]),
        nudge: numberText(nudge),
        loss: loss.toFixed(6),
        now: now.toFixed(6),
        predicted: (loss + step.grad[entry.index] * nudge).toFixed(6),
      },
    );
    tell(this.told, told);
    this.nudged = [nudge, now];
    this.explorer.remember("slope", [step.path, entry.index, nudge, this.reach].join(":"));
    this.picture.draw(
      t("The loss for nudges from {low} to {high}, and the tangent. {told}", {
        low: -this.reach,
        high: this.reach,
        told,
      }),
    );
  }

  /** @param {number} width */
  layout(width) {
    return { width: Math.min(width, 760), height: 280 };
  }

  /** @type {import("../drawing/surfaces.js").Drawing} */
  draw(surface, theme) {
    const { curve, step, entry, reach, nudged: point } = this;
    if (!step || !entry || !point) return;
    const { loss } = this.explorer.session,
      gradient = step.grad[entry.index];
    drawSlope(surface, theme, this.picture.size, { curve, reach, point, loss, gradient });
  }
}

const VISIBLE = 1e-3; // of the loss: by this the loss should change when the entry changes by 1

/**
 * Propose the chosen number of the step if it is pinned or if the loss depends on it visibly. Otherwise, and
 * at the loss's own steps, whose gradients are all alike, propose the weight with the largest gradient.
 * @param {Explorer} explorer
 */
function proposalOf({ result, index, isPinned, session, tape }) {
  let best = { step: result, index };
  const isVisible = Math.abs(result.grad[index]) >= VISIBLE * session.loss;
  if (!result.path.startsWith("loss") && (isPinned || isVisible)) return best;
  let largest = 0;
  for (const step of tape.steps) {
    if (step.op !== "parameter" || step.shape.length !== 2) continue;
    step.grad.forEach((gradient, i) => {
      if (Math.abs(gradient) <= largest) return;
      largest = Math.abs(gradient);
      best = { step, index: i };
    });
  }
  return best;
}
