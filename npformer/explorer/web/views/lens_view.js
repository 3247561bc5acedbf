// @ts-check
// What the model would predict after each layer, and what each part of it adds to the logit of a token. Both
// are computed when they are shown.
import { attributionOf, layerLogits, layerVectors } from "../engine/lenses.js";
import { likeliest } from "../engine/attention.js";
import { argmax, rowOf } from "../engine/tape.js";
import { button, byId, choice, element, replaceContent, scroller, table } from "../drawing/page_elements.js";
import { follower, signedBar } from "../drawing/page_elements.js";
import { tableSaves } from "../drawing/saves.js";
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
  }

  render() {
    const { explorer } = this,
      { session, tape } = explorer,
      { model } = session;
    if (!model) return;
    const logits = layerLogits(model, session.edits, tape),
      read = tokensOf(session, "target"),
      words = session.head.target_words,
      width = logits[0].length / read.length;
    const palette = paletteOf("weight", currentTheme(), 0.45);
    const guesses = read.map((_, place) =>
      logits.map((rows) => likeliest(rows.subarray(place * width, (place + 1) * width))),
    );
    this.position = Math.min(this.position, read.length - 1);
    /** @type {(guess: {best: number, p: number}, place: number, layer: number) => Node} */
    const cell = ({ best, p }, place, layer) => {
      const word = visibleText(words[best]),
        where = `${visibleText(read[place])}${t(", ")}${layerText(layer)}`;
      const choose = () => {
        this.position = place;
        explorer.changed();
      };
      const made = button(`${word} `, choose, {
        "aria-label": `${where}${t(": ")}${word} ${percent(p)}`,
        styles: shadeOf(palette, p),
        className: `lens-cell ${place === this.position && layer === logits.length - 1 ? "important" : ""}`,
        "aria-pressed": place === this.position,
      });
      made.append(element("small", {}, percent(p)));
      return made;
    };
    const head = [t("after"), ...logits.map((_, i) => layerText(i))],
      predicted = tokensOf(session, "predicted").map((token) => (token ? ` → ${visibleText(token)}` : "")),
      rows = guesses.map((list, place) => [
        visibleText(read[place]) + predicted[place],
        ...list.map((guess, layer) => cell(guess, place, layer)),
      ]);
    const caption = t("Predictions of every layer"),
      made = table(head, rows, { className: "lens", caption });
    const saves = tableSaves(
      "predictions",
      made,
      () => `${byId("source-text").textContent} ${byId("lens-told").textContent}`,
    );
    replaceContent(byId("lens-table"), scroller(caption, made), saves);
    this.renderParts(words);
    this.tell(guesses[this.position], words);
  }

  /**
   * Say when the prediction of the chosen position is decided.
   * @type {(guesses: {best: number, p: number}[], words: string[]) => void}
   */
  tell(guesses, words) {
    const { explorer } = this,
      { best } = guesses[guesses.length - 1],
      decided = guesses.findLastIndex((guess) => guess.best !== best) + 1; // from this layer on it stays
    const values = {
      read: visibleText(tokensOf(explorer.session, "target")[this.position]),
      token: visibleText(words[best]),
      layer: layerText(decided),
      count: guesses.length - 1,
      before: visibleText(words[guesses[decided - 1]?.best]),
    };
    const text =
      decided === 0
        ? t("After “{read}”, “{token}” is the most probable token from the embedding on.", values)
        : decided === guesses.length - 1
          ? t(
              "After “{read}”, “{token}” becomes most probable in {layer}, the last of {count} (counted " +
                "from 0).",
              values,
            )
          : t("After “{read}”, “{token}” is the most probable token from {layer} on.", values);
    const before = decided === 0 ? "" : t("Before, it was “{before}”.", values);
    const most = this.partsOf().reduce((a, b) => (Math.abs(b.value) > Math.abs(a.value) ? b : a));
    const show = () => this.show(most);
    explorer.mark(most.step.path);
    replaceContent(
      byId("lens-told"),
      `${text} ${before} `,
      button(t("Show the step that adds most: {label}", { label: this.labelOf(most) }), show),
    );
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
    const items = largest.map((part) => this.item(part, most));
    const others = { count: parts.length - largest.length, rest: numberText(rest), sum: numberText(sum) };
    const ofLayers = layerVectors(explorer.tape).map((_, i) => {
      const inLayer = parts.filter(({ step }) => Number(/\.(\d+)\./.exec(step.path)?.[1] ?? -1) === i - 1);
      const total = inLayer.reduce((all, { value }) => all + value, 0);
      return `${i ? layerText(i) : t("embedding and output")} ${numberText(total)}`;
    });
    const token = visibleText(words[this.token]),
      read = visibleText(tokensOf(explorer.session, "target")[this.position]);
    const sides = /** @type {[boolean, string][]} */ ([
      [false, t("the model's prediction")],
      [true, t("the token of the target")],
    ]);
    replaceContent(
      byId("lens-parts"),
      element("h3", {}, t("What adds to the logit of “{token}” after “{read}”", { token, read })),
      choice(t("token"), sides, this.isTarget, (isTarget) => {
        this.isTarget = isTarget;
        explorer.changed();
      }),
      element("ul", { className: "terms parts" }, ...items),
      element(
        "p",
        {},
        t("{count} smaller parts add {rest}. All parts together are the logit, {sum}: ", others),
        ofLayers.join(t(", ")),
      ),
    );
  }

  /** @param {Part} part */
  labelOf({ name, step }) {
    const title = blockTitle(blockOf(step.path), this.explorer.tape),
      kinds = { bias: t("{title}, bias", { title }), set: t("{title}, values you set", { title }) };
    return (
      /** @type {Record<string, string>} */ (kinds)[name] ??
      (/^\d+$/.test(name) ? t("{title}, head {head}", { title, head: name }) : title)
    );
  }

  /** Show the row of a part and its entry that adds most, and say what both add. @param {Part} part */
  show({ step, value, dimension, largest }) {
    const { explorer, position, token } = this;
    const text = t(
      "This part adds {value} to the logit of “{token}” after “{read}”. The largest share, {largest}, " +
        "comes from dimension {dimension}, which is chosen here.",
      {
        value: numberText(value),
        token: visibleText(explorer.session.head.target_words[token]),
        read: visibleText(tokensOf(explorer.session, "target")[position]),
        dimension,
        largest: numberText(largest),
      },
    );
    explorer.memory.followed = { step, text };
    explorer.follow(step, position * step.shape[1] + dimension, "forward");
  }

  /** @type {(part: Part, most: number) => any} */
  item(part, most) {
    const { value } = part,
      named = follower(this.labelOf(part), () => this.show(part), t("Show how this number was computed")),
      number = element("span", {}, numberText(value));
    return element("li", {}, named, signedBar(value / most), element("span"), number);
  }
}

/** Return the name of a row of predictions: 0 stands for the embedding. @param {number} i */
function layerText(i) {
  return i ? t("layer {layer}", { layer: i - 1 }) : t("embedding");
}
