// @ts-check
// The editor of an attention's mask: a grid whose cells say which query may attend to which key.
import { button, element } from "../drawing/page_elements.js";
import { CellGrid } from "../drawing/cell_grid.js";
import { t } from "../words/text.js";

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
    this.grid = new CellGrid({
      id: "mask",
      sizes: [8, 26],
      isWide: false,
      content: () => ({ rows: sublayer().queries, columns: sublayer().keys, cell: this.cell }),
      paint: (surface, theme, { x, y, width, height }) =>
        this.allowed.forEach((may, i) => {
          const columns = sublayer().keys.length,
            [left, top] = [x + (i % columns) * width, y + Math.floor(i / columns) * height];
          surface.rectangle(left, top, width - 1, height - 1, may ? theme.tints[0] : theme.line);
        }),
      choose: (row, column, kind) => this.choose(row, column, kind),
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
      this.grid.picture.root,
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
    this.grid.picture.draw(
      t("Mask. Arrow keys choose a cell, Enter changes it. “{query}” {may} attend to “{key}”.", {
        query: queries[row],
        may,
        key: keys[s],
      }),
    );
  }

  /** @type {(t: number, s: number, kind: string) => void} */
  choose(t, s, kind) {
    if (kind === "move" && t === this.cell[0] && s === this.cell[1]) return;
    this.cell = [t, s];
    if (kind === "click") this.toggle();
    else this.render();
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

  /** Change the cells that are not so in the model's own mask. @param {any[][]} cells */
  change(cells) {
    const { session } = this.explorer,
      { name, keys } = this.sublayer();
    session.setEdits("masks", name, null);
    session.run();
    const { allowed: own } = this;
    const changed = cells.filter(([t, s, may]) => Number(may) !== own[t * keys.length + s]);
    session.setEdits("masks", name, changed);
    this.explorer.recompute();
  }
}
