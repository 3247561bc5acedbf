// @ts-check
// All maps of attention as small pictures: a row for each layer, a column for each head.
import { Picture } from "../drawing/picture.js";
import { mapOf } from "./attention_maps.js";
import { paintMap } from "./attention_map.js";
import { t } from "../words/text.js";

/** @typedef {import("./attention_view.js").AttentionView} AttentionView */
/** @typedef {import("../drawing/surfaces.js").Surface} Surface */
/** @typedef {import("../drawing/colors.js").Theme} Theme */

const CHOSEN_COLOR = "#ff7100";

/** The grid of all maps. */
export class AttentionGrid {
  /** @param {AttentionView} view */
  constructor(view) {
    this.view = view;
    /** @type {{x: number, y: number, size: number, name: string, head: number}[]} */
    this.small = [];
    this.picture = new Picture({
      id: "attention-maps",
      layout: (width) => this.layout(width),
      draw: (surface, theme) => this.draw(surface, theme),
      point: (x, y, kind) => kind === "click" && this.choose(x, y),
      move: (row, column) => this.moveMap(row, column),
    });
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
      surface.frame(x - 1, y - 1, size + 2, size + 2, isChosen ? CHOSEN_COLOR : theme.line, isChosen ? 3 : 1);
    }
  }

  /** @type {(x: number, y: number) => void} */
  choose(x, y) {
    const found = this.small.find(
      (map) => x >= map.x && y >= map.y && x < map.x + map.size && y < map.y + map.size,
    );
    if (!found) return;
    Object.assign(this.view, { sublayer: found.name, head: found.head, lineHeads: [] });
    this.view.explorer.changed();
  }

  /** @type {(row: number, column: number) => void} */
  moveMap(row, column) {
    const names = this.view.sublayers.map(({ name }) => name),
      heads = this.view.chosen.weights.shape[0];
    this.view.sublayer = names[(names.indexOf(this.view.sublayer) + row + names.length) % names.length];
    this.view.head = (this.view.head + column + heads) % heads;
    this.view.lineHeads = [];
    this.view.explorer.changed();
  }
}
