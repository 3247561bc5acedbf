// @ts-check
// GPT, a decoder-only model, with the settings of the package's GPTConfig. It reads one text and predicts the
// next token at each position.
import { ForwardPass, Model } from "./pass.js";
import { gatedActivation, isGated } from "./activations.js";
import { rmsNorm } from "./normalization.js";
import { textMask } from "./masks.js";

// the settings of a Transformer that every GPT has
const PARTS = {
  scale_embedding: false,
  fused_projections: true,
  projection_activation: "none",
  attention_output: true,
  scale_scores: true,
  mask_fill: -Infinity,
  masking_how: "replace",
  query_masking: "none",
  feed_forward_dropout: 0,
};

/** The model. In its ids, targetIn is the text, and targetOut the token after each, -1 after the last. */
export class GPT extends Model {
  /** @type {(edits: Edits, tape: Tape) => GPTPass} */
  startPass(edits, tape) {
    return new GPTPass(this, edits, tape);
  }
}

/** One forward pass through a GPT. */
export class GPTPass extends ForwardPass {
  /**
   * @param {Model} model
   * @param {Edits} edits
   * @param {Tape} tape
   */
  constructor(model, edits, tape) {
    super(model, edits, tape, "n-da");
    const { dropout } = this.config;
    /** @type {import("./masks.js").Config} */
    this.config = { ...PARTS, attention_dropout: dropout, ...this.config };
  }

  /** The last token of a text has no target, and tokens that are no padding may have any id. */
  get noTarget() {
    return -1;
  }

  /** text (T,) -> logits (T, V). @param {import("./pass.js").Ids} ids */
  logits({ targetIn: text }) {
    const { tape, config, positions } = this;
    const tokens = this.parameter("embedding.tokens.weight"); // (V, D)
    const learned = config.positions === "learned" ? this.parameter("embedding.positions.weight") : null;
    let x = this.embedding("embedding", text, tokens, learned); // (T, D)
    if (positions) {
      const shape = [text.length, config.d_head], table = positions.subarray(0, text.length * config.d_head);
      this.rotary = tape.record("constant", "positions.table", shape, table, [], {}, "rotary_table");
    }
    const mask = textMask(config.window);
    for (let i = 0; i < config.n_layers; i++) x = this.layer(`layers.${i}`, x, mask);
    return this.predict(x);
  }

  /** The logits for the output of a layer: x (T, D) -> (T, V). @param {Step} x */
  predict(x) {
    const tied = this.config.tied ? this.parameter("embedding.tokens.weight") : null;
    return this.output(this.norm("norm", x), tied);
  }

  /**
   * The feed-forward network, in which a gated activation has two linear maps: x (T, D) -> y (T, D).
   * @param {string} path
   * @param {Step} x
   */
  feedForward(path, x) {
    const { tape, config } = this;
    if (!isGated(config.activation)) return super.feedForward(path, x);
    const gate = this.linear(`${path}.gate`, x); // (T, F)
    const value = this.linear(`${path}.value`, x); // (T, F)
    const h = gatedActivation(tape, `${path}.hidden.y`, `${path}.gated`, gate, value, config.activation);
    return this.linear(`${path}.outer`, h);
  }

  /**
   * Layer norm or RMS norm: x (T, D) -> y (T, D).
   * @param {string} path
   * @param {Step} x
   */
  norm(path, x) {
    if (this.config.norm === "layer") return super.norm(path, x);
    return rmsNorm(this.tape, path, x, this.parameter(`${path}.gain`), this.config.norm_eps);
  }
}
