// @ts-check
// What a reader does with a translator: a sentence and its translation, each a list of words.
import { Transformer } from "../engine/transformer.js";
import { UNKNOWN_ID, greedy } from "../engine/greedy.js";
import { MOST_TOKENS, ReaderError, isIds, needsAsMany } from "./reader_error.js";
import { detokenize, similarWords, tokenize } from "./tokenize.js";
import { t } from "../words/text.js";

/**
 * What was read: the ids, the texts, and the model's own output.
 * @typedef {{ids: Ids, texts: {source: string, target: string}, output: string, isOwn: boolean}} Example
 */

/** The words by which the page names what is read and written. */
const TRANSLATION_WORDS = {
  input: t("Sentence"),
  output: t("Translation"),
  soFar: t("Translation so far"),
  leadsTo: t("is translated as"),
  change: t("Change the sentence"),
  own: t("Let the model translate"),
};

const SPECIALS = 4; // ids of a vocabulary that stand for no word

export class Translation {
  /**
   * @param {any} head
   * @param {ConstructorParameters<typeof Transformer>[1]} parameters
   * @param {ConstructorParameters<typeof Transformer>[2]} positions
   */
  constructor(head, parameters, positions) {
    this.head = head;
    this.model = new Transformer(head.config, parameters, positions);
    this.words = TRANSLATION_WORDS;
    this.rate = "0.05"; // the proposed learning rate of gradient descent
    this.specials = SPECIALS;
  }

  /**
   * The example with which the page begins. Its translation may be a given one, which is not the model's own.
   * @returns {Example}
   */
  get example() {
    const { source, target, source_ids: sourceIds, target_ids: targetOut } = this.head.example,
      ids = this.pair(sourceIds, targetOut);
    return { ids, texts: { source, target }, output: this.outputOf(ids, {}), isOwn: true };
  }

  /**
   * Read another pair of sentences.
   * @param {string} source
   * @param {string | null} target   null for the model's own translation
   * @param {Edits} edits
   * @returns {Example}
   */
  read(source, target, edits) {
    const sourceIds = this.idsOf(source, "source");
    const given = target?.trim() ? this.idsOf(target, "target") : null;
    const own = greedy(this.model, sourceIds, edits, this.longest(sourceIds));
    const output = this.textOf(own, "target");
    return {
      ids: this.pair(sourceIds, given ?? [...own, this.model.config.end_id]),
      texts: { source: source.trim(), target: given ? String(target).trim() : output },
      output,
      isOwn: !given,
    };
  }

  /** Return the model's translation. @type {(ids: Ids, edits: Edits) => string} */
  outputOf({ source }, edits) {
    return this.textOf(greedy(this.model, source, edits, this.longest(source)), "target");
  }

  /**
   * What the model reads and writes when a reader writes with it: what stands before the first token, the
   * tokens so far, the token that ends the text, and how many tokens there must and may be.
   * @param {Ids} ids
   */
  writing({ source }) {
    const { start_id: start, end_id: end } = this.model.config,
      tokens = /** @type {number[]} */ ([]);
    return { source, before: [start], tokens, end, least: 1, room: this.longest(source) };
  }

  /**
   * Return the example with tokens that were written.
   * @param {Ids} ids
   * @param {number[]} tokens   without the end symbol
   * @param {Edits} edits
   * @returns {Example}
   */
  written({ source }, tokens, edits) {
    const ids = this.pair(source, [...tokens, this.model.config.end_id]);
    const texts = { source: this.textOf(source, "source"), target: this.textOf(tokens, "target") };
    const output = this.outputOf(ids, edits);
    return { ids, texts, output, isOwn: output === texts.target };
  }

  /**
   * Return the ids of another sentence of as many tokens, with the same translation.
   * @param {Ids} ids
   * @param {string} text
   */
  otherIds(ids, text) {
    const source = this.idsOf(text, "source");
    needsAsMany(ids.source.length, source.length);
    return { ...ids, source };
  }

  /**
   * The tokens that the reader may replace.
   * @param {Ids} ids
   * @returns {["source" | "target", number[]][]}
   */
  tokens({ source, targetOut }) {
    return [["source", source], ["target", targetOut]];
  }

