// @ts-check
// The tape of a recorded page: the steps that Python recorded, with their values and gradients, in place of
// those that a live page computes. Nothing on this tape can be computed again.
import { clippedDistance } from "../engine/relative.js";
import { size, Tape } from "../engine/tape.js";
import { t } from "../words/text.js";

/** @typedef {import("../engine/tape.js").Step} Step */

/**
 * A step as the page carries it, without its numbers.
 * @typedef {object} RecordedStep
 * @property {string} path
 * @property {string} op         as on a live tape; "recorded" if the page does not know how it was computed
 * @property {number[]} shape
 * @property {number[]} inputs   the places of the inputs among the steps
 * @property {string} line
 * @property {any} note
 * @property {boolean} grad      whether the gradient is known
 */

/**
 * Return the tape with all recorded steps. Where a gradient is not known, it is empty.
 * @param {{steps: RecordedStep[], aliases: Record<string, number>}} head
 * @param {ArrayLike<number>} numbers   for each step its values, then its gradient if that is known
 */
export function recordedTape(head, numbers) {
  const tape = new Tape({}, false);
  const all = Float64Array.from(numbers);
  let start = 0;
  const take = (/** @type {number} */ count) => all.subarray(start, (start += count));
  for (const { path, op, shape, inputs, line, note, grad } of head.steps) {
    const data = take(size(shape));
    const made = inputs.map((index) => tape.steps[index]);
    const step = tape.record(op, path, shape, data, made, completeNote(op, note, shape, made), line);
    if (grad) step.grad = take(data.length);
  }
  for (const [name, index] of Object.entries(head.aliases)) tape.alias(name, tape.steps[index]);
  return tape;
}

/**
 * Return whether the page can show how a number was made: forward, from the inputs of its array; backward,
 * from the gradients of all arrays that were made of it.
 * @param {Tape} tape
 * @param {Step} step
 * @param {"forward" | "backward"} direction
 */
export function isExplained(tape, step, direction) {
  if (direction === "forward") return step.op !== "recorded";
  const outputs = outputsOf(tape, step);
  const isKnown = (/** @type {Step} */ { op, grad }) => op !== "recorded" && grad.length > 0;
  return step.grad.length > 0 && !isGiven(tape, step) && outputs.every(isKnown);
}

/**
 * Say why the page cannot show how a number was made.
 * @param {Tape} tape
 * @param {Step} step
 * @param {"forward" | "backward"} direction
 */
export function whyUnexplained(tape, step, direction) {
  if (direction === "backward" && isGiven(tape, step)) {
    return t("This gradient is dy, which explore_layer was given or drew at random.");
  }
  const makers = direction === "forward" ? [step] : outputsOf(tape, step);
  return makers.some(({ note }) => note.missing)
    ? t("This page has no room for the weights that made the number: it shows the number alone.")
    : t("This page recorded the number, and not how it was computed.");
}

/**
 * Return whether the gradient of an array was given: it is that of the output of a layer, which has no loss.
 * @param {Tape} tape
 * @param {Step} step
 */
function isGiven(tape, step) {
  const isUsed = outputsOf(tape, step).length > 0 || step.op === "cross_entropy";
  return !isUsed && step.grad.some((number) => number !== 0);
}

/**
 * @param {Tape} tape
 * @param {Step} step
 */
function outputsOf(tape, step) {
  return tape.steps.filter((output) => output.inputs.includes(step));
}

/**
 * Return a note with what cannot be written as JSON: functions, and numbers that are not finite.
 * @param {string} op
 * @param {any} note
 * @param {number[]} shape
 * @param {Step[]} inputs
 */
function completeNote(op, note, shape, inputs) {
  if (op === "mask") return { ...note, allowed: Uint8Array.from(note.allowed), fill: Number(note.fill) };
  if (op === "factor") return { ...note, factor: () => note.factor };
  if (op === "collect_by_distance") return { ...note, to: placeAtDistance(note, inputs[0].shape) };
  if (op !== "rearrange") return note;
  if (note.kind === "spread_by_distance") return { ...note, from: placeAtDistance(note, shape) };
  return { ...note, from: placesOf(note, shape, inputs[0].shape) };
}

/**
 * Return the function that gives, for each entry of an array (H, T, S) of queries and keys, the place of its
 * distance in an array (H, T, R).
 * @param {{maxDistance: number}} note
 * @param {number[]} shape
 * @returns {(index: number) => number}
 */
function placeAtDistance({ maxDistance }, [, queries, keys]) {
  const distance = clippedDistance(queries, maxDistance),
    distances = 2 * maxDistance + 1;
  return (i) => Math.floor(i / keys) * distances + distance[i % distance.length];
}

/**
 * Return the function that gives, for each entry of a rearranged array, its place in the array before.
 * @param {{kind: string, start?: number, repeats?: number}} note
 * @param {number[]} shape
 * @param {number[]} before
 * @returns {(index: number) => number}
 */
function placesOf({ kind, start = 0, repeats = 1 }, shape, before) {
  if (kind === "repeat_heads") {
    const ofHead = shape[1] * shape[2];
    // y[g R + r] = x[g]
    return (i) => Math.floor(i / ofHead / repeats) * ofHead + (i % ofHead);
  }
  if (kind === "split_heads") {
    const [, length, width] = shape,
      columns = before[1];
    // y[h, t, k] = x[t, start + h K + k]
    return (i) => {
      const h = Math.floor(i / (length * width)),
        t = Math.floor(i / width) % length;
      return t * columns + start + h * width + (i % width);
    };
  }
  const [heads, length, width] = before;
  // y[t, h K + k] = x[h, t, k]
  return (i) => {
    const t = Math.floor(i / (heads * width)),
      h = Math.floor(i / width) % heads;
    return (h * length + t) * width + (i % width);
  };
}
