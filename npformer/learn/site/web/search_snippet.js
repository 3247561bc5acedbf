// The passage of a text that a result shows.
"use strict";

/** @typedef {[text: string, hit: boolean]} Piece */

const SNIPPET = 180; // characters

/**
 * Return the passage of a text with the most terms, in pieces that are hits or not.
 * @param {string} text
 * @param {Set<string>} terms
 * @returns {Piece[]}
 */
function snippetOf(text, terms) {
  const words = [...text.matchAll(/[\p{L}\p{N}√]+(?:[-_'][\p{L}\p{N}]+)*/gu)];
  const hits = words.filter(([word]) => termsOf(word).some((term) => terms.has(term)));
  let [begin, most] = [0, 0];
  for (const hit of hits) {
    const near = hits.filter((other) => other.index >= hit.index && other.index < hit.index + SNIPPET - 30);
    const different = new Set(near.map(([word]) => stem(word.toLowerCase()))).size;
    if (different > most) [begin, most] = [Math.max(0, hit.index - 30), different];
  }
  if (begin > 0) begin = text.indexOf(" ", begin) + 1;
  const last = text.lastIndexOf(" ", begin + SNIPPET);
  const end = text.length <= begin + SNIPPET ? text.length : last > begin ? last : begin + SNIPPET;
  /** @type {Piece[]} */
  const pieces = begin > 0 ? [["… ", false]] : [];
  let at = begin;
  const shown = hits.filter((hit) => hit.index >= begin && hit.index + hit[0].length <= end);
  for (const { 0: word, index } of shown) {
    pieces.push([text.slice(at, index), false], [word, true]);
    at = index + word.length;
  }
  pieces.push([text.slice(at, end) + (end < text.length ? " …" : ""), false]);
  return pieces;
}
