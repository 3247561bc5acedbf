// @ts-check
// The tape: every array of a forward pass in the order in which it was computed. Going through it from the
// last array to the first is the backward pass.

/**
 * One array of the computation, with its gradient and the way in which it was made from other arrays.
 *
 * @typedef {object} Step
 * @property {string} path        its name, as in the package's caches: "decoder.0.cross.attention.weights"
 * @property {number[]} shape     its lengths along all axes; the entries lie row by row, as in NumPy
 * @property {Float64Array} data  its values
 * @property {Float64Array} grad  the derivative of the loss with respect to each value
 * @property {Float64Array} computed  its values before the reader changed some; data itself if none was
 * @property {Set<number>} edited     the indices of the values that the reader changed
 * @property {string} op          the operation that made it, a key of ARITHMETIC in terms.js
 * @property {Step[]} inputs      the arrays from which it was made
 * @property {string} line        the key of the package's line of code that computes it
 * @property {any} note           what else the operation needed: ids, a mask, a scale, ...
 * @property {() => void} back    adds to the gradients of the inputs what follows from the own gradient
 */

/** @typedef {Record<string, [number, number][]>} ValueEdits  for a path, pairs of an index and a new value */

export class Tape {
  /**
   * @param {ValueEdits} values   values that replace computed ones
   * @param {boolean} gradients   false for a forward pass alone, which allocates no gradients
   */
  constructor(values = {}, gradients = true) {
    this.values = values;
    this.gradients = gradients;
    /** @type {Step[]} */
    this.steps = [];
    /** @type {Map<string, Step>} */
    this.names = new Map();
  }

  /**
   * Add an array to the tape. The operation sets its `back` afterwards.
   *
   * @param {string} op
   * @param {string} path
   * @param {number[]} shape
   * @param {Float64Array} computed
   * @param {Step[]} inputs
   * @param {any} note
   * @param {string} line
   * @param {Float64Array} grad   zeros, to which the backward pass adds
   * @returns {Step}
   */
  record(op, path, shape, computed, inputs, note = {}, line = op, grad = this.zeros(computed.length)) {
    const edits = (this.values[path] ?? []).filter(([index]) => index < computed.length);
    const data = edits.length ? computed.slice() : computed;
    for (const [index, value] of edits) data[index] = value;
    const edited = new Set(edits.map(([index]) => index));
    const step = { path, shape, data, grad, computed, edited, op, inputs, line, note, back: () => {} };
    this.steps.push(step);
    this.names.set(path, step);
    return step;
  }

  /**
   * Return the memory of a gradient: none in a forward pass alone.
   * @param {number} length
   */
  zeros(length) {
    return new Float64Array(this.gradients ? length : 0);
  }

  /** Give a step a further name. @type {(path: string, step: Step) => Step} */
  alias(path, step) {
    this.names.set(path, step);
    return step;
  }

  /** Compute the gradients of all steps. The last step is the loss, whose gradient is 1. */
  backward() {
    this.steps[this.steps.length - 1].grad.fill(1);
    for (const step of this.steps.slice().reverse()) {
      // a value that the reader set does not depend on the inputs, so they get no gradient from it
      const kept = step.edited.size ? step.grad.slice() : step.grad;
      for (const index of step.edited) step.grad[index] = 0;
      step.back();
      step.grad = kept;
    }
  }
}

/**
 * Return the number of entries of an array of this shape.
 * @param {number[]} shape
 */
export function size(shape) {
  return shape.reduce((product, length) => product * length, 1);
}

/** Return a row of an array (T, D). @type {(step: Step, row: number) => Float64Array} */
export function rowOf({ data, shape }, row) {
  return data.subarray(row * shape[1], (row + 1) * shape[1]);
}

/**
 * Return the index of the largest number, the first of equal ones.
 * @param {Float64Array} numbers
 */
export function argmax(numbers) {
  return numbers.reduce((best, x, i) => (x > numbers[best] ? i : best), 0);
}
