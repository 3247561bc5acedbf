// @ts-check
// One map of attention, large, with its tokens and numbers.
import { Picture } from "../drawing/picture.js";
import { levelOf, paletteOf } from "../drawing/colors.js";
import { cellText, powerOfTen } from "../drawing/number_texts.js";
import { clip } from "../drawing/draw_grids.js";
import { t } from "../words/text.js";

/** @typedef {import("./attention_view.js").AttentionView} AttentionView */
/** @typedef {import("../drawing/surfaces.js").Surface} Surface */
/** @typedef {import("../drawing/colors.js").Theme} Theme */
/** @typedef {import("./attention_maps.js").AttentionMap} AttentionMap */

const FRAME_COLOR = "#ff7100";

/** The chosen map. */
export class LargeMap {
  /** @param {AttentionView} view */
  constructor(view) {
    this.view = view;
    this.geometry = { x: 0, y: 0, cell: 0 };
    this.picture = new Picture({
      id: "attention-map",
      layout: (width) => this.layout(width),
      draw: (surface, theme) => this.draw(surface, theme),
      point: (x, y, kind) => this.point(x, y, kind),
      move: (row, column) => this.view.moveCell(row, column),
      enter: () => this.view.follow(),
    });
  }

  /** @param {number} width */
  layout(width) {
    const { queries, predicted, keys } = this.view.chosen,
      label = predicted.length ? 140 : 84;
    const cell = Math.max(7, Math.min(40, (width - label - 24) / keys.length));
    this.geometry = { x: label, y: 70, cell };
    return {
      width: Math.max(width, label + cell * keys.length + 24),
      height: 74 + Math.min(cell, 26) * queries.length,
    };
  }

  /** @type {(surface: Surface, theme: Theme) => void} */
  draw(surface, theme) {
    const {
        map,
        cell: [t, s],
      } = this.view,
      { x, y, cell } = this.geometry,
      height = Math.min(cell, 26);
    paintMap(surface, theme, map, x, y, cell, height, cell >= 30);
    surface.frame(x + s * cell - 1, y + t * height - 1, cell + 1, height + 1, FRAME_COLOR, 2.5);
    this.view.chosen.rows.forEach((word, i) =>
      surface.text(x - 6, y + (i + 0.5) * height, clip(word, x < 100 ? 11 : 19), {
        size: Math.min(12.5, height - 1),
        align: "right",
        bold: i === t,
        color: i === t ? theme.ink : theme.faint,
      }),
    );
    map.keys.forEach((word, j) =>
      surface.text(x + (j + 0.5) * cell, y - 7, clip(word, 10), {
        size: cell < 14 ? 10 : 12,
        rotate: cell < 14 ? -90 : -42,
        bold: j === s,
        color: j === s ? theme.ink : theme.faint,
      }),
    );
  }

  /** @type {(x: number, y: number, kind: string) => void} */
  point(x, y, kind) {
    const { geometry } = this,
      { queries, keys } = this.view.chosen,
      height = Math.min(geometry.cell, 26);
    const t = Math.floor((y - geometry.y) / height),
      s = Math.floor((x - geometry.x) / geometry.cell);
    if (t < 0 || s < 0 || t >= queries.length || s >= keys.length) return;
    this.view.pointCell(t, s, kind);
  }
}

/**
 * @param {Surface} surface
 * @param {Theme} theme
 * @param {AttentionMap} map
 * @param {number} x
 * @param {number} y
 * @param {number} width    of a cell
 * @param {number} height
 * @param {boolean} hasNumbers
 */
export function paintMap(surface, theme, { matrix, keys, isGradient }, x, y, width, height, hasNumbers) {
  const palette = paletteOf(isGradient ? "gradient" : "weight", theme, 1);
  const most = isGradient ? matrix.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1 : 1;
  const power = isGradient ? Math.floor(Math.log10(most)) : 0,
    line = width > 6 ? 1 : 0;
  matrix.forEach((number, i) => {
    const left = x + (i % keys.length) * width,
      top = y + Math.floor(i / keys.length) * height;
    const level = levelOf(number / most);
    surface.rectangle(left, top, width - line, height - line, palette.colors[level]);
    if (!hasNumbers) return;
    const text = Math.abs(number) < 0.01 * most ? "·" : cellText(number / 10 ** power);
    surface.text(left + width / 2, top + height / 2, text, {
      size: 11,
      color: palette.inks[level],
      align: "center",
    });
  });
  if (hasNumbers && power)
    surface.text(x - 78, y - 58, t("numbers · {power}", { power: powerOfTen(power) }), {
      size: 11,
      color: theme.faint,
    });
}
