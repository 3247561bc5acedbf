// @ts-check
// Greedy search: the most probable token at each position. A translation ends with the end symbol, and the
// continuation of a text after some tokens.
import { Tape } from "./tape.js";
import { TransformerPass } from "./transformer.js";

/** @typedef {import("./pass.js").Edits} Edits */
/** @typedef {import("./pass.js").Model} Model */

export const UNKNOWN_ID = 1;
const EXTRA_TOKENS = 50; // of a translation, more than the source has (Vaswani et al. 2017, section 6.1)

/**
 * Return the ids of the translation, without start and end symbols. Padding, the start symbol and the unknown
 * word are never chosen. Of equally probable tokens, the one with the lower id is.
 * @param {Model} model
 * @param {number[]} source
 * @param {Edits} edits
 * @param {number | undefined} limit   the largest number of tokens
 */
export function greedy(model, source, edits = {}, limit = undefined) {
  const { max_length, start_id, end_id, pad_id } = model.config;
  const most = Math.min(max_length - 1, limit ?? source.filter((id) => id !== pad_id).length + EXTRA_TOKENS);
  const forbidden = [pad_id, start_id, UNKNOWN_ID].filter((id) => id !== end_id);
  // the encoder runs once; the memory and the parameters are on its tape
  const encoder = new TransformerPass(model, edits, new Tape(edits.values, false));
  const memory = encoder.encode(source);
  const ids = [start_id];
  while (ids.length <= most) {
    const logits = encoder.decode(ids, memory, source); // (T, V); records the decoder anew
    const best = mostProbable(logits.data.subarray(-logits.shape[1]), forbidden);
    if (best === end_id) break;
    ids.push(best);
  }
  return ids.slice(1);
}

/**
 * Return the ids of the most probable tokens after a text, each of which the model reads before the next.
 * There are fewer if its context is full.
 * @param {Model} model
 * @param {number[]} text
 * @param {Edits} edits
 * @param {number} count
 */
export function continuation(model, text, edits, count) {
  const ids = [...text];
  while (ids.length < text.length + count && ids.length <= model.config.context) {
    const pass = model.startPass(edits, new Tape(edits.values, false));
    const logits = pass.logits({ source: [], targetIn: ids, targetOut: [] }); // (T, V)
    ids.push(mostProbable(logits.data.subarray(-logits.shape[1]), []));
  }
  return ids.slice(text.length);
}

/**
 * Return the index of the largest of the logits, the first of equal ones.
 * @param {Float64Array} logits
 * @param {number[]} forbidden
 */
function mostProbable(logits, forbidden) {
  let best = -1;
  logits.forEach((logit, id) => {
    if (!forbidden.includes(id) && (best < 0 || logit > logits[best])) best = id;
  });
  return best;
}
