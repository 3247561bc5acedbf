// @ts-check
// The factors of which the terms of a number consist.
import { t } from "../words/text.js";

/**
 * One number of a product.
 *
 * @typedef {object} Factor
 * @property {Step | null} step  the array in which it stands or from which it comes; null for a constant
 * @property {number} index      its place in the array
 * @property {number} value      the number
 * @property {boolean} grad      true for an entry of the array's gradient, false for one of its values
 * @property {string} name       the formula, if the number is not itself an entry of the array; else ""
 * @property {number} [divisor]  the number of which this one is the inverse, where the reader shall divide
 */

/**
 * One term of the sum: the product of its factors.
 *
 * @typedef {object} Term
 * @property {Step | null} step  the array to which it belongs: forward an input, backward an output
 * @property {number} index
 * @property {Factor[]} factors
 * @property {number} value
 */

/**
 * A sum over a whole row on which a factor depends, as the sum of the exponentials in a softmax.
 *
 * @typedef {{name: string, terms: Term[]}} Inner
 */

/**
 * How an operation makes the entry `index` of its output, and what it sends to the entry `index` of its input
 * number `which`.
 *
 * @typedef {object} Arithmetic
 * @property {(step: Step, index: number) => Term[]} forward
 * @property {(step: Step, which: number, index: number) => Term[]} backward
 * @property {(step: Step) => Factor} [scale]   the factor of the whole sum, forward
 * @property {(step: Step, index: number) => Inner | null} [inner]   a sum in one of the factors, forward
 */

/**
 * Return a term, whose value is the product of its factors.
 * @param {Step | null} step
 * @param {number} index
 * @param {Factor[]} factors
 * @returns {Term}
 */
export function term(step, index, factors) {
  return { step, index, factors, value: factors.reduce((product, { value }) => product * value, 1) };
}

/**
 * Return a value of an array as a factor.
 * @param {Step} step
 * @param {number} index
 * @returns {Factor}
 */
export function entry(step, index) {
  return { step, index, value: step.data[index], grad: false, name: "" };
}

/**
 * Return the gradient of an entry as a factor. A value that the reader set passes no gradient on.
 * @param {Step} step
 * @param {number} index
 * @returns {Factor}
 */
export function gradient(step, index) {
  const isEdited = step.edited.has(index);
  const name = isEdited ? t("0 behind a value you set") : "";
  return { step, index, value: isEdited ? 0 : step.grad[index], grad: true, name };
}

/**
 * Return a number that is computed from an entry as a factor.
 * @param {Step} step
 * @param {number} index
 * @param {number} value
 * @param {string} name
 * @returns {Factor}
 */
export function computed(step, index, value, name) {
  return { step, index, value, grad: false, name };
}

/**
 * Return a number that is not an entry of an array as a factor.
 * @param {number} value
 * @param {string} name
 * @returns {Factor}
 */
export function constant(value, name) {
  return { step: null, index: 0, value, grad: false, name };
}

/** Return the indices of the row of an entry. @type {(step: Step, index: number) => number[]} */
export function placesOfRow(step, index) {
  const width = step.shape[step.shape.length - 1], start = index - (index % width);
  return Array.from({ length: width }, (_, j) => start + j);
}
