// @ts-check
// The probabilities with which sampling draws the next token, by the rules of generation/sampling.py.
import { exponentials } from "./attention.js";
import { argmax } from "./tape.js";

/**
 * How the next token is drawn: a temperature of 0 takes the most probable one. Without top-k and top-p, all
 * tokens can be drawn.
 * @typedef {{temperature: number, topK: number | null, topP: number | null}} Sampling
 */

/**
 * Return the probabilities of all tokens: logits (V,) -> p (V,), which sum to 1. They are proportional to
 * exp(logit / temperature), and 0 for the tokens that top-k and top-p leave out.
 * @param {Float64Array} logits
 * @param {Sampling} sampling
 * @returns {Float64Array}
 */
export function tokenProbabilities(logits, { temperature, topK, topP }) {
  const peak = Math.max(...logits);
  if (!temperature) return logits.map((_, id) => (id === logits.indexOf(peak) ? 1 : 0));
  const { exps, total } = exponentials(logits.map((logit) => (logit - peak) / temperature)),
    p = exps.map((exp) => exp / total);
  // the most probable tokens first; of equally probable ones, the one with the lower id
  let kept = [...p.keys()].sort((a, b) => p[b] - p[a] || a - b).slice(0, topK ?? p.length);
  if (topP !== null) {
    const sums = kept.reduce((list, id) => [...list, list[list.length - 1] + p[id]], [0]);
    // a token is kept if the sum of the larger probabilities has not reached top-p
    kept = kept.filter((_, rank) => sums[rank] < topP * sums[kept.length]);
  }
  const sum = kept.reduce((all, id) => all + p[id], 0),
    cut = new Float64Array(p.length);
  for (const id of kept) cut[id] = p[id] / sum;
  return cut;
}

/**
 * Draw a token: the probabilities divide the interval from 0 to 1, and a number in it belongs to a token.
 * @param {Float64Array} p
 * @param {number} number   from 0 to 1, without 1
 */
export function drawToken(p, number) {
  let end = 0;
  const drawn = p.findIndex((share) => number < (end += share));
  return drawn >= 0 ? drawn : argmax(p); // rounding can leave the last end below 1
}
