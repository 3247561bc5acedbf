// @ts-check
// Where the gradient of a row comes from: how much of it each array sent that was made of the row's array.
import { terms } from "./terms.js";

/** @typedef {import("../engine/tape.js").Tape} Tape */
/** @typedef {import("../engine/tape.js").Step} Step */

/**
 * Return the share of a part of a gradient: part · whole / whole · whole. The shares of all parts add up
 * to 1. A share below 0 belongs to a part that points against the whole.
 * @param {Float64Array} part
 * @param {Float64Array} whole
 */
export function shareOf(part, whole) {
  const dot = (/** @type {Float64Array} */ a) => a.reduce((sum, x, i) => sum + x * whole[i], 0);
  return dot(part) / dot(whole);
}

/**
 * Return the arrays that sent a row its gradient, with their shares of it.
 * @param {Tape} tape
 * @param {Step} step
 * @param {number} start   the place of the row's first entry
 * @param {number} width   the length of the row
 * @returns {{step: Step | null, share: number}[]}
 */
export function sendersOf(tape, step, start, width) {
  /** @type {Map<Step | null, Float64Array>} */
  const parts = new Map();
  for (let i = 0; i < width; i++) {
    for (const { step: sender, value } of terms(tape, step, start + i, "backward").terms) {
      if (!parts.has(sender)) parts.set(sender, new Float64Array(width));
      /** @type {Float64Array} */ (parts.get(sender))[i] += value;
    }
  }
  const whole = step.grad.subarray(start, start + width);
  return [...parts].map(([sender, part]) => ({ step: sender, share: shareOf(part, whole) }));
}

/**
 * Return the array at which the gradient of an array begins: behind sums of which the array is a term, and
 * which nothing else uses, the gradient is the same.
 * @param {Tape} tape
 * @param {Step} step
 * @returns {Step}
 */
export function behindSums(tape, step) {
  const outputs = tape.steps.filter(({ inputs }) => inputs.includes(step)),
    [sum] = outputs;
  const isSame = outputs.length === 1 && sum.op === "add" && sum.data.length === step.data.length;
  return isSame && !sum.edited.size && sum.grad.length ? behindSums(tape, sum) : step;
}
