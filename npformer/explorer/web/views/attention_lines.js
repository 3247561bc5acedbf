// @ts-check
// Lines between the words: from each query, left, to each key, right, as strong as the weight.
import { Picture } from "../drawing/picture.js";
import { mapOf } from "./attention_maps.js";
import { HEAD_COLORS, labelStyle, mix, parse, rgbText, scaleColors } from "../drawing/colors.js";
import { clip } from "../drawing/draw_grids.js";
import { t } from "../words/text.js";

const LINE_ROW = 20,
  LINE_TOP = 14,
  SQUARE = 10; // of a head, beside a token
const MOST_SQUARES = 8;

/** The lines of the chosen heads. The lines of one token are strong: of a query, or of a key. */
export class AttentionLines {
  /** @param {AttentionView} view */
  constructor(view) {
    this.view = view;
    this.id = "attention-lines";
    this.keys = t(
      "Point at a word to see its lines alone: left what it attends to, right what attends to it.",
    );
    this.isOfKey = false; // whether the strong lines are those that reach a key
    this.left = this.right = 0; // where the lines begin and end
    this.picture = new Picture(this);
  }

  /** The maps of the heads that are drawn, with the numbers of the heads. */
  get maps() {
    const { view } = this,
      { chosen, sublayers, quantity } = view;
    const heads = ["weights", "gradients"].includes(quantity) ? view.shownHeads : [view.head];
    return heads.map((head) => ({
      head,
      map: mapOf(sublayers, chosen, head, /** @type {any} */ (quantity)),
    }));
  }

  /** @param {number} width */
  layout(width) {
    const { queries, keys, predicted } = this.view.chosen,
      all = Math.min(width, 620);
    const squares = this.squares.length * SQUARE;
    this.left = Math.min(predicted.length ? 150 : 130, all * 0.4) + (this.isOfKey ? squares : 0);
    this.right = all - Math.min(130, all * 0.3) - (this.isOfKey ? 0 : squares);
    return { width: all, height: LINE_ROW * Math.max(queries.length, keys.length) + LINE_TOP };
  }

  /** The maps whose numbers stand as squares beside the tokens: those of several heads. */
  get squares() {
    const { maps } = this;
    return maps.length > 1 ? maps.slice(0, MOST_SQUARES) : [];
  }

  /** @type {(surface: Surface, theme: Theme) => void} */
  draw(surface, theme) {
    const { maps } = this,
      { rows, keys, predicted } = this.view.chosen,
      [t, s] = this.view.cell;
    for (const { head, map } of maps) this.drawLines(surface, head, map);
    this.squares.forEach(({ head, map }, i) => this.drawSquares(surface, theme, head, map, i));
    const squares = this.squares.length * SQUARE,
      left = this.left - (this.isOfKey ? squares : 0),
      right = this.right + (this.isOfKey ? 0 : squares + 4);
    rows.forEach((word, i) => {
      const style = { size: 12.5, align: "right", ...labelStyle(theme, !this.isOfKey && i === t) };
      surface.text(left, rowAt(i), clip(word, predicted.length ? 20 : 14), style);
    });
    keys.forEach((word, j) => {
      const style = { size: 12.5, ...labelStyle(theme, this.isOfKey && j === s) };
      surface.text(right, rowAt(j), clip(word, 14), style);
    });
  }

  /** @type {(surface: Surface, head: number, map: AttentionMap) => void} */
  drawLines(surface, head, { matrix, keys, isGradient }) {
    const [t, s] = this.view.cell,
      most = matrix.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1;
    matrix.forEach((number, i) => {
      const query = Math.floor(i / keys.length),
        key = i % keys.length,
        part = Math.abs(number) / most,
        isStrong = this.isOfKey ? key === s : query === t;
      if (part < 0.02) return;
      const color = isGradient
        ? scaleColors("gradient", false)[number < 0 ? 0 : 4]
        : HEAD_COLORS[head % HEAD_COLORS.length];
      const opacity = isStrong ? 0.25 + 0.75 * part : 0.3 * part;
      surface.line(this.left + 6, rowAt(query), this.right - 6, rowAt(key), color, 1 + 2.5 * part, opacity);
    });
  }

  /**
   * Draw how strongly one head connects the chosen token with each token of the other side.
   * @type {(surface: Surface, theme: Theme, head: number, map: AttentionMap, place: number) => void}
   */
  drawSquares(surface, theme, head, { matrix, queries, keys }, place) {
    const [t, s] = this.view.cell,
      most = matrix.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1,
      color = parse(HEAD_COLORS[head % HEAD_COLORS.length]);
    const x = (this.isOfKey ? this.left - this.squares.length * SQUARE : this.right - 2) + place * SQUARE;
    (this.isOfKey ? queries : keys).forEach((_, i) => {
      const number = matrix[this.isOfKey ? i * keys.length + s : t * keys.length + i];
      const fill = rgbText(mix(color, parse(theme.background), Math.abs(number) / most));
      surface.rectangle(x + 4, rowAt(i) - 6, SQUARE - 2, 12, fill);
    });
  }

  /** @type {(x: number, y: number, kind: string) => void} */
  point(x, y, kind) {
    const place = Math.floor((y - LINE_TOP + LINE_ROW / 2) / LINE_ROW),
      [t, s] = this.view.cell,
      isOfKey = x > (this.left + this.right) / 2;
    const { queries, keys } = this.view.chosen;
    if (place < 0 || place >= (isOfKey ? keys : queries).length) return;
    const hasMoved = isOfKey !== this.isOfKey;
    this.isOfKey = isOfKey;
    if (isOfKey) this.view.pointCell(t, place, kind);
    else this.view.pointCell(place, s, kind);
    if (hasMoved) this.view.renderCell();
  }

  /** Up and down choose a token, left and right the side. @type {(row: number, column: number) => void} */
  move(row, column) {
    if (column) this.isOfKey = column > 0;
    this.view.one.move(this.isOfKey ? 0 : row, this.isOfKey ? row : 0);
  }
}

/** @param {number} i */
function rowAt(i) {
  return LINE_TOP + i * LINE_ROW;
}
