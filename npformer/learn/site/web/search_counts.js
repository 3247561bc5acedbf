// How often each term occurs on each page of the site: in its title, its keywords, its headings and its text,
// and in each of its parts.
"use strict";

/** @typedef {[id: string, heading: string, text: string, code: string]} Part */
/** @typedef {[path: string, title: string, section: string, keywords: string, parts: Part[]]} Row */
/**
 * @typedef {{ title: number, keywords: number, headings: number, text: number,
 *   parts: Map<number, [heading: number, text: number]> }} Counts
 */
/** @typedef {{ term: string, weight: number }} Option */

const FIELD_NAMES = /** @type {const} */ (["title", "keywords", "headings", "text"]);
const MOST_RARE = 3; // the largest weight of a word, so that a rare everyday word does not decide
const [PREFIX, ONLY_PREFIX, TYPO] = [0.3, 0.8, 0.7]; // longer words, those of an unknown word, typos
const LONGEST_LIST = 40; // longer words of a prefix, and typos

class TermCounts {
  /** @param {Row[]} pages */
  constructor(pages) {
    this.n = pages.length;
    /** @type {Map<string, Map<number, Counts>>} */
    this.pages = new Map();
    this.mean = { title: 0, keywords: 0, headings: 0, text: 0, part: 0 };
    this.lengths = pages.map((row, page) => this.read(row, page));
    this.mean.part = this.mean.text / this.lengths.reduce((sum, each) => sum + each.parts.length, 0);
    for (const field of FIELD_NAMES) this.mean[field] /= this.n;
    this.vocabulary = [...this.pages.keys()].sort();
  }

  /**
   * Count the terms of a page.
   * @param {Row} row
   * @param {number} page
   */
  read([, title, , keywords, parts], page) {
    const lengths = { title: 0, keywords: 0, headings: 0, text: 0, parts: /** @type {number[]} */ ([]) };
    for (const term of termsOf(title)) this.count(term, page).title++, lengths.title++;
    for (const term of termsOf(keywords)) this.count(term, page).keywords++, lengths.keywords++;
    parts.forEach(([, heading, text, code], number) => {
      for (const term of termsOf(heading)) {
        const counts = this.count(term, page);
        counts.headings++, lengths.headings++;
        inPart(counts, number)[0]++;
      }
      const terms = [...termsOf(text), ...termsOf(code)];
      for (const term of terms) {
        const counts = this.count(term, page);
        counts.text++;
        inPart(counts, number)[1]++;
      }
      lengths.text += terms.length;
      lengths.parts.push(terms.length);
    });
    for (const field of FIELD_NAMES) this.mean[field] += lengths[field];
    return lengths;
  }

  /**
   * Return the counts of a term on a page.
   * @param {string} term
   * @param {number} page
   */
  count(term, page) {
    const pages = entry(this.pages, term, () => /** @type {Map<number, Counts>} */ (new Map()));
    return entry(pages, page, () => ({ title: 0, keywords: 0, headings: 0, text: 0, parts: new Map() }));
  }

  /**
   * Return the counts of a term on a page, or undefined.
   * @param {string} term
   * @param {number} page
   */
  on(term, page) {
    return this.pages.get(term)?.get(page);
  }

  /**
   * Return how rare a term is: the logarithm of the share of pages that have it.
   * @param {string} term
   */
  idf(term) {
    const n = this.pages.get(term)?.size ?? 0;
    return Math.min(MOST_RARE, Math.log(1 + (this.n - n + 0.5) / (n + 0.5)));
  }

  /**
   * Return longer words that begin with a term, and words with one wrong letter if there is no such term.
   * @param {string} term
   */
  similar(term) {
    const known = this.pages.has(term);
    const longer = this.vocabulary.filter((other) => other !== term && other.startsWith(term));
    if (term.length < 3) longer.length = 0;
    const weight = known ? PREFIX : ONLY_PREFIX;
    const options = longer.slice(0, LONGEST_LIST).map((other) => [{ term: other, weight }]);
    if (!known && longer.length === 0 && term.length > 3) {
      const near = this.vocabulary.filter((other) => oneLetterApart(term, other));
      options.push(...near.slice(0, LONGEST_LIST).map((other) => [{ term: other, weight: TYPO }]));
    }
    return options;
  }
}

/**
 * @param {Counts} counts
 * @param {number} part
 */
function inPart(counts, part) {
  return entry(counts.parts, part, () => [0, 0]);
}

/**
 * Return the value of a key, which is made at its first use.
 * @template K, V
 * @param {Map<K, V>} map
 * @param {K} key
 * @param {() => V} make
 */
function entry(map, key, make) {
  let value = map.get(key);
  if (value === undefined) map.set(key, (value = make()));
  return value;
}
