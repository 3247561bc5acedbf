// @ts-check
// All maps of attention as small pictures: a row for each layer, a column for each head.
import { CHOSEN, levelOf, paletteOf } from "../drawing/colors.js";
import { cellText, powerOfTen } from "../drawing/number_texts.js";
import { Picture } from "../drawing/picture.js";
import { mapOf } from "./attention_maps.js";
import { t } from "../words/text.js";

/** The grid of all maps. */
export class AttentionGrid {
  /** @param {AttentionView} view */
  constructor(view) {
    this.view = view;
    this.id = "attention-maps";
    /** @type {{x: number, y: number, size: number, name: string, head: number}[]} */
    this.small = [];
    this.picture = new Picture(this);
  }

  /** @param {number} width */
  layout(width) {
    const { sublayers } = this.view,
      heads = Math.max(...sublayers.map(({ weights }) => weights.shape[0]));
    const label = 96,
      size = Math.max(26, Math.min(96, (width - label) / heads - 8));
    this.small = sublayers.flatMap(({ name, weights }, row) =>
      Array.from({ length: weights.shape[0] }, (_, head) => ({
        x: label + head * (size + 8),
        y: 20 + row * (size + 8),
        size,
        name,
        head,
      })),
    );
    return { width: Math.max(width, label + heads * (size + 8)), height: 24 + sublayers.length * (size + 8) };
  }

  /** @type {(surface: Surface, theme: Theme) => void} */
  draw(surface, theme) {
    const { sublayers } = this.view,
      quantity = this.view.quantity === "gradients" ? "gradients" : "weights";
    for (const { x, y, size, name, head } of this.small) {
      const sublayer = sublayers.find((one) => one.name === name);
      if (!sublayer) continue;
      if (head === 0) {
        surface.text(0, y + size / 2 - 7, sublayer.kind, { size: 11.5, color: theme.ink });
        surface.text(0, y + size / 2 + 8, t("layer {layer}", { layer: sublayer.layer }), {
          size: 11.5,
          color: theme.faint,
        });
      }
      if (y < 30)
        surface.text(x + size / 2, 9, t("head {head}", { head }), {
          size: size < 45 ? 9 : 11.5,
          color: theme.faint,
          align: "center",
        });
      const map = mapOf(sublayers, sublayer, head, /** @type {any} */ (quantity));
      paintMap(surface, theme, map, x, y, size / map.keys.length, size / map.queries.length, false);
      const isChosen = name === this.view.sublayer && head === this.view.head;
      if (this.view.isOff(name, head)) {
        surface.rectangle(x + size / 2 - 15, y + size / 2 - 10, 30, 20, theme.background);
        surface.text(x + size / 2, y + size / 2, t("off"), {
          size: 13,
          bold: true,
          color: theme.accent,
          align: "center",
        });
      }
      surface.frame(x - 1, y - 1, size + 2, size + 2, isChosen ? CHOSEN : theme.line, isChosen ? 3 : 1);
    }
  }

  /** @type {(x: number, y: number, kind: string) => void} */
  point(x, y, kind) {
    const found = this.small.find(
      (map) => x >= map.x && y >= map.y && x < map.x + map.size && y < map.y + map.size,
    );
    if (found && kind === "click") this.view.chooseMap(found.name, found.head);
  }

  /** @type {(row: number, column: number) => void} */
  move(row, column) {
    const { sublayers, sublayer, head, chosen } = this.view,
      at = sublayers.findIndex(({ name }) => name === sublayer) + row + sublayers.length,
      heads = chosen.weights.shape[0];
    this.view.chooseMap(sublayers[at % sublayers.length].name, (head + column + heads) % heads);
  }
}

/**
 * Draw the cells of a map.
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
