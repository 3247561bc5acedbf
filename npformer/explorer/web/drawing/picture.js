// @ts-check
// A picture: a canvas whose drawing can be saved as SVG or PNG, and that a mouse, a finger and a keyboard
// can use.
import { ARROWS, byId, element } from "./page_elements.js";
import { CanvasSurface } from "./surfaces.js";
import { Saves } from "./saves.js";
import { currentTheme } from "./colors.js";

/**
 * @typedef {object} PictureOptions
 * @property {string} id          a name, with which that of the saved file begins
 * @property {(width: number, room: number) => {width: number, height: number}} layout  its size on the page,
 *   of which a width and a height are free
 * @property {(surface: Surface, theme: Theme) => void} draw
 * @property {(surface: Surface, theme: Theme) => void} [over]  what moves, over the rest
 * @property {(x: number, y: number, kind: "move" | "tap" | "click") => void} [point]  a tap of a finger that
 *   slides otherwise opens nothing
 * @property {boolean} [slides]  whether a finger that slides sideways points, and does not scroll
 * @property {(row: number, column: number) => void} [move]  an arrow key was pressed
 * @property {() => void} [enter]  the key Enter was pressed
 * @property {string} [keys]  the sentence that says what the keys do
 */

const LARGE = 1.5; // the size of pictures that are not the only one of a presentation
const MARGIN = 20; // below a picture

export class Picture {
  /** @param {PictureOptions} options */
  constructor(options) {
    this.options = options;
    this.size = { width: 0, height: 0 };
    this.zoom = 1; // the presentation size
    this.still = element("canvas"); // the picture without what moves
    const isActive = Boolean(options.point);
    this.canvas = element("canvas", {
      id: options.id,
      tabIndex: isActive ? 0 : -1,
      role: isActive ? "application" : "img",
      className: `${isActive ? "active" : ""} ${options.slides ? "slides" : ""}`,
    });
    this.scroller = element("div", { className: "scroller" }, this.canvas);
    const saves = new Saves(options.id, () => this.size, (...on) => this.drawAll(...on), () => this.sentence);
    saves.root.append(element("p", { className: "keys", textContent: options.keys ?? "" }));
    this.root = element("div", { className: "picture" }, this.scroller, saves.root);
    if (isActive) this.listen();
  }

  /** Draw the picture anew. @param {string} [label]   the sentence that screen readers read */
  draw(label) {
    const { canvas } = this;
    const available = this.scroller.clientWidth || byId("main")?.clientWidth || 800;
    const { top } = this.scroller.getBoundingClientRect();
    this.size = this.fit(available, innerHeight - top - scrollY - MARGIN);
    const ratio = Math.max(1, Math.min(3, window.devicePixelRatio || 1)) * this.zoom;
    const { width, height } = this.size;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width * this.zoom}px`;
      canvas.style.height = `${height * this.zoom}px`;
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    this.options.draw(new CanvasSurface(context), currentTheme());
    if (label !== undefined) canvas.setAttribute("aria-label", label);
    if (!this.options.over) return;
    Object.assign(this.still, { width: canvas.width, height: canvas.height });
    this.still.getContext("2d").drawImage(canvas, 0, 0);
    this.drawOver();
  }

  /** Draw what moves over the picture as it was drawn last. */
  drawOver() {
    const context = this.canvas.getContext("2d"),
      { width, height } = this.size;
    context.clearRect(0, 0, width, height);
    context.drawImage(this.still, 0, 0, width, height);
    this.options.over?.(new CanvasSurface(context), currentTheme());
  }

  /**
   * Return the size of the picture. In a presentation, it is as large as the screen allows.
   * @param {number} width   the width and the height that are free
   * @param {number} room
   */
  fit(width, room) {
    const isLarge = document.documentElement.classList.contains("large"),
      free = isLarge ? room - 4 * parseFloat(getComputedStyle(document.documentElement).fontSize) : room;
    const layout = (/** @type {number} */ zoom) => {
      this.zoom = zoom;
      return this.options.layout(width / zoom, free / zoom);
    };
    const fits = (/** @type {number} */ zoom) => {
      const size = layout(zoom);
      return size.width * zoom <= width + 1 && size.height * zoom <= free;
    };
    if (!isLarge) return layout(1);
    if (room < innerHeight / 3) return layout(LARGE);
    let zoom = this.zoom; // the size of the last drawing fits most often
    while (zoom < 4 && fits(zoom + 0.1)) zoom += 0.1;
    while (zoom > 0.6 && !fits(zoom)) zoom -= 0.1;
    return layout(zoom);
  }

  listen() {
    const { canvas, options } = this;
    const place = (/** @type {MouseEvent} */ { offsetX: x, offsetY: y }) =>
      /** @type {const} */ ([x / this.zoom, y / this.zoom]);
    canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      // a finger that moves scrolls the picture or the page, unless it slides; a tap chooses
      if (event.pointerType !== "touch" || options.slides) options.point?.(...place(event), "move");
    });
    canvas.addEventListener("click", (/** @type {PointerEvent} */ event) => {
      options.point?.(...place(event), options.slides && event.pointerType === "touch" ? "tap" : "click");
    });
    canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      const move = ARROWS[event.key];
      if (move && !event.altKey && !event.ctrlKey && !event.metaKey) options.move?.(move[0], move[1]);
      else if (event.key === "Enter") options.enter?.();
      else return;
      event.preventDefault();
    });
  }

  /** What the picture shows: its sentence, with the equation and the number. @returns {string} */
  get sentence() {
    return (this.canvas.getAttribute("aria-label") ?? "").replace(this.options.keys ?? "", "");
  }

  /** @type {import("./surfaces.js").Drawing} */
  drawAll(surface, theme) {
    this.options.draw(surface, theme);
    this.options.over?.(surface, theme);
  }
}
