// The ranking of the search. Every page has a score for every word of the question: how often the word
// occurs, in which field, and how rare it is (BM25 with fields: Robertson and Zaragoza 2009, section 3.6).
// The part of the page that fits best adds its own score, and is the one to which the result leads.
"use strict";

/** @typedef {{ pages: Row[], synonyms: Record<string, string>, stop: string[],
 * names: Record<string, string> }} Index */
/** @typedef {{ main: boolean, alternatives: Option[][] }} Group */
/**
 * @typedef {{ path: string, title: string, section: string, id: string, heading: string, score: number,
 *   snippet: Piece[] }} Result
 */

// the weight of each field, and how much the length of the field counts
const FIELDS = /** @type {const} */ ({
  title: [6, 0.4],
  keywords: [2, 0.8],
  headings: [2.5, 0.75],
  text: [1, 0.75],
});
const PART = { heading: 4, text: 1, length: 0.7 };
const SATURATION = 2;
const SYNONYM = 0.7; // the weight of a synonym
const [NAMED, HEADED] = [0.8, 0.4]; // the weights of a title and of a heading with the words of the question
/** @type {Record<string, number>} */
const SECTIONS = {
  Lessons: 1.15,
  Glossary: 0.9,
  Explorer: 0.9,
  "Bug zoo": 0.85,
  Reference: 0.8,
  Gallery: 0.75,
};
const REFERENCE_OF_CODE = 1.6; // the weight of the reference if the question is a name in the code
const EXAMINED = 40; // pages whose parts are ranked

class Searcher {
  /** @param {Index} index */
  constructor(index) {
    this.pages = index.pages;
    this.stop = new Set(index.stop);
    this.counts = new TermCounts(index.pages);
    this.synonyms = Object.entries(index.synonyms).map(([key, value]) => ({
      key: termsOf(key),
      phrases: value.split(", ").map((phrase) => [...new Set(termsOf(phrase))]),
    }));
  }

  /**
   * Return the results for a question, the best one first.
   * @param {string} question
   * @param {number} most The largest number of results.
   * @returns {Result[]}
   */
  search(question, most = 20) {
    const groups = this.groups(question);
    const main = groups.filter((group) => group.main);
    const code = /\w[_.]\w|\p{Ll}\p{Lu}/u.test(question);
    const rough = [...this.candidates(groups)]
      .map((page) => this.pageScore(groups, page, code))
      .filter(({ score }) => score > 0);
    rough.sort((one, other) => other.score * other.weight - one.score * one.weight || one.page - other.page);
    const found = rough.slice(0, EXAMINED).map(({ page, score, weight }) => {
      const [part, best] = this.bestPart(groups, page);
      const heading = this.pages[page][4][part]?.[1] ?? "";
      return { page, part, score: (score + best) * (weight + HEADED * this.naming(main, heading)) };
    });
    found.sort((one, other) => other.score - one.score || one.page - other.page);
    const terms = new Set(groups.flatMap((group) => group.alternatives.flat().map((option) => option.term)));
    return found.slice(0, most).map((each) => this.result(each, terms));
  }

  /**
   * Return the score of a page without its parts, and the weight of the page: how much of the question it
   * has, how well its title fits, and to which section it belongs.
   * @param {Group[]} groups
   * @param {number} page
   * @param {boolean} code True if the question is a name in the code.
   */
  pageScore(groups, page, code) {
    const main = groups.filter((group) => group.main);
    const [, title, section] = this.pages[page];
    let [score, matched, all] = [0, 0, 0];
    for (const group of groups) {
      const each = this.groupScore(group, page);
      score += each.score;
      if (group.main) matched += each.share * this.rarity(group);
      if (group.main) all += this.rarity(group);
    }
    const coverage = all === 0 ? 0 : matched / all;
    const prior = code && section === "Reference" ? REFERENCE_OF_CODE : (SECTIONS[section] ?? 1);
    const named = 1 + NAMED * this.naming(main, title);
    return { page, score, weight: (0.3 + 0.7 * coverage ** 2) * named * prior };
  }

  /**
   * Return the groups of terms for a question, one for each word. A group has the word and its synonyms as
   * alternatives, of which one suffices. The terms of an alternative belong together.
   * @param {string} question
   * @returns {Group[]}
   */
  groups(question) {
    const words = wordsOf(question);
    const kept = words.filter((word) => !this.stop.has(word));
    const terms = [...new Set((kept.length ? kept : words).map(stem))];
    const sequence = words.map(stem);
    const groups = terms.map((term) => ({
      main: true,
      alternatives: [[{ term, weight: 1 }], ...this.counts.similar(term)],
    }));
    for (const { key, phrases } of this.synonyms) {
      if (!contains(sequence, key)) continue;
      const alternatives = phrases.map((phrase) => phrase.map((term) => ({ term, weight: SYNONYM })));
      const own = groups.filter((_, index) => key.includes(terms[index]));
      for (const group of own) group.alternatives.push(...alternatives);
      if (own.length === 0) groups.push({ main: false, alternatives });
    }
    return groups;
  }

