// @ts-check
// The predictions of every layer, and what each part of the model adds to the logit of a token. A live page
// computes both when they are shown; a recorded page has those that Python computed.
import { likeliest } from "../engine/attention.js";
import { attributionOf, layerLogits } from "../engine/lenses.js";
import { argmax, rowOf } from "../engine/tape.js";

/**
 * @typedef {object} Predictions
 * @property {string[]} words   the labels of the tokens
 * @property {{best: number, p: number}[][]} guesses   at each position, after the embedding and each layer
 * @property {(position: number) => number} predicted   the token that the model predicts
 * @property {(position: number, token: number) => Part[]} parts   of the logit; none if they are not known
 * @property {number[]} [logits]   at each position, where the parts do not add up to the logit
 */

/** @type {(session: Session) => Predictions} */
export function everyPrediction(session) {
  return session.model ? computedPredictions(session, session.model) : recordedPredictions(session);
}

/** @type {(session: Session, model: Model) => Predictions} */
function computedPredictions({ head, edits, tape }, model) {
  const ofLayers = layerLogits(model, edits, tape),
    logits = /** @type {Step} */ (tape.names.get("logits")),
    [length, width] = logits.shape;
  return {
    words: head.target_words,
    guesses: Array.from({ length }, (_, place) =>
      ofLayers.map((rows) => likeliest(rows.subarray(place * width, (place + 1) * width))),
    ),
    predicted: (position) => argmax(rowOf(logits, position)),
    parts: (position, token) => attributionOf(tape, position, token),
  };
}

/** @type {(session: Session) => Predictions} */
function recordedPredictions({ head, tape }) {
  const { tokens, best, p, parts = [], values, logits } = head.predictions;
  /** @type {number[]} */
  const ofLastLayer = best[best.length - 1];
  return {
    words: tokens,
    guesses: ofLastLayer.map((_, place) =>
      best.map((/** @type {number[]} */ row, /** @type {number} */ layer) => {
        return { best: row[place], p: p[layer][place] };
      }),
    ),
    predicted: (position) => ofLastLayer[position],
    parts: (position) =>
      parts.map((/** @type {[string, string]} */ [name, path], /** @type {number} */ i) => {
        const step = /** @type {Step} */ (tape.names.get(path));
        return { name, step, value: values[position][i], dimension: largestDimension(name, step, position) };
      }),
    logits,
  };
}

/**
 * Return the dimension of the largest number that a recorded part puts out: of a head, among its own ones.
 * @type {(name: string, step: Step, position: number) => number}
 */
function largestDimension(name, step, position) {
  const numbers = rowOf(step, position).map(Math.abs),
    isHead = step.line === "merge_heads",
    width = isHead ? step.inputs[0].shape[2] : numbers.length,
    start = isHead ? width * Number(name) : 0;
  return start + argmax(numbers.subarray(start, start + width));
}
