// @ts-check
// What pictures are drawn on: a canvas on the page, or an SVG file. Both have the same methods.
import { byId, element, say } from "./page_elements.js";
import { t } from "../words/text.js";

/**
 * @typedef {object} Surface
 * @property {(x: number, y: number, width: number, height: number, fill: string) => void} rectangle
 * @property {(x: number, y: number, width: number, height: number, color: string,
 *   thickness?: number) => void} frame
 * @property {(x0: number, y0: number, x1: number, y1: number, color: string, thickness?: number,
 *   opacity?: number) => void} line
 * @property {(points: [number, number][], color: string, thickness?: number) => void} path
 * @property {(x: number, y: number, text: string, style: TextStyle) => void} text
 */

/**
 * A function that draws a picture in the colours of a theme.
 * @typedef {(surface: Surface, theme: import("./colors.js").Theme) => void} Drawing
 */

/**
 * How text is drawn: rotate is in degrees, and the y of the text is that of its middle.
 * @typedef {{size: number, color: string, align?: "left" | "center" | "right", bold?: boolean,
 *   mono?: boolean, rotate?: number}} TextStyle
 */

const SANS = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const MONO = 'ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace';

/** @implements {Surface} */
export class CanvasSurface {
  /** @param {CanvasRenderingContext2D} context */
  constructor(context) {
    this.context = context;
    this.font = ""; // the font that the context has: to set it takes long
  }

  /** @type {Surface["rectangle"]} */
  rectangle(x, y, width, height, fill) {
    this.context.fillStyle = fill;
    this.context.fillRect(x, y, width, height);
  }

  /** @type {Surface["frame"]} */
  frame(x, y, width, height, color, thickness = 2) {
    this.context.strokeStyle = color;
    this.context.lineWidth = thickness;
    this.context.strokeRect(x, y, width, height);
  }

  /** @type {Surface["line"]} */
  line(x0, y0, x1, y1, color, thickness = 1, opacity = 1) {
    this.context.globalAlpha = opacity;
    const ends = /** @type {[number, number][]} */ ([[x0, y0], [x1, y1]]);
    this.path(ends, color, thickness);
    this.context.globalAlpha = 1;
  }

  /** @type {Surface["path"]} */
  path(points, color, thickness = 1) {
    this.context.strokeStyle = color;
    this.context.lineWidth = thickness;
    this.context.beginPath();
    points.forEach(([x, y], i) => (i ? this.context.lineTo(x, y) : this.context.moveTo(x, y)));
    this.context.stroke();
  }

  /** @type {Surface["text"]} */
  text(x, y, text, { size, color, align = "left", bold = false, mono = false, rotate = 0 }) {
    const { context } = this,
      font = `${bold ? "bold " : ""}${size}px ${mono ? MONO : SANS}`;
    if (font !== this.font) context.font = this.font = font;
    context.fillStyle = color;
    context.textAlign = align;
    context.textBaseline = "middle";
    if (!rotate) {
      context.fillText(text, x, y);
      return;
    }
    context.save();
    context.translate(x, y);
    context.rotate((rotate * Math.PI) / 180);
    context.fillText(text, 0, 0);
    context.restore();
  }
}

/** @implements {Surface} */
export class SvgSurface {
  constructor() {
    /** @type {string[]} */
    this.parts = [];
  }

  /** @type {Surface["rectangle"]} */
  rectangle(x, y, width, height, fill) {
    this.box(x, y, width, height, `fill="${fill}"`);
  }

  /** @type {Surface["frame"]} */
  frame(x, y, width, height, color, thickness = 2) {
    this.box(x, y, width, height, `fill="none" stroke="${color}" stroke-width="${thickness}"`);
  }

  /** @type {(x: number, y: number, width: number, height: number, style: string) => void} */
  box(x, y, width, height, style) {
    const place = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    this.parts.push(`<rect ${place} ${style}/>`);
  }

  /** @type {Surface["line"]} */
  line(x0, y0, x1, y1, color, thickness = 1, opacity = 1) {
    this.parts.push(
      `<line x1="${short(x0)}" y1="${short(y0)}" x2="${short(x1)}" y2="${short(y1)}" ` +
        `stroke="${color}" stroke-width="${short(thickness)}" stroke-opacity="${short(opacity)}"/>`,
    );
  }

  /** @type {Surface["path"]} */
  path(points, color, thickness = 1) {
    const list = points.map(([x, y]) => `${short(x)},${short(y)}`).join(" ");
    this.parts.push(`<polyline points="${list}" fill="none" stroke="${color}" stroke-width="${thickness}"/>`);
  }

  /** @type {Surface["text"]} */
  text(x, y, text, { size, color, align = "left", bold = false, mono = false, rotate = 0 }) {
    const anchor = { left: "start", center: "middle", right: "end" }[align];
    const family = (mono ? MONO : SANS).replace(/"/g, "'");
    this.parts.push(
      `<text transform="translate(${short(x)} ${short(y)}) rotate(${rotate})" dy=".35em" ` +
        `text-anchor="${anchor}" font-family="${family}" font-size="${size}" ` +
        (bold ? 'font-weight="bold" ' : "") +
        `fill="${color}">${escapeXml(text)}</text>`,
    );
  }

  /** Return the whole file. @type {(width: number, height: number, background: string) => string} */
  file(width, height, background) {
    return (
      `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${Math.ceil(height)}" ` +
      `viewBox="0 0 ${width} ${Math.ceil(height)}">\n` +
      `<rect width="100%" height="100%" fill="${background}"/>\n` +
      `${this.parts.join("\n")}\n</svg>\n`
    );
  }
}

/** @param {number} x */
function short(x) {
  return +x.toFixed(2);
}

/** @param {string} text */
function escapeXml(text) {
  return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

/**
 * Make the browser save a file, under a name that says what it shows, of which sentence.
 * @type {(what: string, kind: string, blob: Blob) => void}
 */
export function saveFile(what, kind, blob) {
  const words = `${what} ${byId("source-text").textContent}`.match(/[\p{L}\p{N}_.]+/gu) ?? [],
    name = `${words.join("-").slice(0, 80)}.${kind}`;
  say(t("Saved: {name}", { name }));
  const link = element("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
