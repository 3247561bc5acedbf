// @ts-check
// The arithmetic of one number: the terms that add up to it. Forward, they come from the arrays of which an
// array was made. Backward, they come from the arrays that were made of it, and are the gradient that each of
// them sent.
import { constant, entry, term } from "./factors.js";
import { ARITHMETIC_OF_PRODUCTS } from "./terms_products.js";
import { ARITHMETIC_OF_ENTRIES } from "./terms_entries.js";
import { ARITHMETIC_OF_POSITIONS } from "./terms_positions.js";
import { ARITHMETIC_OF_ROWS } from "./terms_rows.js";
import { t } from "../words/text.js";

/**
 * The explanation of a number, which is the factor scale times the sum of the terms.
 * @typedef {{terms: Term[], scale: import("./factors.js").Factor, sum: number, number: number,
 *   inner: import("./factors.js").Inner | null}} Explanation
 */

/** @type {Record<string, import("./factors.js").Arithmetic>} */
export const ARITHMETIC = {
  ...ARITHMETIC_OF_ROWS,
  ...ARITHMETIC_OF_ENTRIES,
  ...ARITHMETIC_OF_PRODUCTS,
  ...ARITHMETIC_OF_POSITIONS,
};

/**
 * Explain the value of an entry, or its gradient.
 * @type {(tape: Tape, step: Step, index: number, direction: "forward" | "backward") => Explanation}
 */
export function terms(tape, step, index, direction) {
  const list = direction === "forward" ? forwardTerms(step, index) : backwardTerms(tape, step, index);
  const made = direction === "forward" && !step.edited.has(index) ? ARITHMETIC[step.op] : undefined;
  const scale = made?.scale?.(step) ?? constant(1, "");
  const sum = sumOf(list);
  return { terms: list, scale, sum, number: scale.value * sum, inner: made?.inner?.(step, index) ?? null };
}

/** @param {Term[]} list */
export function sumOf(list) {
  return list.reduce((total, { value }) => total + value, 0);
}

/** @type {(step: Step, index: number) => Term[]} */
function forwardTerms(step, index) {
  const { edited, data } = step;
  if (edited.has(index)) return [term(step, index, [constant(data[index], t("the value you set"))])];
  if (!step.inputs.length) return [term(step, index, [entry(step, index)])]; // a parameter: nothing made it
  return ARITHMETIC[step.op].forward(step, index);
}

/**
 * @param {Tape} tape
 * @param {Step} step
 * @param {number} index
 */
function backwardTerms(tape, step, index) {
  const isLoss = step === tape.steps[tape.steps.length - 1];
  if (isLoss) return [term(step, index, [constant(1, t("∂loss / ∂loss"))])];
  /** @type {Term[]} */
  const list = [];
  for (const output of tape.steps) {
    output.inputs.forEach((input, which) => {
      if (input === step) list.push(...ARITHMETIC[output.op].backward(output, which, index));
    });
  }
  return list;
}
