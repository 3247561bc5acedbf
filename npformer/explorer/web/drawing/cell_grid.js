// @ts-check
// A matrix of cells whose rows and columns are tokens. A pointer or the arrow keys choose a cell.
import { CHOSEN, labelStyle } from "./colors.js";
import { clip } from "./draw_grids.js";
import { Picture } from "./picture.js";

/**
 * @typedef {object} CellGridOptions
 * @property {string} id          of the picture
 * @property {() => {rows: string[], columns: string[], cell: number[]}} content   with the chosen cell
 * @property {number[]} sizes     the least and the largest width of a cell
 * @property {boolean} isWide     whether the picture is at least as wide as its place
 * @property {(surface: Surface, theme: Theme, grid: CellGrid) => void} paint   paints the cells
 * @property {(row: number, column: number, kind: string) => void} choose   a pointer is at a cell, or an
 *     arrow key leads to it: then the kind is "key"
 * @property {() => void} enter   the key Enter was pressed
 */

export class CellGrid {
  /** @param {CellGridOptions} options */
  constructor(options) {
    this.options = options;
    this.id = options.id;
    this.enter = options.enter;
    this.x = 0; // where the cells begin
    this.y = 70; // below the labels of the columns
    this.width = this.height = 0; // of a cell
    this.picture = new Picture(this);
  }

  /** @param {number} width */
  layout(width) {
    const { rows, columns } = this.options.content(),
      [least, most] = this.options.sizes;
    this.x = rows.some((row) => row.includes(" → ")) ? 140 : 84;
    this.width = Math.max(least, Math.min(most, (width - this.x - 24) / columns.length));
    this.height = Math.min(this.width, 26);
    const right = this.x + this.width * columns.length,
      bottom = this.y + this.height * rows.length;
    return { width: Math.max(this.options.isWide ? width : 0, right + 24), height: bottom + 4 };
  }

  /** @type {import("./surfaces.js").Drawing} */
  draw(surface, theme) {
    const { x, y, width, height } = this,
      { rows, columns, cell } = this.options.content(),
      [row, column] = cell;
    this.options.paint(surface, theme, this);
    surface.frame(x + column * width - 1, y + row * height - 1, width + 1, height + 1, CHOSEN, 2.5);
    rows.forEach((word, i) => {
      const size = Math.min(12.5, height - 1),
        style = { size, align: "right", ...labelStyle(theme, i === row) };
      surface.text(x - 6, y + (i + 0.5) * height, clip(word, x < 100 ? 11 : 19), style);
    });
    const slant = width < 14 ? { size: 10, rotate: -90 } : { size: 12, rotate: -42 };
    columns.forEach((word, j) => {
      const style = { ...slant, ...labelStyle(theme, j === column) };
      surface.text(x + (j + 0.5) * width, y - 7, clip(word, 10), style);
    });
  }

  /** @type {(x: number, y: number, kind: string) => void} */
  point(x, y, kind) {
    const { rows, columns } = this.options.content(),
      row = Math.floor((y - this.y) / this.height),
      column = Math.floor((x - this.x) / this.width);
    if (row < 0 || column < 0 || row >= rows.length || column >= columns.length) return;
    this.options.choose(row, column, kind);
  }

  /** @type {(down: number, right: number) => void} */
  move(down, right) {
    const { rows, columns, cell } = this.options.content();
    const row = (cell[0] + down + rows.length) % rows.length;
    this.options.choose(row, (cell[1] + right + columns.length) % columns.length, "key");
  }
}
