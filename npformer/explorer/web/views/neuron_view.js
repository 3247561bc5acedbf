// @ts-check
// The query and the keys behind the weights of one row of attention: the products of their entries, whose sum
// is the score.
import { element } from "../drawing/page_elements.js";
import { Picture } from "../drawing/picture.js";
import { CHOSEN, labelStyle, levelOf, paletteOf } from "../drawing/colors.js";
import { cellText, numberText } from "../drawing/number_texts.js";
import { clip } from "../drawing/draw_grids.js";
import { t } from "../words/text.js";

const WEIGHT = t("weight");
const KEY_ROW = 19,
  FIRST_KEY = 40, // the middle of the first row
  KEYS_WIDTH = 96, // of the keys' names
  NUMBERS = 116;

export class NeuronView {
  /** @param {AttentionView} view */
  constructor(view) {
    this.view = view;
    this.id = "attention-products";
    this.keys = t(
      "Point at a query or a key to choose it. Up and down choose a key, left and right a query.",
    );
    this.cell = 0; // the width of an entry
    /** The left edges of the queries, the keys, their products and the numbers. */
    this.columns = { q: 0, k: 0, products: 0, numbers: 0 };
    this.told = element("p");
    this.picture = new Picture(this);
    this.root = element(
      "section",
      { "aria-label": t("Query and keys") },
      element("h3", { textContent: t("The query, the keys and their products") }),
      this.told,
      this.picture.root,
    );
  }

  /** The step that multiplied the queries and the keys of the chosen attention, if the page knows it. */
  get scores() {
    /** @type {Step | undefined} */
    let step = this.view.chosen.weights;
    while (step && step.op !== "scores") [step] = step.inputs;
    return step?.inputs.length === 2 ? step : null;
  }

  /** The queries of the head, each with its entries (K,). */
  get queries() {
    const [q] = /** @type {Step} */ (this.scores).inputs,
      { queries, rows } = this.view.chosen,
      width = q.shape[2],
      start = this.view.head * queries.length * width;
    return rows.map((name, t) => ({
      name,
      query: q.data.subarray(start + t * width, start + (t + 1) * width),
    }));
  }

  /** For each key its entries (K,), their products with those of the query, the sum and the weight. */
  get numbers() {
    const { view, scores } = this,
      { weights, queries, keys } = view.chosen,
      [, k] = /** @type {Step} */ (scores).inputs,
      width = k.shape[2],
      [t] = view.cell,
      { query } = this.queries[t],
      row = (view.head * queries.length + t) * keys.length;
    return keys.map((name, s) => {
      const start = (view.head * keys.length + s) * width,
        key = k.data.subarray(start, start + width),
        products = query.map((entry, i) => entry * key[i]);
      const sum = products.reduce((total, product) => total + product, 0);
      return { name, key, products, sum, weight: weights.data[row + s] };
    });
  }

  render() {
    const { scores, view } = this;
    this.root.hidden = !scores;
    if (!scores) return;
    const { scale } = scores.note,
      [row, s] = view.cell,
      { name, sum, weight } = this.numbers[s];
    const times = scale === 1 ? t("It") : t("Times {scale}, it", { scale: numberText(scale) });
    const read = view.chosen.queries[row];
    this.told.textContent = t(
      "Head {head}: the query q of “{query}” is multiplied by the key k of each token, entry by entry. The " +
        "sum of the products is q · k. {times} is the score, and the softmax of all scores gives the " +
        "weights. For “{name}”, q · k is {sum}, and the weight is {weight}.",
      { head: view.head, query: read, times, name, sum: numberText(sum), weight: numberText(weight) },
    );
    this.picture.draw(t("The query, the keys and their products. {told}", { told: this.told.textContent }));
  }

