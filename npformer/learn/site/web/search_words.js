// Words of the search: a text is split into terms, and the endings of English words are cut off, so that
// "masks", "masked" and "masking" are one term. The index and the questions pass through the same functions.
"use strict";

/** @type {Map<string, string>} */
const STEMS = new Map(); // the words that have been cut, since most words occur many times
const HAN = /\p{Script=Han}/u;

// "√dₖ" becomes "sqrt dk": NFKC turns small letters below the line into letters
/** @param {string} text */
function normalized(text) {
  return text.normalize("NFKC").replaceAll("√", " sqrt ").replaceAll("’", "'").toLowerCase();
}

/**
 * Return the words of a text in lower case. A compound such as layer_norm, LayerNorm or feed-forward is
 * returned in its parts and as a whole. Chinese is returned in pairs of characters.
 * @param {string} text
 * @returns {string[]}
 */
function wordsOf(text) {
  const spaced = text.replace(/([\p{Ll}\d])(\p{Lu})/gu, "$1_$2").replace(/(\p{Lu})(\p{Lu}\p{Ll})/gu, "$1_$2");
  const words = [];
  for (const [compound] of normalized(spaced).matchAll(/[\p{L}\p{N}]+(?:[-_'][\p{L}\p{N}]+)*/gu)) {
    const parts = compound.split(/[-_']/);
    for (const part of parts) words.push(...(HAN.test(part) ? pairs(part) : [part]));
    if (parts.length > 1) words.push(parts.join(""));
  }
  return words;
}

/** @param {string} word */
function pairs(word) {
  const letters = [...word];
  return letters.length < 3 ? [word] : letters.slice(1).map((letter, index) => letters[index] + letter);
}

/**
 * Return a word without its ending.
 * @param {string} word
 */
function stem(word) {
  let found = STEMS.get(word);
  if (found === undefined) STEMS.set(word, (found = cut(word)));
  return found;
}

/** @param {string} word */
function cut(word) {
  if (word.length < 4 || word === "embed" || !/^[a-z]+$/.test(word)) return word;
  const singular = word
    .replace(/(ss|x|z|ch|sh)es$/, "$1")
    .replace(/ies$/, "y")
    .replace(/([^suia])s$/, "$1");
  const base = singular.replace(/(.{3,})(?:ing|ed)$/, "$1");
  const undoubled = base === singular ? base : base.replace(/([bdfgmnprt])\1$/, "$1");
  const root = undoubled
    .replace(/aliz(?:e|ation)?$/, "")
    .replace(/ization$/, "iz")
    .replace(/(.{3,})ation$/, "$1at");
  return root.length > 3 ? root.replace(/e$/, "") : root;
}

/**
 * Return the terms of a text: its words without their endings.
 * @param {string} text
 */
function termsOf(text) {
  return wordsOf(text).map(stem);
}

/**
 * Return whether two words differ by one letter: one more, one less, another one, or two exchanged.
 * @param {string} one
 * @param {string} other
 */
function oneLetterApart(one, other) {
  if (Math.abs(one.length - other.length) > 1 || one === other) return false;
  let start = 0;
  while (start < one.length && one[start] === other[start]) start++;
  const [first, second] = [one.slice(start), other.slice(start)];
  if (first.length > second.length) return first.slice(1) === second;
  if (first.length < second.length) return first === second.slice(1);
  const exchanged = first[0] === second[1] && first[1] === second[0] && first.slice(2) === second.slice(2);
  return first.slice(1) === second.slice(1) || exchanged;
}
