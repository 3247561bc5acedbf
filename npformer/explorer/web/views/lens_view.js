// @ts-check
// What the model would predict after each layer, and what each part of it adds to the logit of a token. Both
// are computed when they are shown.
import { attributionOf, layerLogits, layerVectors } from "../engine/lenses.js";
import { exponentials } from "../engine/attention.js";
import { argmax, rowOf } from "../engine/tape.js";
import { button, byId, choice, element, replaceContent, scroller, table } from "../drawing/page_elements.js";
import { follower, signedBar } from "../drawing/page_elements.js";
import { currentTheme, paletteOf, shadeOf } from "../drawing/colors.js";
import { numberText, percent, visibleText } from "../drawing/number_texts.js";
import { tokensOf } from "../state/axes.js";
import { blockOf, blockTitle } from "../state/sentences.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */
/** @typedef {import("../engine/lenses.js").Part} Part */

const MOST_PARTS = 14;

export class LensView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.position = 0;
    this.isTarget = false; // whether the logit explained is that of the right token
    this.table = scroller(t("Predictions of every layer"));
    this.parts = element("div");
    const about = t(
      "What the model would predict if it ended after each of its layers. Choose a prediction to see what " +
        "adds to it; choose it again for the step that changed it most.",
    );
    byId("lens").append(element("p", {}, about), this.table, this.parts);
  }

  render() {
    const { explorer } = this,
      { session, tape } = explorer,
      { model } = session;
    if (!model) return;
    const logits = layerLogits(model, session.edits, tape),
      read = tokensOf(session, "target"),
      words = session.head.target_words;
    const palette = paletteOf("weight", currentTheme(), 0.45),
      width = logits[0].length / read.length;
    this.position = Math.min(this.position, read.length - 1);
    /** @type {(rows: Float64Array, layer: number, place: number) => Node} */
    const cell = (rows, layer, place) => {
      const { exps, total } = exponentials(rows.subarray(place * width, (place + 1) * width)),
        best = argmax(exps),
        p = exps[best] / total;
      const text = `${visibleText(words[best])} ${percent(p)}`,
        properties = { styles: shadeOf(palette, p), className: "lens-cell" };
      return button(text, () => this.choose(place, layer), properties);
    };
    const rows = logits.map((rowsOfLayer, i) => [
      i ? t("layer {layer}", { layer: i - 1 }) : t("embedding"),
      ...read.map((_, place) => cell(rowsOfLayer, i - 1, place)),
    ]);
    const made = table(["", ...read.map(visibleText)], rows.reverse(), { className: "lens" });
    made.querySelector(`thead :nth-child(${this.position + 2})`).className = "chosen";
    replaceContent(this.table, made);
    this.renderParts(words);
  }

  /**
   * Choose a position; chosen again, open the step of the layer that adds most to the logit there.
   * @param {number} position
   * @param {number} layer   -1 for the embedding
   */
  choose(position, layer) {
    const { explorer } = this,
      isSame = position === this.position;
    this.position = position;
    const inLayer = layerVectors(explorer.tape)[layer + 1].path.split(".").slice(0, 2).join("."),
      own = this.partsOf().filter(({ step }) => layer >= 0 && step.path.startsWith(`${inLayer}.`));
    const most = own.sort((a, b) => Math.abs(b.value) - Math.abs(a.value))[0];
    if (!isSame || !most) explorer.changed();
    else explorer.follow(most.step, position * most.step.shape[1], "forward");
  }

  /** The token whose logit is explained: the right one, or that which the model predicts. */
  get token() {
    const { tape, session } = this.explorer,
      logits = /** @type {import("../engine/tape.js").Step} */ (tape.names.get("logits")),
      right = session.ids?.targetOut[this.position] ?? -1;
    return this.isTarget && right >= 0 ? right : argmax(rowOf(logits, this.position));
  }

  partsOf() {
    return attributionOf(this.explorer.tape, this.position, this.token);
  }

  /** @param {string[]} words */
  renderParts(words) {
    const { explorer } = this,
      parts = this.partsOf(),
      sum = parts.reduce((all, { value }) => all + value, 0);
    const largest = [...parts].sort((a, b) => Math.abs(b.value) - Math.abs(a.value)).slice(0, MOST_PARTS),
      most = Math.abs(largest[0].value) || 1,
      rest = sum - largest.reduce((all, { value }) => all + value, 0);
    const items = parts.filter((part) => largest.includes(part)).map((part) => this.item(part, most));
    const others = { count: parts.length - largest.length, rest: numberText(rest), sum: numberText(sum) };
    const token = visibleText(words[this.token]),
      read = visibleText(tokensOf(explorer.session, "target")[this.position]);
    const sides = /** @type {[boolean, string][]} */ (
      [[false, t("the model's prediction")], [true, t("the right token")]]);
    replaceContent(
      this.parts,
      element("h3", {}, t("What adds to the logit of “{token}” after “{read}”", { token, read })),
      choice(t("token"), sides, this.isTarget, (isTarget) => {
        this.isTarget = isTarget;
        explorer.changed();
      }),
      element("ul", { className: "terms parts" }, ...items),
      element("p", {}, t("{count} others add {rest}. Together they are the logit, {sum}.", others)),
    );
  }

  /** @type {(part: Part, most: number) => any} */
  item({ name, step, value }, most) {
    const { explorer } = this,
      title = blockTitle(blockOf(step.path), explorer.tape);
    const kinds = { bias: t("{title}, bias", { title }), set: t("{title}, values you set", { title }) },
      label =
        /** @type {Record<string, string>} */ (kinds)[name] ??
        (/^\d+$/.test(name) ? t("{title}, head {head}", { title, head: name }) : title);
    const show = () => explorer.follow(step, this.position * step.shape[1], "forward"),
      named = follower(label, show, t("Show how this number was computed")),
      number = element("span", {}, numberText(value));
    return element("li", {}, named, signedBar(value / most), element("span"), number);
  }
}