  /**
   * Return how well a title names what a question asks for: from 0 to 1, where 1 means the same words.
   * @param {Group[]} main
   * @param {string} title
   */
  naming(main, title) {
    const terms = new Set(termsOf(title).filter((term) => !this.stop.has(term) && !/^\d/.test(term)));
    const asked = main.filter((group) =>
      group.alternatives.some((each) => each.every(({ term }) => terms.has(term))),
    );
    const options = new Set(main.flatMap((group) => group.alternatives.flat().map(({ term }) => term)));
    const shared = [...terms].filter((term) => options.has(term)).length;
    return main.length && terms.size ? (asked.length / main.length) ** 2 * (shared / terms.size) : 0;
  }

  /** @param {Group[]} groups */
  candidates(groups) {
    const pages = new Set(/** @type {number[]} */ ([]));
    for (const { term } of groups.flatMap((group) => group.alternatives.flat())) {
      for (const page of this.counts.pages.get(term)?.keys() ?? []) pages.add(page);
    }
    return pages;
  }

  /** @param {Group} group */
  rarity(group) {
    const [first] = group.alternatives[0];
    const terms = this.counts.pages.has(first.term) ? [first] : group.alternatives.flat();
    return Math.max(0.5, ...terms.map((option) => this.counts.idf(option.term)));
  }

  /**
   * Return the score of a page for a group, that of the best alternative, and how much of it the page has.
   * @param {Group} group
   * @param {number} page
   */
  groupScore(group, page) {
    let [score, share] = [0, 0];
    for (const alternative of group.alternatives) {
      const scores = alternative.map((option) => option.weight * this.termScore(option.term, page));
      const present = scores.filter((each) => each > 0).length / alternative.length;
      const mean = (scores.reduce((sum, each) => sum + each, 0) / alternative.length) * present;
      score = Math.max(score, mean);
      share = Math.max(share, present ** 2 * alternative[0].weight);
    }
    return { score, share };
  }

  /**
   * @param {string} term
   * @param {number} page
   */
  termScore(term, page) {
    const counts = this.counts.on(term, page);
    if (!counts) return 0;
    let frequency = 0;
    for (const field of FIELD_NAMES) {
      const [weight, b] = FIELDS[field];
      const length = 1 - b + (b * this.counts.lengths[page][field]) / (this.counts.mean[field] || 1);
      frequency += (weight * counts[field]) / length;
    }
    return (this.counts.idf(term) * frequency) / (frequency + SATURATION);
  }

  /**
   * Return the part of a page that fits best, with its score.
   * @param {Group[]} groups
   * @param {number} page
   */
  bestPart(groups, page) {
    const lengths = this.counts.lengths[page].parts;
    const sums = new Map(/** @type {[number, number][]} */ ([]));
    for (const group of groups) {
      const best = new Map(/** @type {[number, number][]} */ ([]));
      for (const alternative of group.alternatives) {
        for (const { term, weight } of alternative) {
          for (const [part, [heading, text]] of this.counts.on(term, page)?.parts ?? []) {
            const share = lengths[part] / this.counts.mean.part;
            const length = 1 - PART.length + PART.length * share;
            const frequency = PART.heading * heading + (PART.text * text) / length;
            const score = (weight * this.counts.idf(term) * frequency) / (frequency + SATURATION);
            best.set(part, Math.max(best.get(part) ?? 0, score / alternative.length));
          }
        }
      }
      for (const [part, score] of best) sums.set(part, (sums.get(part) ?? 0) + score);
    }
    return [...sums].reduce((first, other) => (other[1] > first[1] ? other : first), [0, 0]);
  }

  /**
   * @param {{ page: number, part: number, score: number }} found
   * @param {Set<string>} terms
   * @returns {Result}
   */
  result({ page, part, score }, terms) {
    const [path, title, section, , parts] = this.pages[page];
    const [id, heading, text] = parts[part] ?? ["", "", "", ""];
    return { path, title, section, id, heading, score, snippet: snippetOf(text, terms) };
  }
}

/**
 * Return whether the terms of a phrase follow each other in a question.
 * @param {string[]} sequence
 * @param {string[]} phrase
 */
function contains(sequence, phrase) {
  return sequence.some((_, start) => phrase.every((term, index) => sequence[start + index] === term));
}
