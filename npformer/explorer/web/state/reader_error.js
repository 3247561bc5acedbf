// @ts-check
// The error of a reader, and what a text on a page may be.

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
