// @ts-check
// The picture of a gradient check: the loss for each nudge of an entry, and the tangent with its gradient.
import { tickTexts } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

/**
 * What the picture shows: the losses [nudge, loss] of nudges from -reach to reach, the present point, and the
 * loss and the gradient without a nudge.
 * @typedef {{curve: [number, number][], reach: number, point: [number, number], loss: number,
 *     gradient: number}} Slope
 */

/** @type {(surface: Surface, theme: Theme, size: {width: number, height: number}, slope: Slope) => void} */
export function drawSlope(surface, theme, { width, height }, { curve, reach, point, loss, gradient }) {
  const losses = curve.map(([, y]) => y),
    low = Math.min(...losses, loss),
    high = Math.max(...losses, loss);
  const room = Math.max(high - low, 1e-9) * 0.12,
    left = 96,
    bottom = height - 34;
  const x = (/** @type {number} */ nudge) => left + ((nudge + reach) / (2 * reach)) * (width - left - 14);
  const y = (/** @type {number} */ value) =>
    bottom - ((value - low + room) / (high - low + 2 * room)) * (bottom - 50);
  surface.line(left, bottom, width - 8, bottom, theme.faint);
  surface.line(left, 40, left, bottom, theme.faint);
  surface.line(x(0), 40, x(0), bottom, theme.line);
  const ticks = tickTexts([low, high]),
    middle = { color: theme.faint, align: /** @type {const} */ ("center") };
  for (const [i, value] of [low, high].entries())
    surface.text(left - 6, y(value), ticks[i], { size: 11, color: theme.faint, align: "right" });
  for (const nudge of [-reach, 0, reach])
    surface.text(x(nudge), bottom + 13, String(nudge).replace("-", "−"), { ...middle, size: 11 });
  surface.text(width / 2, height - 7, t("nudge"), { ...middle, size: 12 });
  const ends = /** @type {[number, number][]} */ (
    [-reach, reach].map((nudge) => [nudge, loss + gradient * nudge])
  );
  const shown = clipped(ends, low - room, high + room);
  const placed = (/** @type {[number, number][]} */ list) =>
    list.map(([a, b]) => /** @type {[number, number]} */ ([x(a), y(b)]));
  surface.path(placed(shown), theme.accent, 2);
  surface.path(placed(curve), theme.tints[0], 2.5);
  surface.frame(x(point[0]) - 4, y(point[1]) - 4, 8, 8, theme.ink, 2.5);
  surface.text(left, 10, t("loss"), { size: 12, color: theme.tints[0], bold: true });
  surface.text(left, 27, t("tangent with the gradient as its slope"), {
    size: 12,
    color: theme.accent,
    bold: true,
  });
}

/**
 * Cut a line at two heights.
 * @param {[number, number][]} ends
 * @param {number} low
 * @param {number} high
 * @returns {[number, number][]}
 */
function clipped([[x0, y0], [x1, y1]], low, high) {
  const at = (/** @type {number} */ y) => x0 + ((y - y0) / (y1 - y0)) * (x1 - x0);
  const cut = (/** @type {[number, number]} */ [x, y]) =>
    /** @type {[number, number]} */ (y < low ? [at(low), low] : y > high ? [at(high), high] : [x, y]);
  return [cut([x0, y0]), cut([x1, y1])];
}
