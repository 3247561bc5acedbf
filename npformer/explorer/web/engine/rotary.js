// @ts-check
// Rotary positions (Su et al. 2021): queries and keys are rotated by angles that grow with their positions.
// And heads of keys and values that several query heads share (Ainslie et al. 2023).
import { rearrange } from "./linear.js";

/**
 * Rotate each pair (a, b) of x to (a cos - b sin, a sin + b cos): x (H, T, K) -> y (H, T, K).
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {Step} table   (T, K): the cosines of the K/2 angles of each position, then their sines
 * @param {"halves" | "interleaved"} layout   "halves" pairs i of the first half with i of the second half,
 *     "interleaved" pairs the neighbours 2i and 2i + 1
 */
export function rotate(tape, path, x, table, layout) {
  const [, length, width] = x.shape, half = width / 2;
  const pairs = rotaryPairs(layout, width);
  /** @type {(from: Float64Array, into: Float64Array, sign: number) => void} */
  const turn = (from, into, sign) => {
    for (let row = 0; row < into.length / width; row++) {
      const angles = (row % length) * width, start = row * width;
      pairs.forEach(([first, second], i) => {
        const cos = table.data[angles + i], sin = sign * table.data[angles + half + i];
        const a = from[start + first], b = from[start + second];
        into[start + first] += a * cos - b * sin;
        into[start + second] += a * sin + b * cos;
      });
    }
  };
  const y = new Float64Array(x.data.length);
  turn(x.data, y, 1);
  const step = tape.record("rotate", path, x.shape, y, [x, table], { layout });
  // the rotation by the opposite angle: its cosine is the same, its sine has the opposite sign
  step.back = () => turn(step.grad, x.grad, -1);
  return step;
}

/**
 * Return the columns of the two numbers of each pair.
 * @param {"halves" | "interleaved"} layout
 * @param {number} width
 * @returns {[number, number][]}
 */
export function rotaryPairs(layout, width) {
  const half = width / 2, isInterleaved = layout === "interleaved";
  return Array.from({ length: half }, (_, i) => (isInterleaved ? [2 * i, 2 * i + 1] : [i, half + i]));
}

/**
 * Repeat each head for the query heads that share it: x (G, S, K) -> y (G R, S, K), y_h = x_⌊h / R⌋.
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {number} repeats   the number R of query heads that share a head
 */
export function repeatHeads(tape, path, x, repeats) {
  const [heads, length, width] = x.shape, size = length * width; // of a head
  const from = (/** @type {number} */ i) => Math.floor(i / (size * repeats)) * size + (i % size);
  // y[g R + r] = x[g]
  return rearrange(tape, "repeat_heads", path, x, [heads * repeats, length, width], from);
}
