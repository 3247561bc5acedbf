// @ts-check
// Greedy search: the most probable token at each position. A translation ends with the end symbol, and the
// continuation of a text after some tokens.
import { Tape, argmax } from "./tape.js";
import { Transformer, TransformerPass } from "./transformer.js";

export const UNKNOWN_ID = 1;
const EXTRA_TOKENS = 50; // of a translation, more than the source has (Vaswani et al. 2017, section 6.1)

/**
 * Return a function that computes the logits (V,) of the token after some tokens. Tokens that are never
 * chosen have the logit -Infinity: in a translation padding, the start symbol and the unknown word.
 * @param {Model} model
 * @param {number[]} source   of a translation, whose tokens begin with the start symbol; else empty
 * @param {Edits} edits
 * @returns {(ids: number[]) => Float64Array}
 */
export function predictorOf(model, source, edits = {}) {
  const last = (/** @type {import("./tape.js").Step} */ logits) => logits.data.slice(-logits.shape[1]);
  if (!(model instanceof Transformer)) {
    return (ids) => last(model.passApart(edits).logits({ source, targetIn: ids, targetOut: [] })); // (T, V)
  }
  const { start_id, end_id, pad_id } = model.config;
  const forbidden = [pad_id, start_id, UNKNOWN_ID].filter((id) => id !== end_id);
  // the encoder runs once; the memory and the parameters are on its tape
  const encoder = new TransformerPass(model, edits, new Tape(edits.values, false));
  const memory = encoder.encode(source);
  return (ids) => {
    const logits = last(encoder.decode(ids, memory, source)); // (T, V); records the decoder anew
    for (const id of forbidden) logits[id] = -Infinity;
    return logits;
  };
}

/**
 * Return the ids of the translation, without start and end symbols. Of equally probable tokens, the one with
 * the lower id is chosen.
 * @param {Model} model
 * @param {number[]} source
 * @param {Edits} edits
 * @param {number | undefined} limit   the largest number of tokens
 */
export function greedy(model, source, edits = {}, limit = undefined) {
  const { max_length, start_id, end_id, pad_id } = model.config;
  const most = Math.min(max_length - 1, limit ?? source.filter((id) => id !== pad_id).length + EXTRA_TOKENS);
  const predict = predictorOf(model, source, edits), ids = [start_id];
  while (ids.length <= most) {
    const best = argmax(predict(ids));
    if (best === end_id) break;
    ids.push(best);
  }
  return ids.slice(1);
}

/**
 * Return the ids of the most probable tokens after a text, each of which the model reads before the next.
 * There are fewer if its context is full.
 * @type {(model: Model, text: number[], edits: Edits, count: number) => number[]}
 */
export function continuation(model, text, edits, count) {
  const predict = predictorOf(model, [], edits), ids = [...text];
  while (ids.length < text.length + count && ids.length <= model.config.context) {
    ids.push(argmax(predict(ids)));
  }
  return ids.slice(text.length);
}
