// @ts-check
// A text that the reader writes with the model: the tokens so far, and the probabilities of the next one.
import { predictorOf } from "../engine/greedy.js";
import { drawToken, tokenProbabilities } from "../engine/sampling.js";

export class Writer {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    /** @type {import("../engine/sampling.js").Sampling} */
    this.sampling = { temperature: 1, topK: null, topP: null };
    /** @type {number[]} */
    this.tokens = [];
    this.start = ""; // the state of the session for which the tokens were begun
    this.known = ""; // the state and the tokens of the logits
    /** @type {Float64Array} */
    this.logits = new Float64Array(0);
    /** @type {((ids: number[]) => Float64Array)} */
    this.predict = () => this.logits;
  }

  /** @returns {ReturnType<import("./translation.js").Translation["writing"]>} what the model reads, writes */
  get writing() {
    const { task, ids } = this.session;
    return /** @type {any} */ (task).writing(ids);
  }

  /** Begin again where the sentence or the model is another one, and compute the logits of the next token. */
  update() {
    const { session } = this,
      { model, edits } = session;
    if (!model) return;
    const start = `${session.state} ${session.log.length} ${session.loss}`,
      { source, before, tokens } = this.writing;
    if (start !== this.start) {
      this.start = start;
      this.tokens = tokens;
      this.predict = predictorOf(model, source, edits);
    }
    const known = `${start} ${this.tokens.join()}`;
    if (known !== this.known && !this.isDone) this.logits = this.predict([...before, ...this.tokens]);
    this.known = known;
  }

  /** Whether the text has ended, or no token has room. */
  get isDone() {
    const { end, room } = this.writing;
    return this.tokens[this.tokens.length - 1] === end || this.tokens.length >= room;
  }

  /** The probabilities of all tokens of the vocabulary. */
  get probabilities() {
    return tokenProbabilities(this.logits, this.sampling);
  }

  /** @param {number} id */
  take(id) {
    if (this.isDone) return;
    this.tokens = [...this.tokens, id];
    this.update();
  }

  /** Take a token at random, with its probability. */
  draw() {
    if (!this.isDone) this.take(drawToken(this.probabilities, Math.random()));
  }

  /** Take tokens until the text ends. */
  drawAll() {
    while (!this.isDone) this.draw();
  }

  /** Go back to the first tokens. @type {(count: number) => void} */
  keep(count) {
    this.tokens = this.tokens.slice(0, Math.max(count, this.writing.least - 1));
    this.update();
  }

  /** Send the text through the model: it becomes that of the page. */
  use() {
    const { session, tokens } = this,
      { end } = this.writing;
    const written = tokens[tokens.length - 1] === end ? tokens.slice(0, -1) : tokens;
    session.change("", (task, edits) => task.written(/** @type {any} */ (session.ids), written, edits));
    this.update();
    this.tokens = tokens;
    this.update();
  }

  /** Begin with the tokens of the page again. */
  restart() {
    this.start = "";
    this.update();
  }
}
