// @ts-check
// Two texts compared: the second one that the page proposes, and the effects of its activations.
import { bestExchange } from "../engine/exchange.js";
import { comparedScore, patchingOf } from "../engine/patching.js";
import { numberText } from "../drawing/number_texts.js";
import { ReaderError } from "./reader_error.js";
import { t } from "../words/text.js";

/** @typedef {import("./session.js").Session} Session */

/** Return the text with its last word exchanged for another of the same kind. @param {Session} session */
export function otherText({ model, task, ids, tape, head }) {
  if (!model || !task || !ids) return "";
  const [[side, tokens]] = task.tokens(ids),
    words = head[`${side}_words`],
    isWord = (/** @type {number} */ id) => id >= task.specials && /[\p{L}\p{N}]/u.test(words[id]);
  const place = Math.max(0, tokens.findLastIndex(isWord)),
    withOther = (/** @type {number} */ id) => (isWord(id) ? task.withToken(ids, side, place, id) : null);
  const id = bestExchange(model, tape, ids, place, (other) => withOther(other)?.ids ?? null);
  return task.withToken(ids, side, place, id).texts.source;
}

/**
 * Compute the effects of the activations of another text, and what they are effects on.
 * @param {Session} session
 * @param {string} text
 * @param {import("../engine/patching.js").Activation} what
 * @param {any} edits   of both passes
 */
export function patching({ model, task, ids, edits: own }, text, what, edits = own) {
  if (!model || !task || !ids) return null;
  const both = /** @type {[typeof ids, typeof ids]} */ ([ids, task.otherIds(ids, text)]);
  if (JSON.stringify(both[0]) === JSON.stringify(both[1]))
    throw new ReaderError(t("Both sentences are the same: exchange a word of the second one."));
  const compared = comparedScore(model, edits, both);
  return { compared, ...patchingOf(model, edits, both, compared, what) };
}

/**
 * Say how small the effects are at the other tokens of the array with the largest effect.
 * @type {(found: NonNullable<ReturnType<typeof patching>>, path: string, place: number) => string}
 */
export function othersText({ sites }, path, place) {
  const { patches } = /** @type {typeof sites[0]} */ (sites.find(({ step }) => step.path === path)),
    most = Math.max(...patches.map(({ exact }, i) => (i === place ? 0 : Math.abs(exact))));
  return t("At the other tokens there, the effect is at most {most}.", { most: numberText(most) });
}
