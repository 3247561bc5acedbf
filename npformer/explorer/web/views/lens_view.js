// @ts-check
// What the model would predict after each layer, and what each part of it adds to the logit of a token.
import { button, byId, choice, element, replaceContent, scroller, table } from "../drawing/page_elements.js";
import { follower, signedBar } from "../drawing/page_elements.js";
import { tableSaves } from "../drawing/saves.js";
import { currentTheme, paletteOf, shadeOf } from "../drawing/colors.js";
import { numberText, percent, visibleText } from "../drawing/number_texts.js";
import { tokensOf } from "../state/axes.js";
import { everyPrediction } from "../state/predictions.js";
import { blockOf, blockTitle } from "../state/sentences.js";
import { readingPlace } from "./overview_sentence.js";
import { t } from "../words/text.js";

const MOST_PARTS = 14;

export class LensView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    // the first token that is to be predicted: of a text with gaps, that of the first gap
    const first = Math.max(0, tokensOf(explorer.session, "predicted").findIndex(Boolean)),
      [position, isTarget] = (explorer.memory.shared?.lens ?? "").split("."); // what an address says
    this.position = /^\d+$/.test(position) ? Number(position) : first;
    /** @type {import("../state/predictions.js").Predictions} those that are shown */
    this.found = /** @type {any} */ (null);
    this.isTarget = isTarget === "1"; // whether the logit explained is that of the right token
  }

  render() {
    const { explorer } = this,
      { session } = explorer;
    this.found = everyPrediction(session);
    const { guesses, words } = this.found,
      read = tokensOf(session, "target"),
      last = guesses[0].length - 1,
      palette = paletteOf("weight", currentTheme(), 0.45);
    this.position = Math.min(this.position, read.length - 1);
    explorer.remember("lens", `${this.position}.${Number(this.isTarget)}`);
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
        className: `lens-cell ${place === this.position && layer === last ? "important" : ""}`,
        "aria-pressed": place === this.position,
      });
      made.append(element("small", {}, percent(p)));
      return made;
    };
    const head = [t("after"), ...guesses[0].map((_, i) => layerText(i))],
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
    const parts = this.found.parts(this.position, this.token);
    parts.sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
    replaceContent(byId("lens-parts"), ...(parts.length ? this.explained(parts, words) : []));
    this.tell(guesses[this.position], words, parts[0]);
  }

  /**
   * Say when the prediction of the chosen position is decided, and which part adds most to its logit.
   * @type {(guesses: {best: number, p: number}[], words: string[], most?: Part) => void}
   */
  tell(guesses, words, most) {
    const { explorer } = this,
      { best } = guesses[guesses.length - 1],
      decided = guesses.findLastIndex((guess) => guess.best !== best) + 1; // from this layer on it stays
    const values = {
      place: this.place,
      token: visibleText(words[best]),
      layer: layerText(decided),
      count: guesses.length - 1,
      before: visibleText(words[guesses[decided - 1]?.best]),
    };
    const text =
      decided === 0
        ? t("{place}, “{token}” is the most probable token from the embedding on.", values)
        : decided === guesses.length - 1
          ? t(
              "{place}, “{token}” becomes most probable in {layer}, the last of {count} (counted from 0).",
              values,
            )
          : t("{place}, “{token}” is the most probable token from {layer} on.", values);
    const before = decided === 0 ? "" : t("Before, it was “{before}”.", values);
    replaceContent(byId("lens-told"), `${text} ${before} `);
    if (!most) return;
    explorer.mark(most.step.path);
    const label = t("Show the step that adds most: {label}", { label: this.labelOf(most) });
    byId("lens-told").append(button(label, () => this.show(most)));
  }

  /** The token whose logit is explained: the right one, or that which the model predicts. */
  get token() {
    const { found, position, isTarget } = this,
      right = this.explorer.session.ids?.targetOut[position] ?? -1;
    return isTarget && right >= 0 ? right : found.predicted(position);
  }

  get place() {
    const { session } = this.explorer;
    return readingPlace(session, tokensOf(session, "target")[this.position]);
  }

  /**
   * Return the list of the parts that add to the logit of the token.
   * @type {(parts: Part[], words: string[]) => any[]}
   */
  explained(parts, words) {
    const { explorer } = this,
      sum = parts.reduce((all, { value }) => all + value, 0),
      logit = this.found.logits?.[this.position];
    const largest = parts.slice(0, MOST_PARTS),
      most = Math.abs(largest[0].value) || 1,
      rest = sum - largest.reduce((all, { value }) => all + value, 0);
    const items = largest.map((part) => this.item(part, most));
    const others = { rest: numberText(rest), sum: numberText(sum), logit: numberText(logit ?? NaN) };
    const ofLayers = this.found.guesses[0].map((_, i) => {
      const inLayer = parts.filter(({ step }) => Number(/\.(\d+)\./.exec(step.path)?.[1] ?? -1) === i - 1);
      const total = inLayer.reduce((all, { value }) => all + value, 0);
      return `${i ? layerText(i) : t("embedding and output")} ${numberText(total)}`;
    });
    const values = { token: visibleText(words[this.token]), place: this.place };
    const sides = /** @type {[boolean, string][]} */ ([
      [false, t("the model's prediction")],
      [true, t("the token of the target")],
    ]);
    const choose = (/** @type {boolean} */ isTarget) => {
      this.isTarget = isTarget;
      explorer.changed();
    };
    return [
      element("h3", {}, t("{place}: what adds to the logit of “{token}”", values)),
      explorer.session.isLive ? choice(t("token"), sides, this.isTarget, choose) : "",
      element("ul", { className: "terms parts" }, ...items),
      element(
        "p",
        {},
        parts.length > largest.length ? t("The rest adds {rest}. ", others) : "",
        logit === undefined
          ? t("All parts together are the logit, {sum}: ", others)
          : t(
              "All parts together are {sum}. The head that reads their sum is not linear, so that the " +
                "logit is another number, {logit}: ",
              others,
            ),
        ofLayers.join(t(", ")),
      ),
    ];
  }

  /** @param {Part} part */
  labelOf({ name, step }) {
    const { tape } = this.explorer,
      block = blockOf(step.path),
      title = blockTitle(block, tape);
    const kinds = {
      embedding: blockTitle(step.path.split(".")[0], tape),
      bias: t("{title}, bias", { title }),
      biases: blockTitle(block.replace(/\w+$/, "biases"), tape), // of the whole layer
      set: t("{title}, values you set", { title }),
    };
    return (
      /** @type {Record<string, string>} */ (kinds)[name] ??
      (/^\d+$/.test(name) ? t("{title}, head {head}", { title, head: name }) : title)
    );
  }

  /** Show the row of a part and its entry that adds most, and say what both add. @param {Part} part */
  show({ step, value, dimension, largest }) {
    const { explorer, position, token } = this;
    const adds = t("{place}, this part adds {value} to the logit of “{token}”.", {
      place: this.place,
      value: numberText(value),
      token: visibleText(this.found.words[token]),
    });
    const share = t("The largest share, {largest}, comes from dimension {dimension}, which is chosen here.", {
      dimension,
      largest: numberText(largest ?? NaN),
    });
    const text = largest === undefined ? adds : `${adds} ${share}`;
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
