// @ts-check
// The tape of a recorded page: the steps that Python recorded, with their values and gradients, in place of
// those that a live page computes. Nothing on this tape can be computed again.
import { mergeHeads, splitHeads } from "../engine/attention.js";
import { transpose } from "../engine/linear.js";
import { clippedDistance, collectByDistance, spreadByDistance } from "../engine/relative.js";
import { repeatHeads } from "../engine/rotary.js";
import { size, Tape } from "../engine/tape.js";
import { t } from "../words/text.js";

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
 * @property {boolean} [shared]  whether the values are those of the first pass
 */

/**
 * Return the passes of a recorded page: the head and the numbers of each of its sentences.
 * @type {(head: any, numbers: Float32Array) => {head: any, numbers: Float32Array}[]}
 */
export function recordedPasses(head, numbers) {
  let start = 0;
  return [head, ...(head.saved ?? [])].map((own) => {
    const counts = own.steps.map((/** @type {RecordedStep} */ { shape, grad, shared }) => {
      return size(shape) * (Number(!shared) + Number(grad));
    });
    const end = counts.reduce((/** @type {number} */ sum, /** @type {number} */ count) => sum + count, start);
    const pass = { head: { ...head, ...own }, numbers: numbers.subarray(start, end) };
    start = end;
    return pass;
  });
}

/**
 * Use one of the sentences of the page: a live page computes it, a recorded one has its pass.
 * @type {(session: Session, index: number) => void}
 */
export function chooseSentence(session, index) {
  if (session.isLive) session.setSentence(session.head.sentences[index]);
  if (!session.passes[index]) return;
  const { head, numbers } = session.passes[index],
    { source, target } = head.example;
  Object.assign(session, { head, texts: { source, target: target ?? "" }, output: target ?? "" });
  session.tape = recordedTape(head, numbers, session.firstTape);
  session.setBaseline();
}

/** Return the place of the present sentence among these, or -1. @type {(session: Session) => number} */
export function chosenSentence({ head, texts }) {
  return (head.sentences ?? []).indexOf(texts.source);
}

/**
 * Return the tape with all recorded steps. Where a gradient is not known, it is empty.
 * @param {{steps: RecordedStep[], aliases: Record<string, number>}} head
 * @param {ArrayLike<number>} numbers   for each step its values, then its gradient if that is known
 * @param {Tape | null} first   the tape of the first pass
 */
export function recordedTape(head, numbers, first = null) {
  const tape = new Tape({}, false);
  const all = Float64Array.from(numbers);
  let start = 0;
  const take = (/** @type {number} */ count) => all.subarray(start, (start += count));
  for (const { path, op, shape, inputs, line, note, grad, shared } of head.steps) {
    const data = (shared && first?.names.get(path)?.data) || take(size(shape));
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
 * @type {(tape: Tape, step: Step, direction: "forward" | "backward") => boolean}
 */
export function isExplained(tape, step, direction) {
  if (direction === "forward") return step.op !== "recorded";
  const outputs = outputsOf(tape, step);
  const isKnown = (/** @type {Step} */ { op, grad }) => op !== "recorded" && grad.length > 0;
  return step.grad.length > 0 && !isGiven(tape, step) && outputs.every(isKnown);
}

/**
 * Say why the page cannot show how a number was made.
 * @type {(tape: Tape, step: Step, direction: "forward" | "backward") => string}
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

const NO_TAPE = new Tape({}, false); // for the functions of the engine that say where each entry goes

/**
 * How the engine rearranges an array, by the kind of the note.
 * @type {Record<string, (x: Step, note: any, shape: number[]) => Step>}
 */
const REARRANGED = {
  split_heads: (x, { start = 0 }, [heads, , width]) => splitHeads(NO_TAPE, "", x, heads, start, width),
  merge_heads: (x) => mergeHeads(NO_TAPE, "", x),
  repeat_heads: (x, { repeats }) => repeatHeads(NO_TAPE, "", x, repeats),
  spread_by_distance: (x, { maxDistance }, [, length]) =>
    spreadByDistance(NO_TAPE, "", x, clippedDistance(length, maxDistance)),
  transpose: (x) => transpose(NO_TAPE, "", x),
};

/**
 * Return a note with what cannot be written as JSON: functions, and numbers that are not finite.
 * @type {(op: string, note: any, shape: number[], inputs: Step[]) => any}
 */
function completeNote(op, note, shape, [x]) {
  if (op === "mask") return { ...note, allowed: Uint8Array.from(note.allowed), fill: Number(note.fill) };
  if (op === "factor") return { ...note, factor: () => note.factor };
  if (op === "rearrange") return { ...note, ...REARRANGED[note.kind](x, note, shape).note };
  if (op !== "collect_by_distance") return note;
  const distance = clippedDistance(x.shape[1], note.maxDistance);
  return { ...note, ...collectByDistance(NO_TAPE, "", x, distance, shape[2]).note };
}
