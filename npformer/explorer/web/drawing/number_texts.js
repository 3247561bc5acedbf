// @ts-check
// Numbers as text.
import { t } from "../words/text.js";

const SUPERSCRIPTS = "⁻⁰¹²³⁴⁵⁶⁷⁸⁹";

/** Return 10 to a power as text, such as "10⁻⁵". @type {(power: number) => string} */
export function powerOfTen(power) {
  return "10" + [...String(power)].map((digit) => SUPERSCRIPTS["-0123456789".indexOf(digit)]).join("");
}

/**
 * Return a number with few digits, for a cell: ".19" and "−5.84".
 * @param {number} x
 * @param {number} digits
 */
export function cellText(x, digits = 2) {
  if (Number.isNaN(x)) return "?";
  if (!Number.isFinite(x)) return x < 0 ? "−∞" : "∞";
  if (Math.abs(x) >= 100) digits = Math.min(digits, 1);
  const text = x
    .toFixed(digits)
    .replace(/^(-?)0\./, "$1.")
    .replace("-", "−");
  return /[1-9]/.test(text) ? text : text.replace("−", "");
}

/** Return a number with three digits or more: "5.842", "1.60·10⁻⁵". @type {(x: number) => string} */
export function numberText(x) {
  if (x === 0 || !Number.isFinite(x)) return x === 0 ? "0" : cellText(x);
  const size = Math.abs(x);
  if (size >= 0.001 && size < 100000)
    return x.toFixed(size >= 1000 ? 1 : size >= 0.1 ? 3 : 5).replace("-", "−");
  return scientific(x, 2);
}

/**
 * Return a number with many digits, which no line break divides: "−1.449114" and "−6.04·10⁻⁸".
 * @param {number} x
 * @param {number} digits   after the decimal point
 */
export function scientific(x, digits) {
  if (Math.abs(x) >= 0.001 && Math.abs(x) < 100000) return x.toFixed(digits).replace("-", "−");
  const [digitsText, power] = x.toExponential(digits).replace(/^-/, "−").split("e");
  return `${digitsText}·${powerOfTen(Number(power))}`;
}

/** Return numbers on an axis with as many decimals as make them differ. @param {number[]} ticks */
export function tickTexts(ticks) {
  let decimals = 3;
  const texts = () => ticks.map((tick) => tick.toFixed(decimals).replace("-", "−"));
  while (decimals < 12 && new Set(texts()).size < new Set(ticks).size) decimals++;
  return texts();
}

/**
 * Return a token as text that can be seen: a space and a line break have no text of their own.
 * @param {string | number} token
 */
export function visibleText(token) {
  const text = String(token);
  return text.trim() ? text : text.replace(/\n/g, "↵").replace(/\s/g, "␣") || "∅";
}

/** Return a probability in percent. @type {(p: number) => string} */
export function percent(p) {
  return `${(100 * p).toFixed(p < 0.1 ? 2 : 1)} %`;
}

/** Return a shape as text, such as "12 × 96". @type {(shape: number[]) => string} */
export function shapeText(shape) {
  return shape.length ? shape.join(" × ") : t("one number");
}
