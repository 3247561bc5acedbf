// @ts-check
// What a reader does with a language model of characters: one text, which the model continues.
import { GPT } from "../engine/gpt.js";
import { continuation } from "../engine/greedy.js";
import { MOST_TOKENS, ReaderError, isIds, needsAsMany } from "./reader_error.js";
import { t } from "../words/text.js";

/** The words by which the page names what is read and written. */
const CONTINUATION_WORDS = {
  input: t("Text"),
  output: t("Continuation"),
  soFar: t("Text so far"),
  leadsTo: t("is continued by"),
  change: t("Change the text"),
  own: "", // the text goes on where the reader writes with the model
};

const NO_TARGET = -1; // the target of the last token, which nothing follows

/** What has no comment of its own here does what it does in a Translation. */
export class Continuation {
  /**
   * @param {any} head
   * @param {ConstructorParameters<typeof GPT>[1]} parameters
   * @param {ConstructorParameters<typeof GPT>[2]} positions
   */
  constructor(head, parameters, positions) {
    this.head = head;
    this.model = new GPT(head.config, parameters, positions);
    this.words = CONTINUATION_WORDS;
    this.rate = "0.01"; // the proposed learning rate of gradient descent
    this.specials = 0;
    /** @type {Map<string, number>} */
    this.ids = new Map(head.characters.map((/** @type {string} */ c, /** @type {number} */ id) => [c, id]));
    this.lineEnd = head.target_words[this.ids.get("\n") ?? -1] ?? "\n"; // a sign, since a field has one line
    this.room = Math.min(MOST_TOKENS, head.config.context);
  }

  /**
   * The example with which the page begins.
   * @returns {Example}
   */
  get example() {
    return this.exampleOf(this.head.example.text_ids, {});
  }

  /** Read another text, which has no other side. @type {Translation["read"]} */
  read(source, _target, edits) {
    return this.exampleOf(this.idsOf(source), edits);
  }

  /**
   * @param {number[]} text
   * @param {Edits} edits
   * @returns {Example}
   */
  exampleOf(text, edits) {
    const ids = this.shifted(text);
    return { ids, texts: this.textsOf(ids), output: this.outputOf(ids, edits), isOwn: true };
  }

  /** Return the model's continuation of the text. @type {Translation["outputOf"]} */
  outputOf({ targetIn: text }, edits) {
    return this.textOf(continuation(this.model, text, edits, this.head.continued));
  }

  /** @type {Translation["writing"]} */
  writing({ targetIn }) {
    return { source: [], before: [], tokens: [...targetIn], end: NO_TARGET, least: 2, room: this.room };
  }

  /** @type {Translation["written"]} */
  written(_ids, tokens, edits) {
    return this.exampleOf(tokens, edits);
  }

  /** Return the ids of another text of as many tokens. @type {Translation["otherIds"]} */
  otherIds({ targetIn }, text) {
    const other = this.idsOf(this.typed(text));
    needsAsMany(targetIn.length, other.length);
    return this.shifted(other);
  }

  /** @type {Translation["tokens"]} */
  tokens({ targetIn }) {
    return [["target", targetIn]];
  }

  /** A token that is replaced is read and also to be predicted. @type {Translation["withToken"]} */
  withToken({ targetIn }, _side, position, id) {
    const ids = this.shifted(targetIn.map((old, t) => (t === position ? id : old)));
    return { ids, texts: this.textsOf(ids) };
  }

  /** @type {Translation["fits"]} */
  fits(ids) {
    const isText = isIds(ids?.targetIn, this.ids.size) && ids.targetIn.length <= this.room;
    return isText && JSON.stringify(ids) === JSON.stringify(this.shifted(ids.targetIn));
  }

  /** Return the id of a character that the reader typed, or of its sign. @type {Translation["tokenId"]} */
  tokenId(_side, typed) {
    return this.ids.get(typed) ?? this.head.target_words.indexOf(typed.trim());
  }

  /** There are no similar characters. @type {Translation["similar"]} */
  similar() {
    return [];
  }

  /** Every character that is read is known. @type {Translation["about"]} */
  about() {
    return null;
  }

  /** Return a text as the page shows it, in one line, and back. @type {Translation["shown"]} */
  shown(text) {
    return text.replaceAll("\n", this.lineEnd);
  }

  /** @type {Translation["typed"]} */
  typed(text) {
    return text.replaceAll(this.lineEnd, "\n");
  }

  /**
   * Return the ids of a text: each token is to predict the next one.
   * @param {number[]} text
   * @returns {Ids}
   */
  shifted(text) {
    return { source: [], targetIn: text, targetOut: [...text.slice(1), NO_TARGET] };
  }

  /** @param {Ids} ids */
  textsOf({ targetIn }) {
    return { source: this.textOf(targetIn), target: "" };
  }

  /** @param {number[]} ids */
  textOf(ids) {
    return ids.map((id) => this.head.characters[id]).join("");
  }

  /**
   * Return the ids of the characters of a text.
   * @param {string} text
   */
  idsOf(text) {
    const characters = [...text]; // code points, as in Python
    if (characters.length < 2) {
      throw new ReaderError(t("The text is too short: write at least two characters."));
    }
    if (characters.length > this.room) {
      const values = { count: characters.length, room: this.room };
      throw new ReaderError(
        t("The text has {count} characters, and the page has room for {room}: shorten it.", values),
      );
    }
    const unknown = [...new Set(characters.filter((character) => !this.ids.has(character)))];
    if (unknown.length) {
      const quoted = unknown.map((character) => `“${character}”`).join(t(", "));
      throw new ReaderError(
        t("The model does not know {quoted}: use characters of its vocabulary.", { quoted }),
      );
    }
    return characters.map((character) => /** @type {number} */ (this.ids.get(character)));
  }
}
