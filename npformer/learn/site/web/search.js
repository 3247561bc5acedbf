// The search: MiniSearch ranks the parts of the pages. Here are the words, their synonyms, and the results.
"use strict";

/**
 * A part of a page: where it is, and its texts.
 * @typedef {{ page: string, id: string, title: string, keywords: string, heading: string, text: string,
 *   code: string }} Part
 */
/** @type {{ parts: Part[], synonyms: Record<string, string>, stop: string[] }} */
const INDEX = Search._index; // of searchindex.js
const MOST = 20; // results
const SNIPPET = 180; // characters
const SYNONYM = 0.4; // the weight of a word that means the same
const REST = 0.2; // the weight of the other parts of a page, beside its best one
const LESSON = 1.3; // the weight of a page of the course
const STOP = new Set(INDEX.stop);
const WORDS = new Intl.Segmenter("zh", { granularity: "word" });

/**
 * Return the words of a text. A compound such as layer_norm, LayerNorm or feed-forward is returned in its
 * parts and as a whole. "√dₖ" becomes "sqrt dk": NFKC turns small letters below the line into letters.
 * @param {string} text
 * @returns {string[]}
 */
function wordsOf(text) {
  const plain = text.normalize("NFKC").replaceAll("√", " sqrt ").replaceAll("’", "'");
  const spaced = plain.replace(/(?<=[\p{Ll}\d])(?=\p{Lu})|(?<=\p{Lu})(?=\p{Lu}\p{Ll})/gu, "_");
  const words = [];
  for (const [compound] of spaced.toLowerCase().matchAll(/[\p{L}\p{N}]+(?:[-_'][\p{L}\p{N}]+)*/gu)) {
    const parts = compound.split(/[-_']/);
    for (const part of parts) {
      const segments = /\p{Script=Han}/u.test(part) ? [...WORDS.segment(part)] : [{ segment: part }];
      words.push(...segments.map(({ segment }) => segment));
    }
    if (parts.length > 1) words.push(parts.join(""));
  }
  return words;
}

/**
 * Return an English word without its ending, so that "masks", "masked" and "masking" are one term.
 * @param {string} word
 */
function stem(word) {
  if (word.length < 4 || word === "embed" || !/^[a-z]+$/.test(word)) return word;
  const singular = word.replace(/(ss|x|z|ch|sh)es$/, "$1").replace(/ies$/, "y").replace(/([^suia])s$/, "$1");
  const base = singular.replace(/(.{3,})(?:ing|ed)$/, "$1").replace(/([bdfgmnprt])\1$/, "$1");
  return base.replace(/aliz(?:e|ation)?$/, "").replace(/(.{3,})ation$/, "$1at").replace(/(.{3,})e$/, "$1");
}

/** @param {string} text */
const termsOf = (text) => wordsOf(text).map(stem);

const FIELDS = { title: 3, keywords: 1, heading: 4, text: 1 }; // with their weights
const ENGINE = new MiniSearch({ fields: Object.keys(FIELDS), tokenize: wordsOf, processTerm: stem });
ENGINE.addAll(INDEX.parts.map((part, id) => ({ ...part, id, text: `${part.text} ${part.code}` })));
/** @type {Map<string, number>} */
const LENGTHS = new Map(); // the number of parts of each page
for (const { page } of INDEX.parts) LENGTHS.set(page, (LENGTHS.get(page) ?? 0) + 1);
const SYNONYMS = Object.entries(INDEX.synonyms).map((pair) => pair.map(termsOf));

/**
 * Return the best pages for a question, each with the part that fits best.
 * @param {string} question
 */
function search(question) {
  const words = wordsOf(question);
  const kept = words.filter((word) => !STOP.has(word));
  /** @type {Map<string, string[]>} */
  const groups = new Map((kept.length ? kept : words).map(stem).map((term) => [term, [term]]));
  const asked = ` ${words.map(stem).join(" ")} `;
  for (const [key, same] of SYNONYMS.filter(([key]) => asked.includes(` ${key.join(" ")} `))) {
    for (const term of key) groups.get(term)?.push(...same);
  }
  const found = ENGINE.search(
    { combineWith: "OR", queries: [...new Set([...groups.values()].flat())] },
    {
      processTerm: (/** @type {string} */ term) => term,
      boost: FIELDS,
      boostTerm: (/** @type {string} */ term) => (groups.has(term) ? 1 : SYNONYM),
      prefix: (/** @type {string} */ term) => groups.has(term) && term.length > 2,
      fuzzy: (/** @type {string} */ term) => groups.has(term) && term.length > 3 && 0.2,
      weights: { prefix: 0.3, fuzzy: 0.7 },
    },
  );
  /** @type {Map<string, Part & { score: number, all: number, asked: Set<string>, terms: string[] }>} */
  const pages = new Map();
  for (const { id, score, queryTerms, terms } of found) {
    const part = INDEX.parts[id];
    const page = pages.get(part.page) ?? { ...part, score, all: 0, asked: new Set(), terms };
    page.all += score;
    for (const term of queryTerms) page.asked.add(term);
    pages.set(part.page, page); // the first part is the best one
  }
  for (const page of pages.values()) {
    const covered = [...groups.values()].filter((group) => group.some((term) => page.asked.has(term)));
    const prior = page.page.startsWith("lessons/") ? LESSON : 1;
    const rest = (REST * page.all) / Math.sqrt(LENGTHS.get(page.page) ?? 1);
    page.score = (page.score + rest) * (0.3 + 0.7 * (covered.length / groups.size) ** 2) * prior;
  }
  return [...pages.values()].sort((one, other) => other.score - one.score).slice(0, MOST);
}

// Sphinx's page of the search shows the results, each with the passage around the first of the terms
Search.query = (/** @type {string} */ question) => {
  const pages = search(question);
  const rows = pages.map(({ page, id, title, heading, text, score, terms }) => {
    const shown = title.includes(heading) ? title : `${title} › ${heading}`;
    const begin = Math.max(0, text.search(RegExp(`(?<!\\w)[^]{0,30}(?:${terms.join("|")})`, "i")));
    const end = begin + SNIPPET;
    const passage = (begin ? "… " : "") + text.slice(begin, end) + (end < text.length ? " …" : "");
    return [page, shown, id && `#${id}`, passage, score, "", "text"];
  });
  const marked = new Set(pages.flatMap(({ terms }) => terms).filter((term) => term.length > 1));
  _displayNextItem(rows.reverse(), rows.length, new Set(), marked); // it takes the last row first
};