  /** @param {number} width */
  layout(width) {
    const entries = /** @type {Step} */ (this.scores).inputs[0].shape[2],
      { queries, keys, predicted } = this.view.chosen,
      q = predicted.length ? 140 : 84;
    this.cell = Math.max(2.5, Math.min(10, (width - q - KEYS_WIDTH - 12 - NUMBERS) / (3 * entries)));
    const strip = entries * this.cell,
      k = q + strip + KEYS_WIDTH,
      products = k + strip + 12;
    this.columns = { q, k, products, numbers: products + strip };
    return {
      width: this.columns.numbers + NUMBERS,
      height: FIRST_KEY + Math.max(queries.length, keys.length) * KEY_ROW,
    };
  }

  /** @type {(surface: Surface, theme: Theme) => void} */
  draw(surface, theme) {
    const { numbers: rows, queries, view } = this,
      { q, k, products: ofProducts, numbers } = this.columns,
      [t, s] = view.cell,
      ends = [numbers + 58, numbers + NUMBERS - 4];
    /** @type {(x: number, y: number, text: string, style: object) => void} */
    const write = (x, y, text, style) => surface.text(x, y, text, { size: 12, color: theme.faint, ...style });
    const head = (/** @type {number} */ x, /** @type {string} */ title, style = {}) =>
      write(x, FIRST_KEY - 22, title, { bold: true, ...style });
    ["q", "k", "q × k"].forEach((title, i) => head([q, k, ofProducts][i], title));
    ["q · k", WEIGHT].forEach((title, i) => head(ends[i], title, { align: "right" }));
    const entries = queries.map(({ query }) => query),
      largest = [entries, rows.map(({ key }) => key), rows.map((row) => row.products)].map(largestOf);
    queries.forEach(({ name, query }, i) => {
      const y = FIRST_KEY + i * KEY_ROW;
      write(q - 6, y, clip(name, q > 100 ? 19 : 11), { align: "right", ...labelStyle(theme, i === t) });
      this.strip(surface, theme, query, q, y, largest[0]);
      if (i === t) surface.frame(q - 2, y - 9, query.length * this.cell + 3, 18, CHOSEN, 2);
    });
    rows.forEach(({ name, key, products, sum, weight }, i) => {
      const y = FIRST_KEY + i * KEY_ROW,
        style = { align: "right", ...labelStyle(theme, i === s) };
      write(k - 6, y, clip(name, 11), style);
      this.strip(surface, theme, key, k, y, largest[1]);
      this.strip(surface, theme, products, ofProducts, y, largest[2]);
      [cellText(sum), cellText(weight, 3)].forEach((text, j) => write(ends[j], y, text, style));
    });
  }

  /**
   * Draw the entries of a vector side by side.
   * @type {(surface: Surface, theme: Theme, list: Float64Array, x: number, y: number,
   *   largest: number) => void}
   */
  strip(surface, theme, list, x, y, largest) {
    const { colors } = paletteOf("value", theme, 1),
      width = this.cell - (this.cell > 4 ? 1 : 0);
    list.forEach((entry, i) => {
      surface.rectangle(x + i * this.cell, y - 8, width, 16, colors[levelOf(entry / largest)]);
    });
  }

  /** @type {(row: number, column: number) => void} */
  move(row, column) {
    this.view.one.move(column, row);
  }

  enter() {
    this.view.follow();
  }

  /** @type {(x: number, y: number, kind: string) => void} */
  point(x, y, kind) {
    const place = Math.floor((y - FIRST_KEY) / KEY_ROW + 0.5),
      { queries, keys } = this.view.chosen,
      isQuery = x < this.columns.k - KEYS_WIDTH,
      [t, s] = this.view.cell;
    if (place < 0 || place >= (isQuery ? queries : keys).length) return;
    if (isQuery) this.view.pointCell(place, s, kind);
    else this.view.pointCell(t, place, kind);
  }
}

/** @param {Float64Array[]} lists */
function largestOf(lists) {
  return Math.max(...lists.map((list) => list.reduce((a, b) => Math.max(a, Math.abs(b)), 0))) || 1;
}
