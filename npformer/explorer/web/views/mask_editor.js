// @ts-check
// The editor of an attention's mask: a grid whose cells say which query may attend to which key.
import { button, element } from "../drawing/page_elements.js";
import { Picture } from "../drawing/picture.js";
import { clip } from "../drawing/draw_grids.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */
/** @typedef {import("./attention_maps.js").Sublayer} Sublayer */

const WINDOW = 2; // tokens on each side

export class MaskEditor {
  /**
   * @param {Explorer} explorer
   * @param {() => Sublayer} sublayer
   */
  constructor(explorer, sublayer) {
    this.explorer = explorer;
    this.sublayer = sublayer;
    this.cell = [0, 0];
    this.size = 20;
    this.picture = new Picture({
      id: "mask",
      layout: (width) => this.layout(width),
      draw: (s, theme) => this.draw(s, theme),
      point: (x, y, kind) => this.point(x, y, kind),
      move: (row, column) => this.move(row, column),
      enter: () => this.toggle(),
    });
    const preset = (/** @type {string} */ text, /** @type {(t: number, s: number) => boolean} */ allowed) =>
      button(text, () => this.setAll(allowed));
    this.root = element(
      "div",
      {},
      element(
        "div",
        { className: "controls" },
        preset(t("Allow everything"), () => true),
        preset(t("Causal: only earlier tokens"), (t, s) => s <= t),
        preset(
          t("Window: {count} tokens on each side", { count: WINDOW }),
          (t, s) => Math.abs(t - s) <= WINDOW,
        ),
        button(t("The model's own mask"), () => this.change([])),
      ),
      this.picture.root,
    );
  }

  /** The present mask (T, S): 1 where the query may attend to the key. */
  get allowed() {
    const step = this.explorer.tape.names.get(`${this.sublayer().name}.attention.masked`);
    return /** @type {Uint8Array} */ (step?.note.allowed ?? new Uint8Array(0));
  }

  render() {
    const { queries, keys } = this.sublayer();
    this.cell = [Math.min(this.cell[0], queries.length - 1), Math.min(this.cell[1], keys.length - 1)];
    const [row, s] = this.cell,
      may = this.allowed[row * keys.length + s] ? t("may") : t("may not");
    this.picture.draw(
      t("Mask. Arrow keys choose a cell, Enter changes it. “{query}” {may} attend to “{key}”.", {
        query: queries[row],
        may,
        key: keys[s],
      }),
    );
  }

  /** @param {number} width */
  layout(width) {
    const { queries, keys } = this.sublayer();
    this.size = Math.max(8, Math.min(26, (width - 114) / keys.length));
    return { width: Math.min(width, 114 + this.size * keys.length), height: 74 + this.size * queries.length };
  }

  /** @type {import("../drawing/surfaces.js").Drawing} */
  draw(surface, theme) {
    const { queries, keys } = this.sublayer(),
      {
        allowed,
        size,
        cell: [t, s],
      } = this;
    allowed.forEach((may, i) =>
      surface.rectangle(
        90 + (i % keys.length) * size,
        70 + Math.floor(i / keys.length) * size,
        size - 1,
        size - 1,
        may ? theme.tints[0] : theme.line,
      ),
    );
    surface.frame(90 + s * size - 1, 70 + t * size - 1, size + 1, size + 1, "#ff7100", 2.5);
    queries.forEach((word, i) =>
      surface.text(84, 70 + (i + 0.5) * size, clip(word, 11), {
        size: Math.min(12.5, size - 1),
        align: "right",
        bold: i === t,
        color: theme.ink,
      }),
    );
    keys.forEach((word, j) =>
      surface.text(90 + (j + 0.5) * size, 62, clip(word, 10), {
        size: 11,
        rotate: size < 14 ? -90 : -42,
        bold: j === s,
        color: theme.ink,
      }),
    );
  }

  /** @type {(x: number, y: number, kind: "move" | "click") => void} */
  point(x, y, kind) {
    const { queries, keys } = this.sublayer();
    const t = Math.floor((y - 70) / this.size),
      s = Math.floor((x - 90) / this.size);
    if (t < 0 || s < 0 || t >= queries.length || s >= keys.length) return;
    if (kind === "move" && t === this.cell[0] && s === this.cell[1]) return;
    this.cell = [t, s];
    if (kind === "click") this.toggle();
    else this.render();
  }

  /** @type {(row: number, column: number) => void} */
  move(row, column) {
    const { queries, keys } = this.sublayer(),
      [t, s] = this.cell;
    this.cell = [(t + row + queries.length) % queries.length, (s + column + keys.length) % keys.length];
    this.render();
  }

  toggle() {
    const [t, s] = this.cell,
      { name, keys } = this.sublayer(),
      may = this.allowed[t * keys.length + s];
    const others = (this.explorer.session.edits.masks?.[name] ?? []).filter(
      (/** @type {number[]} */ [a, b]) => a !== t || b !== s,
    );
    this.change([...others, [t, s, !may]]);
  }

  /** @param {(t: number, s: number) => boolean} isAllowed */
  setAll(isAllowed) {
    const { queries, keys } = this.sublayer();
    this.change(queries.flatMap((_, t) => keys.map((__, s) => [t, s, isAllowed(t, s)])));
  }

  /** @param {any[]} cells */
  change(cells) {
    this.explorer.session.setEdits("masks", this.sublayer().name, cells);
    this.explorer.recompute();
  }
}
