// @ts-check
// Scaled dot-product attention of all heads: softmax(q kᵀ / sqrt(K)) v, one operation at a time.
import { rearrange } from "./linear.js";
import { addProduct, addProductWithTransposed, addTransposedProduct } from "./products.js";
import { argmax } from "./tape.js";

/**
 * Split some columns into heads: x (T, W) -> y (H, T, K), from the columns start .. start + H K - 1.
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {number} heads
 * @param {number} start
 * @param {number} width   the width K of a head
 */
export function splitHeads(tape, path, x, heads, start, width) {
  const [length, columns] = x.shape;
  // y[h, t, k] = x[t, start + h K + k]
  const from = (/** @type {number} */ i) => {
    const h = Math.floor(i / (length * width));
    const t = Math.floor(i / width) % length;
    return t * columns + start + h * width + (i % width);
  };
  return rearrange(tape, "split_heads", path, x, [heads, length, width], from);
}

/** Concatenate the heads: x (H, T, K) -> y (T, H K). @type {(tape: Tape, path: string, x: Step) => Step} */
export function mergeHeads(tape, path, x) {
  const [heads, length, width] = x.shape;
  // y[t, h K + k] = x[h, t, k]
  const from = (/** @type {number} */ i) => {
    const t = Math.floor(i / (heads * width));
    const h = Math.floor(i / width) % heads;
    return (h * length + t) * width + (i % width);
  };
  return rearrange(tape, "merge_heads", path, x, [length, heads * width], from);
}

/**
 * Return the part of an array (H, N, M) that belongs to head h.
 * @type {(array: Float64Array, h: number, heads: number) => Float64Array}
 */
function ofHead(array, h, heads) {
  const length = array.length / heads;
  return array.subarray(h * length, (h + 1) * length);
}

/**
 * Compute the scores of all queries and keys: q (H, T, K), k (H, S, K) -> scores (H, T, S).
 * @type {(tape: Tape, path: string, q: Step, k: Step, scale: number) => Step}
 */
export function attentionScores(tape, path, q, k, scale) {
  const [heads, queries, width] = q.shape;
  const keys = k.shape[1];
  // scores = q @ k.swapaxes(-1, -2) * scale
  const scores = new Float64Array(heads * queries * keys);
  for (let h = 0; h < heads; h++) {
    const [ofQ, ofK, ofScores] = [q.data, k.data, scores].map((array) => ofHead(array, h, heads));
    addProductWithTransposed(ofQ, ofK, ofScores, queries, width, keys);
  }
  scores.forEach((score, i) => { scores[i] = score * scale; });
  const step = tape.record("scores", path, [heads, queries, keys], scores, [q, k], { scale });
  step.back = () => {
    const dproduct = step.grad.map((dscore) => dscore * scale);
    for (let h = 0; h < heads; h++) {
      const [dscores, ofQ, dq, ofK, dk] = [dproduct, q.data, q.grad, k.data, k.grad].map(
        (array) => ofHead(array, h, heads),
      );
      // dq = dscores @ k
      addProduct(dscores, ofK, dq, queries, keys, width);
      // dk = dscores.swapaxes(-1, -2) @ q
      addTransposedProduct(dscores, ofQ, dk, queries, keys, width);
    }
  };
  return step;
}

/**
 * Replace the scores of masked keys by the fill, or add the fill to them: x (H, T, S), allowed (T, S).
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {Uint8Array} allowed   1 where the query may attend to the key, else 0
 * @param {number} fill
 * @param {"replace" | "add"} how
 */
export function maskScores(tape, path, x, allowed, fill, how) {
  const cells = allowed.length;
  // y = where(mask, x, fill), or y = x + where(mask, 0, fill)
  const masked = (/** @type {number} */ score) => (how === "add" ? score + fill : fill);
  const y = x.data.map((score, i) => (allowed[i % cells] ? score : masked(score)));
  const step = tape.record("mask", path, x.shape, y, [x], { allowed, fill, how });
  step.back = () => {
    // dx = where(mask, dy, 0), or dx = dy
    step.grad.forEach((dy, i) => {
      if (allowed[i % cells] || how === "add") x.grad[i] += dy;
    });
  };
  return step;
}

