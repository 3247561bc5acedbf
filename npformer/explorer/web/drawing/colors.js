// @ts-check
// The colours of the page. Values go from orange over white to blue, gradients from purple to green. In dark
// mode, the middle is dark.

const LIGHT_COLORS = {
  value: ["#a34700", "#f0974a", "#fdfdfd", "#5fa2d8", "#0b4a8f"],
  gradient: ["#6a1b7a", "#b98cc9", "#fbfaf7", "#7fbf8a", "#0b6b3a"],
  weight: ["#fdfdfd", "#fdfdfd", "#fdfdfd", "#5fa2d8", "#0b4a8f"],
};

// in dark mode the middle is dark, and large numbers are bright
const DARK_COLORS = {
  value: ["#ffbd85", "#a8550f", "#26282d", "#2a68a5", "#a9d2fb"],
  gradient: ["#e6bdf4", "#7f4196", "#26282d", "#2c7d4b", "#9fe3b4"],
  weight: ["#26282d", "#26282d", "#26282d", "#2f72b3", "#b9dcfc"],
};

export const CHOSEN = "#ff7100"; // the frame around what is chosen

/** Colours of heads in the lines of attention. They differ for all kinds of colour vision (Okabe and Ito). */
export const HEAD_COLORS = [
  "#0072b2", "#d55e00", "#009e73", "#cc79a7",
  "#e69f00", "#56b4e9", "#8b6cc1", "#7a7a7a",
];

/** @typedef {[number, number, number]} RGB */

/**
 * The colours of one theme, as the style sheet defines them.
 * @typedef {{dark: boolean, ink: string, faint: string, line: string, card: string, background: string,
 *   accent: string, tints: string[]}} Theme
 */

/** @returns {Theme} */
export function currentTheme() {
  const style = getComputedStyle(document.documentElement);
  const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
  return {
    dark: color("dark") === "1",
    ink: color("ink"),
    faint: color("faint"),
    line: color("line"),
    card: color("card"),
    background: color("background"),
    accent: color("accent"),
    tints: ["output", "input-0", "input-1", "input-2"].map(color),
  };
}

/**
 * Return the colours of a scale from -1 to 1.
 * @param {"value" | "gradient" | "weight"} kind
 * @param {boolean} dark
 */
export function scaleColors(kind, dark) {
  return (dark ? DARK_COLORS : LIGHT_COLORS)[kind];
}

/**
 * Return the colour of a number between -1 and 1. Gradients stand on a square-root scale, since most are
 * small.
 * @param {string[]} colors
 * @param {"value" | "gradient" | "weight"} kind
 * @param {number} x
 * @returns {RGB}
 */
export function colorOf(colors, kind, x) {
  const y = kind === "gradient" ? Math.sign(x) * Math.sqrt(Math.abs(x)) : x;
  const place = (Math.max(-1, Math.min(1, y)) + 1) * 2,
    i = Math.min(3, Math.floor(place)),
    part = place - i;
  return mix(parse(colors[i + 1]), parse(colors[i]), part);
}

/** Return a scale as a background. @type {(kind: "value" | "gradient", theme?: Theme) => string} */
export function scaleBar(kind, { dark } = currentTheme()) {
  const colors = scaleColors(kind, dark),
    stops = Array.from({ length: 21 }, (_, i) => rgbText(colorOf(colors, kind, i / 10 - 1)));
  return `linear-gradient(90deg, ${stops.join(",")})`;
}

const LEVELS = 256;

/**
 * A table of the colours from -1 to 1, and of the colours of text on them.
 * @typedef {{colors: string[], inks: string[]}} Palette
 */

/** @type {Map<string, Palette>} */
const palettes = new Map();

/**
 * Return the palette of a kind of numbers, mixed with the background.
 * @param {"value" | "gradient" | "weight"} kind
 * @param {Theme} theme
 * @param {number} part   1 for the colours themselves, 0 for the background
 * @returns {Palette}
 */
export function paletteOf(kind, theme, part) {
  const key = `${kind} ${theme.dark} ${part}`;
  const known = palettes.get(key);
  if (known) return known;
  const scale = scaleColors(kind, theme.dark),
    back = parse(theme.background);
  const list = Array.from({ length: LEVELS + 1 }, (_, i) =>
    mix(colorOf(scale, kind, (2 * i) / LEVELS - 1), back, part),
  );
  const palette = { colors: list.map(rgbText), inks: list.map(inkOn) };
  palettes.set(key, palette);
  return palette;
}

/** Return the place of a number between -1 and 1 in a palette. @param {number} x */
export function levelOf(x) {
  return Math.round(((Math.max(-1, Math.min(1, x)) + 1) * LEVELS) / 2);
}

/**
 * Return the styles of an element with the colour of a number between -1 and 1.
 * @param {Palette} palette
 * @param {number} x
 */
export function shadeOf({ colors, inks }, x) {
  return { background: colors[levelOf(x)], color: inks[levelOf(x)] };
}

/**
 * Mix a colour with another: 1 keeps the first, 0 gives the second.
 * @param {RGB} color
 * @param {RGB} other
 * @param {number} part
 * @returns {RGB}
 */
export function mix(color, other, part) {
  return /** @type {RGB} */ (color.map((channel, i) => Math.round(channel * part + other[i] * (1 - part))));
}

/**
 * @param {string} hex
 * @returns {RGB}
 */
export function parse(hex) {
  return /** @type {RGB} */ ([1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
}

/** @param {RGB} color */
export function rgbText(color) {
  return `rgb(${color.join(",")})`;
}

/** Return the colour of text on a background: dark on light, light on dark. @param {RGB} color */
export function inkOn([red, green, blue]) {
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 128 ? "#1c1c1c" : "#ffffff";
}

/** The style of a label: the chosen one stands out. @type {(theme: Theme, isChosen: boolean) => any} */
export function labelStyle({ ink, faint }, isChosen) {
  return { bold: isChosen, color: isChosen ? ink : faint };
}
