// @ts-check
// Which arrays a step shows: its inputs and its output, as values or as gradients.
import { maskOf } from "../arithmetic/terms_entries.js";
import { codeName, gradientName } from "./identifiers.js";
import { shownWords, sliceOf } from "./slices.js";
import { unravel } from "../state/axes.js";

const PRODUCTS = ["scores", "linear", "weighted_sum"];

/** Return whether a step is a product of two matrices. @param {import("../engine/tape.js").Step} step */
export function isProduct({ op }) {
  return PRODUCTS.includes(op);
}

/**
 * Return the slices of the moment: those of the inputs and, last, that of the output.
 * @param {Explorer} explorer
 * @returns {{slices: Slice[], result: Slice}}
 */
export function slicesOf(explorer) {
  const { session, moment: { step, which }, direction, head } = explorer;
  const isBackward = direction === "backward";
  const last = unravel(explorer.result.shape, explorer.index);
  const extra = explorer.result.shape.length ? last[last.length - 1] : -1;
  const words = [step, ...step.inputs].some(({ shape }) => Math.max(...shape) > 200)
    ? shownWords(session, extra)
    : [];
  const make = (/** @type {any} */ array, /** @type {any} */ role, /** @type {boolean} */ isGradient) =>
    sliceOf(session, array, {
      isGradient,
      role,
      head,
      words,
      used: usedRows(step, role),
      name: nameOf(step, array, role, isGradient),
      isTransposed: step.op === "scores" && role === 1,
    });
  const slices = step.inputs.map((input, i) => make(input, i, isBackward && i === which));
  if (step.op.startsWith("mask")) slices.push(make(maskOf(step), 1, false));
  const output = make(step, "output", isBackward);
  if (isProduct(step)) return { slices: [...slices, output], result: isBackward ? slices[which] : output };
  if (!isBackward) return { slices: [...slices, output], result: output };
  // the gradient that comes in, the values beside which it is read, and the gradient that goes out
  const values = step.inputs
    .map((input, i) => make(input, i, false))
    .filter(({ step: { op } }) => op !== "constant");
  const masks = slices.slice(step.inputs.length);
  return { slices: [output, ...values, ...masks, slices[which]], result: slices[which] };
}

/** @type {(step: Step, array: Step, role: Role, isGradient: boolean) => string} */
function nameOf(step, array, role, isGradient) {
  return (isGradient ? gradientName : codeName)(step.line, role, array.path);
}

/**
 * Return the rows of a table that a step uses: those of the sentence's tokens, or of its positions.
 * @param {import("../engine/tape.js").Step} step
 * @param {import("./identifiers.js").Role} role
 */
function usedRows(step, role) {
  if (step.op === "embed" && role === 0) return [...new Set(/** @type {number[]} */ (step.note.ids))];
  if (step.line === "add_positions" && role === 1) return Array.from({ length: step.shape[0] }, (_, t) => t);
  return null;
}
