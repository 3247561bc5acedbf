// @ts-check
// What attention with relative positions adds (Shaw et al. 2018): for each distance of a key from its query,
// a learned vector that is added to the key, and another one that is added to the value.
import { rearrange } from "./linear.js";

/**
 * Return the index of the vector of each query t and key s: clip(s - t, -most, most) + most, of shape (T, S).
 * @param {number} length   T = S, since queries and keys are positions of one sentence
 * @param {number} most     the largest distance that has its own vector
 */
export function clippedDistance(length, most) {
  const distance = new Int32Array(length * length);
  return distance.map((_, i) => {
    const t = Math.floor(i / length), s = i % length;
    return Math.min(Math.max(s - t, -most), most) + most;
  });
}

/**
 * Give each key the number of its distance: x (H, T, R), distance (T, S) -> y (H, T, S), y_ts = x_tr.
 * @type {(tape: Tape, path: string, x: Step, distance: Int32Array) => Step}
 */
export function spreadByDistance(tape, path, x, distance) {
  const [heads, queries, distances] = x.shape;
  const keys = distance.length / queries;
  const from = (/** @type {number} */ i) => Math.floor(i / keys) * distances + distance[i % distance.length];
  // y = x[..., distance], dx = collect_by_distance(dy)
  return rearrange(tape, "spread_by_distance", path, x, [heads, queries, keys], from);
}

/**
 * Add up the entries at each distance: x (H, T, S), distance (T, S) -> y (H, T, R).
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {Int32Array} distance
 * @param {number} distances   the number R of distances
 */
export function collectByDistance(tape, path, x, distance, distances) {
  const [heads, queries, keys] = x.shape;
  const to = (/** @type {number} */ i) => Math.floor(i / keys) * distances + distance[i % distance.length];
  // y_tr = the sum of x_ts over the keys s at distance r from query t
  const y = new Float64Array(heads * queries * distances);
  for (let i = 0; i < x.data.length; i++) y[to(i)] += x.data[i];
  const step = tape.record("collect_by_distance", path, [heads, queries, distances], y, [x], { to });
  step.back = () => {
    // dx = spread_by_distance(dy)
    for (let i = 0; i < x.data.length; i++) x.grad[i] += step.grad[to(i)];
  };
  return step;
}