/**
 * Set the rows of masked queries to 0: x (H, T, S), allowed (T,).
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {Uint8Array} allowed   1 where the query is a token, 0 where it is padding
 */
export function maskQueries(tape, path, x, allowed) {
  const [, queries, keys] = x.shape;
  const isAllowed = (/** @type {number} */ i) => allowed[Math.floor(i / keys) % queries];
  // y = where(query_mask, x, 0), also where x is -inf
  const y = x.data.map((value, i) => (isAllowed(i) ? value : 0));
  const step = tape.record("mask_queries", path, x.shape, y, [x], { isAllowed });
  step.back = () => {
    // dx = where(query_mask, dy, 0)
    step.grad.forEach((dy, i) => {
      if (isAllowed(i)) x.grad[i] += dy;
    });
  };
  return step;
}

/**
 * Compute the softmax of each row: x (H, T, S) -> y (H, T, S). A row of -inf becomes a row of 0.
 * @type {(tape: Tape, path: string, x: Step) => Step}
 */
export function softmax(tape, path, x) {
  const width = x.shape[x.shape.length - 1];
  // y = exp(x - peak) / total
  const y = new Float64Array(x.data.length);
  for (let row = 0; row < y.length; row += width) {
    const { exps, total } = exponentials(x.data.subarray(row, row + width));
    for (let j = 0; j < width; j++) y[row + j] = exps[j] / total;
  }
  const step = tape.record("softmax", path, x.shape, y, [x]);
  step.back = () => {
    for (let row = 0; row < y.length; row += width) {
      // dx = y * (dy - (dy * y).sum(-1))
      let along = 0;
      for (let j = row; j < row + width; j++) along += step.grad[j] * y[j];
      for (let j = row; j < row + width; j++) x.grad[j] += y[j] * (step.grad[j] - along);
    }
  };
  return step;
}

/**
 * Return exp(row - peak) and their sum. A row of -inf, a query that may attend to nothing, gives zeros and
 * the total 1.
 * @param {Float64Array} row
 */
export function exponentials(row) {
  const largest = row.reduce((a, b) => Math.max(a, b), -Infinity);
  const peak = Number.isFinite(largest) ? largest : 0; // the softmax does not change, and exp cannot overflow
  const exps = row.map((x) => Math.exp(x - peak));
  const total = exps.reduce((a, b) => a + b, 0);
  return { exps, peak, total: total === 0 ? 1 : total };
}

/** Return the most probable token of a row of logits, and its probability. @param {Float64Array} row */
export function likeliest(row) {
  const { exps, total } = exponentials(row),
    best = argmax(row);
  return { best, p: exps[best] / total };
}

/**
 * Compute the weighted sums of the values: weights (H, T, S), v (H, S, L) -> z (H, T, L).
 * @type {(tape: Tape, path: string, weights: Step, v: Step) => Step}
 */
export function weightedSum(tape, path, weights, v) {
  const [heads, queries, keys] = weights.shape;
  const width = v.shape[2];
  // z = weights @ v
  const z = new Float64Array(heads * queries * width);
  for (let h = 0; h < heads; h++) {
    const [ofWeights, ofV, ofZ] = [weights.data, v.data, z].map((array) => ofHead(array, h, heads));
    addProduct(ofWeights, ofV, ofZ, queries, keys, width);
  }
  const step = tape.record("weighted_sum", path, [heads, queries, width], z, [weights, v]);
  step.back = () => {
    for (let h = 0; h < heads; h++) {
      const [dz, ofWeights, dweights, ofV, dv] = [step.grad, weights.data, weights.grad, v.data, v.grad].map(
        (array) => ofHead(array, h, heads),
      );
      // dweights = dz @ v.swapaxes(-1, -2)
      addProductWithTransposed(dz, ofV, dweights, queries, width, keys);
      // dv = weights.swapaxes(-1, -2) @ dz
      addTransposedProduct(ofWeights, dz, dv, queries, keys, width);
    }
  };
  return step;
}
