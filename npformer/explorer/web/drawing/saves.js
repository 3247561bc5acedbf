// @ts-check
// What is saved as a file: a picture as SVG or PNG, below which its sentence stands as a caption, and a table
// of the page, drawn as such a picture.
import { button, element } from "./page_elements.js";
import { CanvasSurface, SvgSurface, saveFile } from "./surfaces.js";
import { currentTheme } from "./colors.js";
import { t } from "../words/text.js";

/** @typedef {{width: number, height: number}} Size */

const CAPTION = { size: 12.5, line: 18 };
const CELL = { size: 12, height: 24, letter: 7.4 };

export class Saves {
  /**
   * @param {string} id   a name, with which that of the saved file begins
   * @param {() => Size} size
   * @param {import("./surfaces.js").Drawing} draw
   * @param {() => string} sentence   what the picture shows
   */
  constructor(id, size, draw, sentence) {
    this.id = id;
    this.size = size;
    this.draw = draw;
    this.sentence = sentence;
    this.root = element(
      "div",
      { className: "saves" },
      element("span", {}, t("Save as")),
      button("SVG", () => this.saveSvg(), { "aria-label": t("Save the picture {id} as SVG", { id }) }),
      button("PNG", () => this.savePng(), { "aria-label": t("Save the picture {id} as PNG", { id }) }),
    );
  }

  /** The sentence in lines. @returns {string[]} */
  get caption() {
    const most = Math.max(30, Math.floor(this.size().width / 6.6));
    return this.sentence().match(new RegExp(`\\S.{0,${most - 1}}(?=\\s|$)`, "g")) ?? [];
  }

  /** The size of the picture with its caption. */
  get savedSize() {
    const { width, height } = this.size();
    return [Math.max(width, 240), height + 12 + this.caption.length * CAPTION.line];
  }

  /** @type {import("./surfaces.js").Drawing} */
  drawSaved(surface, theme) {
    this.draw(surface, theme);
    const style = { size: CAPTION.size, color: theme.ink },
      { height } = this.size();
    this.caption.forEach((text, i) => surface.text(8, height + 15 + i * CAPTION.line, text, style));
  }

  svgFile() {
    const surface = new SvgSurface(),
      theme = currentTheme(),
      [width, height] = this.savedSize;
    this.drawSaved(surface, theme);
    return surface.file(width, height, theme.background);
  }

  saveSvg() {
    saveFile(this.id, "svg", new Blob([this.svgFile()], { type: "image/svg+xml" }));
  }

  savePng() {
    const factor = 3,
      [width, height] = this.savedSize,
      theme = currentTheme();
    const copy = element("canvas", { width: width * factor, height: Math.ceil(height) * factor });
    const context = copy.getContext("2d");
    context.scale(factor, factor);
    context.fillStyle = theme.background;
    context.fillRect(0, 0, width, height);
    this.drawSaved(new CanvasSurface(context), theme);
    copy.toBlob((/** @type {Blob} */ blob) => saveFile(this.id, "png", blob));
  }
}

/**
 * Make the buttons that save a table of the page as a picture, with the colours of its cells.
 * @param {string} id
 * @param {HTMLTableElement} table
 * @param {() => string} sentence
 */
export function tableSaves(id, table, sentence) {
  const rows = [...table.rows].map((row) => [...row.cells]),
    lengthOf = (/** @type {Element | undefined} */ cell) => cell?.textContent?.length ?? 0;
  const widths = rows[0].map((_, i) => 16 + CELL.letter * Math.max(...rows.map((row) => lengthOf(row[i])))),
    lefts = widths.map((_, i) => widths.slice(0, i).reduce((sum, width) => sum + width, 6)),
    size = { width: lefts[lefts.length - 1] + widths[widths.length - 1], height: CELL.height * rows.length };
  /** @type {import("./surfaces.js").Drawing} */
  const draw = (surface, theme) =>
    rows.forEach((row, i) =>
      row.forEach((cell, j) => {
        const { background, color } = /** @type {any} */ (cell.firstElementChild)?.style ?? {},
          top = i * CELL.height;
        if (background) surface.rectangle(lefts[j], top + 1, widths[j] - 3, CELL.height - 2, background);
        const bold = !i || Boolean(cell.querySelector(".important")),
          style = { size: CELL.size, color: color || theme.ink, bold };
        surface.text(lefts[j] + 6, top + CELL.height / 2, cell.textContent ?? "", style);
      }),
    );
  return new Saves(id, () => size, draw, sentence).root;
}
