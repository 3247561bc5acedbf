// @ts-check
// A finder of heads: for a chosen token, the weight with which each head of each layer attends from it, or to
// it, the largest first.
import { byId, element, follower, replaceContent } from "../drawing/page_elements.js";
import { numberText, visibleText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

/** A token of one side, or null for any token. @typedef {{side: string, place: number} | null} Choice */

/**
 * The largest weight of a head between tokens that the reader chose.
 * @typedef {{sublayer: Sublayer, head: number, query: number, key: number, weight: number}} Found
 */

/**
 * Return for each head its largest weight between the chosen tokens, the largest weight first.
 * @param {Sublayer[]} sublayers
 * @param {Choice} from   the query
 * @param {Choice} to     the key
 * @returns {Found[]}
 */
export function findHeads(sublayers, from, to) {
  const places = (/** @type {Choice} */ chosen, /** @type {string[]} */ tokens) =>
    chosen ? [chosen.place].filter((place) => place < tokens.length) : [...tokens.keys()];
  const fits = (/** @type {Choice} */ chosen, /** @type {string} */ side) => !chosen || chosen.side === side;
  const found = sublayers.flatMap((sublayer) => {
    const { weights, queries, keys, querySide, keySide } = sublayer;
    if (!fits(from, querySide) || !fits(to, keySide)) return [];
    const cells = places(from, queries).flatMap((query) => places(to, keys).map((key) => ({ query, key })));
    if (!cells.length) return [];
    return Array.from({ length: weights.shape[0] }, (_, head) => {
      const start = head * queries.length * keys.length;
      return cells
        .map(({ query, key }) => {
          return { sublayer, head, query, key, weight: weights.data[start + query * keys.length + key] };
        })
        .reduce((best, other) => (other.weight > best.weight ? other : best));
    });
  });
  return found.sort((a, b) => b.weight - a.weight);
}

export class HeadFinder {
  /** @param {AttentionView} view */
  constructor(view) {
    this.view = view;
    this.from = byId("find-from");
    this.to = byId("find-to");
    for (const field of [this.from, this.to]) field.addEventListener("change", () => this.choose());
  }

  /** List the heads between the chosen tokens, and show the one with the largest weight. */
  choose() {
    const { view, from, to } = this;
    view.explorer.remember("find", `${from.value}_${to.value}`);
    const [best] = findHeads(view.sublayers, choiceOf(from.value), choiceOf(to.value));
    if (best && (from.value || to.value)) this.open(best);
    else view.explorer.changed();
  }

  render() {
    const { sublayers, explorer } = this.view,
      [from = "", to = ""] = (explorer.memory.shared?.find ?? "").split("_");
    fillOptions(this.from, from, (side) => sublayers.find(({ querySide }) => querySide === side)?.rows);
    fillOptions(this.to, to, (side) => sublayers.find(({ keySide }) => keySide === side)?.keys);
    const [query, key] = [this.from, this.to].map((field) => choiceOf(field.value));
    const hint = t("Choose a token, and the heads are listed by their weight from it or to it."),
      list = query || key ? this.table(findHeads(sublayers, query, key)) : element("p", {}, hint);
    replaceContent(byId("find-list"), list);
  }

  /** @param {Found[]} found */
  table(found) {
    if (!found.length)
      return element("p", { textContent: t("No attention of this model connects these two tokens.") });
    const items = found.map((one) => {
      const { sublayer, head, query, key, weight } = one,
        styles = { width: `${100 * weight}%` },
        isChosen = sublayer.name === this.view.sublayer && head === this.view.head;
      const off = this.view.isOff(sublayer.name, head) ? t(" (off)") : "",
        title = t("{where}, head {head}", { where: sublayer.title, head }) + off;
      return element(
        "li",
        isChosen ? { className: "chosen" } : {},
        follower(title, () => this.open(one), t("Show this head")),
        element(
          "span",
          {},
          t("{query} attends to {key}", {
            query: visibleText(sublayer.rows[query]),
            key: visibleText(sublayer.keys[key]),
          }),
        ),
        // a full bar is the weight 1
        element("span", { className: "share" }, element("i", { className: "positive", styles })),
        element("span", {}, numberText(weight)),
      );
    });
    const count = found[0].sublayer.keys.length,
      values = { count, weight: numberText(1 / count) };
    return element(
      "div",
      { className: "found", tabIndex: 0, role: "region", "aria-label": t("Heads, the largest weight first") },
      element("ul", { className: "shares" }, ...items),
      element("p", {}, t("A head that attends to all {count} keys alike has the weight {weight}.", values)),
    );
  }

  /** @param {Found} found */
  open({ sublayer, head, query, key }) {
    const { view } = this;
    Object.assign(view, { sublayer: sublayer.name, head, cell: [query, key], isPinned: true, lineHeads: [] });
    if (view.quantity !== "gradients") view.quantity = "weights";
    view.explorer.changed();
  }
}

/**
 * @param {string} value   "source.7", or "" for any token
 * @returns {Choice}
 */
function choiceOf(value) {
  const [side, place] = value.split(".");
  return place ? { side, place: Number(place) } : null;
}

/**
 * Write the tokens of both sides into a select element.
 * @type {(field: any, chosen: string, tokensOfSide: (side: string) => string[] | undefined) => void}
 */
function fillOptions(field, chosen, tokensOfSide) {
  const groups = ["source", "target"].flatMap((side) => {
    const tokens = tokensOfSide(side) ?? [];
    const options = tokens.map((name, place) => {
      const token = visibleText(name),
        isOnce = tokens.indexOf(name) === tokens.lastIndexOf(name);
      const text = isOnce ? token : t("{token} (position {place})", { token, place });
      return element("option", { value: `${side}.${place}` }, text);
    });
    if (!options.length) return [];
    const label = side === "source" ? t("Source tokens") : t("Tokens of the decoder");
    return [element("optgroup", { label }, ...options)];
  });
  field.replaceChildren(element("option", { value: "", textContent: t("any token") }), ...groups);
  field.value = chosen;
  if (!field.value) field.value = "";
}
