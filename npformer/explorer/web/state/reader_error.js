// @ts-check
// The error of a reader, and what a text on a page may be.
import { t } from "../words/text.js";

export const MOST_TOKENS = 48; // of a text on the page

/**
 * Return whether something that a link says is a list of ids of a vocabulary, for which the page has room.
 * @param {any} list
 * @param {number} count   of the tokens of the vocabulary
 */
export function isIds(list, count) {
  const isId = (/** @type {any} */ id) => Number.isInteger(id) && id >= 0 && id < count;
  return Array.isArray(list) && list.length > 0 && list.length <= MOST_TOKENS && list.every(isId);
}

/** A message for the reader: something that was typed cannot be used, or not as it was typed. */
export class ReaderError extends Error {
  /**
   * @param {string} message
   * @param {{word: string, known: string[]}[]} suggestions
   */
  constructor(message, suggestions = []) {
    super(message);
    this.suggestions = suggestions;
  }
}

/**
 * Patching takes activations from place to place, so both texts must have as many tokens.
 * @param {number} own
 * @param {number} other
 */
export function needsAsMany(own, other) {
  if (own === other) return;
  throw new ReaderError(
    t("This text has {other} tokens, and that of the page has {own}: write one of as many.", { own, other }),
  );
}