  /**
   * Return the ids and the texts after a token was replaced by another.
   * @param {Ids} ids
   * @param {"source" | "target"} side   "target" changes the decoder's input and what it has to predict
   * @param {number} position
   * @param {number} id
   */
  withToken({ source, targetOut }, side, position, id) {
    const changed = (/** @type {number[]} */ list, /** @type {string} */ of) =>
      list.map((old, t) => (of === side && t === position ? id : old));
    const ids = this.pair(changed(source, "source"), changed(targetOut, "target"));
    const texts = { source: this.textOf(ids.source, "source"), target: this.textOf(ids.targetOut, "target") };
    return { ids, texts };
  }

  /**
   * Return whether something that a link says are ids of this model.
   * @param {any} ids
   */
  fits(ids) {
    const { source_words: sources, target_words: targets } = this.head;
    return (
      isIds(ids?.source, sources.length) &&
      isIds(ids.targetIn, targets.length) &&
      isIds(ids.targetOut, targets.length) &&
      ids.targetIn.length === ids.targetOut.length
    );
  }

  /**
   * Return the id of a token that the reader typed, or -1 if the model does not know it.
   * @param {"source" | "target"} side
   * @param {string} typed
   */
  tokenId(side, typed) {
    return this.head[`${side}_words`].indexOf(typed.trim());
  }

  /**
   * Return the known words that are most similar to one that the reader typed.
   * @param {"source" | "target"} side
   * @param {string} typed
   */
  similar(side, typed) {
    return similarWords(typed.trim(), this.head[`${side}_words`].slice(SPECIALS));
  }

  /**
   * Return a text as the page shows it, and the other way round.
   * @param {string} text
   */
  shown(text) {
    return text;
  }

  /** @param {string} text */
  typed(text) {
    return text;
  }

  /**
   * @param {number[]} source
   * @param {number[]} targetOut
   * @returns {Ids}
   */
  pair(source, targetOut) {
    return { source, targetIn: [this.model.config.start_id, ...targetOut.slice(0, -1)], targetOut };
  }

  /** @param {number[]} source */
  longest(source) {
    return Math.min(2 * source.length + 5, this.model.config.max_length - 1, MOST_TOKENS - 1);
  }

  /** @type {(ids: number[], side: "source" | "target") => string} */
  textOf(ids, side) {
    const last = ids[ids.length - 1] === this.model.config.end_id ? ids.slice(0, -1) : ids;
    return detokenize(last.map((id) => this.head[`${side}_words`][id]));
  }

  /** The tokens of a text; <UNK> is one. @type {(text: string, side: "source" | "target") => string[]} */
  tokensOf(text, side) {
    const { [`${side}_words`]: words, tokenization } = this.head;
    const parts = text.split(/(<[^<>\s]+>)/);
    return parts.flatMap((part) => (words.includes(part) ? [part] : tokenize(part, tokenization[side])));
  }

  /**
   * Return the ids of a text, with the end symbol.
   * @param {string} text
   * @param {"source" | "target"} side
   */
  idsOf(text, side) {
    const name = side === "source" ? t("sentence") : t("translation");
    const words = this.head[`${side}_words`],
      tokens = this.tokensOf(text, side);
    if (!tokens.length) throw new ReaderError(t("The {name} is empty: write at least one word.", { name }));
    const room = Math.min(MOST_TOKENS, this.model.config.max_length);
    if (tokens.length + 1 > room) {
      throw new ReaderError(
        t("The {name} has {count} words, and the page has room for {room}: shorten it.", {
          name,
          count: tokens.length,
          room: room - 1,
        }),
      );
    }
    const said = side === "target" ? this.about(side, text) : null;
    if (said) throw said;
    const ids = tokens.map((token) => (words.includes(token) ? words.indexOf(token) : UNKNOWN_ID));
    return [...ids, this.model.config.end_id];
  }

  /**
   * Return a message about the words of a text that the model does not know, or null if it knows them all.
   * @param {"source" | "target"} side
   * @param {string} text
   */
  about(side, text) {
    const words = this.head[`${side}_words`],
      tokens = this.tokensOf(text, side);
    const unknown = [...new Set(tokens.filter((token) => !words.includes(token)))];
    if (!unknown.length) return null;
    const quoted = unknown.map((word) => `“${word}”`).join(t(", "));
    return new ReaderError(
      side === "source"
        ? t("The model does not know {quoted} and reads <UNK> instead.", { quoted })
        : t("The model does not know {quoted}: choose words of its vocabulary.", { quoted }),
      unknown.map((word) => ({ word, known: this.similar(side, word) })),
    );
  }
}
