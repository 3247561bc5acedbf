// @ts-check
// The encoder-decoder Transformer of Vaswani et al. 2017, with the settings of the package's
// TransformerConfig.
import { ForwardPass, Model } from "./pass.js";
import { causalMask, sourceMask } from "./masks.js";

/** The model. In its ids, targetIn is the start symbol, followed by all tokens of targetOut but the last. */
export class Transformer extends Model {
  /** @type {(edits: Edits, tape: Tape) => TransformerPass} */
  startPass(edits, tape) {
    return new TransformerPass(this, edits, tape);
  }
}

/** One forward pass through a Transformer. */
export class TransformerPass extends ForwardPass {
  /**
   * @param {Model} model
   * @param {Edits} edits
   * @param {Tape} tape
   */
  constructor(model, edits, tape) {
    const { norm } = { ...model.config, ...edits.settings };
    super(model, edits, tape, norm.includes("-") ? norm : norm === "pre" ? "n-da" : "-dan");
  }

  /**
   * The encoder and the decoder: source ids (S,), targetIn ids (T,) -> logits (T, V).
   * @param {import("./pass.js").Ids} ids
   */
  logits({ source, targetIn }) {
    return this.decode(targetIn, this.encode(source), source);
  }

  /**
   * The encoder: source ids (S,) -> memory (S, D).
   * @param {number[]} source
   */
  encode(source) {
    const mask = sourceMask(this.config, source);
    let x = this.embeddingOf("source", source);
    for (let i = 0; i < this.config.n_layers; i++) x = this.layer(`encoder.${i}`, x, mask);
    if (this.config.final_norm) x = this.norm("encoder.norm", x);
    return this.tape.alias("memory", x);
  }

  /**
   * The decoder and the output projection: targetIn ids (T,), memory (S, D) -> logits (T, V).
   * @param {number[]} targetIn
   * @param {Step} memory
   * @param {number[]} source
   */
  decode(targetIn, memory, source) {
    const mask = causalMask(this.config, targetIn);
    const memoryMask = sourceMask(this.config, source, targetIn);
    let x = this.embeddingOf("target", targetIn);
    for (let i = 0; i < this.config.n_layers; i++) {
      x = this.layer(`decoder.${i}`, x, mask, { memory, mask: memoryMask });
    }
    return this.predict(x);
  }

  /**
   * The logits for the output of a decoder layer: x (T, D) -> (T, V).
   * @param {Step} x
   */
  predict(x) {
    if (this.config.final_norm) x = this.norm("decoder.norm", x);
    return this.output(x, this.config.tied === "none" ? null : this.tokenVectors("target"));
  }

  /**
   * Token vectors plus position vectors: ids (T,) -> x (T, D).
   * @param {"source" | "target"} side
   * @param {number[]} ids
   */
  embeddingOf(side, ids) {
    return this.embedding(side, ids, this.tokenVectors(side), this.positionVectors(side));
  }

  /** @param {"source" | "target"} side */
  tokenVectors(side) {
    return this.parameter(`${this.config.tied === "all" ? "source" : side}.tokens.weight`);
  }

  /** @param {"source" | "target"} side */
  positionVectors(side) {
    const { tape, config, positions } = this;
    if (config.positions === "learned") return this.parameter(`${side}.positions.weight`);
    if (!positions) return null; // "relative" or "none"
    const shape = [positions.length / config.d_model, config.d_model];
    return tape.record("constant", `${side}.positions.table`, shape, positions, []);
  }
}
