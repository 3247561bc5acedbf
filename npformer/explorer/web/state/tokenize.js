// @ts-check
// From text to tokens and back, by the rules of npformer/data/tokens.py.

// a combining mark; those of the first plane only, as in Python
const MARK = "(?:(?![\\u{10000}-\\u{10ffff}])\\p{M})";
const RUN = `[\\p{L}\\p{N}](?:[\\p{L}\\p{N}\\u200c\\u200d]|${MARK})*`;
const NUMBER = "(?<=\\p{Nd})[.,:](?=\\p{Nd})";
// Python counts these control characters as spaces
const OTHER = `[^\\s\\x1c-\\x1f\\x85](?:[\\u200c\\u200d]|${MARK})*`;
const CLOSING = ".,;:!?)]}…%。，、；：！？）";
const OPENING = "([{（¿¡";
const QUOTES = '"„“”';

/**
 * Return the words and punctuation marks of a text.
 * @param {string} text
 * @param {{lowercase: boolean, elision: boolean}} rules   elision: l'animal becomes l' animal, as in French
 * @returns {string[]}
 */
export function tokenize(text, { lowercase, elision }) {
  const same = (lowercase ? text.toLowerCase() : text)
    .replace(/[\u2019\u02bc]/g, "'")
    .replace(/[\u2010\u2011]/g, "-")
    .replace(/\u200b/g, " ")
    .replace(/[\u00ad\ufeff]/g, "")
    .normalize("NFC");
  const word = `${RUN}(?:(?:${elision ? "-" : "['-]"}|${NUMBER})${RUN})*`;
  const elided = `(?:[cdjlmnst]|[\\p{L}\\p{N}]*qu)'|${word}'(?=[\\p{L}\\p{N}])`;
  const whole = "aujourd'hui(?![\\p{L}\\p{N}])";
  const pattern = elision ? `${whole}|${elided}|${word}|${OTHER}` : `${word}|${OTHER}`;
  return same.match(new RegExp(pattern, "giu")) ?? [];
}

/**
 * Join words as people write them: no space after l' or an opening bracket, none before a full stop.
 * @param {string[]} words
 */
export function detokenize(words) {
  let text = "",
    space = false,
    quoted = false;
  for (const word of words) {
    const isQuote = QUOTES.includes(word);
    const opens = OPENING.includes(word) || (isQuote && !quoted);
    const closes = CLOSING.includes(word) || (isQuote && quoted);
    if (isQuote) quoted = !quoted;
    text += (space && !closes ? " " : "") + word;
    space = !(opens || (word.endsWith("'") && word !== "'"));
  }
  return text;
}

/**
 * Return the known words that are most similar to a word: those with the fewest changes of letters, and among
 * these the ones of the most similar length. A punctuation mark, for which no word stands, gives "".
 * @param {string} typed
 * @param {string[]} known
 * @param {number} count
 */
export function similarWords(typed, known, count = 3) {
  const word = typed.replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, "");
  if (!word) return [""];
  const near = known.map((other) => ({
    other,
    distance: editDistance(word, other) - (other.startsWith(word) ? 2 : 0),
    difference: Math.abs(other.length - word.length),
  }));
  near.sort((a, b) => a.distance - b.distance || a.difference - b.difference);
  return near
    .filter(({ distance }) => distance <= Math.max(2, word.length / 2))
    .slice(0, count)
    .map(({ other }) => other);
}

/**
 * Return how many letters must be inserted, left out, replaced or exchanged with the next one to turn a word
 * into another.
 * @type {(a: string, b: string) => number}
 */
function editDistance(a, b) {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= a.length; i++) {
    const above = rows[i - 1],
      row = [i];
    for (let j = 1; j <= b.length; j++) {
      row[j] = Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1));
      const isExchanged = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      if (isExchanged) row[j] = Math.min(row[j], rows[i - 2][j - 2] + 1);
    }
    rows.push(row);
  }
  return rows[a.length][b.length];
}
