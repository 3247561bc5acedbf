// @ts-check
// A model, and a forward pass through it: what all models of the page have in common. A pass writes each
// array on a tape, under the name that it has in the package's caches.
import { Tape } from "./tape.js";
import { add, embed, linear, multiplyEntries, transpose } from "./linear.js";
import { layerNorm } from "./normalization.js";
import { activate } from "./activations.js";
import { crossEntropy } from "./losses.js";
import { multiHeadAttention } from "./multi_head.js";

/**
 * The token ids of an example. A model that reads one text has no source.
 * @typedef {{source: number[], targetIn: number[], targetOut: number[]}} Ids
 */

/**
 * What the reader changed. An attention is named by its path, such as "decoder.0.cross".
 *
 * @typedef {object} Edits
 * @property {Record<string, number[]>} [heads]    for an attention, the heads that are switched off
 * @property {Record<string, [number, number, boolean | number][]>} [masks]  for an attention, changed cells
 *     of its mask: a query, a key, and whether the query may attend to the key
 * @property {import("./tape.js").ValueEdits} [values]  for an array or a parameter, changed values
 * @property {Record<string, number[]>} [dropout]  for a dropout mask, the dropped entries
 * @property {Config} [settings]                   changed settings, such as {activation: "gelu"}
 */

/** The parameters of a model, and the results of its last run. */
export class Model {
  /**
   * @param {Config} config
   * @param {Map<string, {shape: number[], data: ArrayLike<number>}>} parameters   by their names on the tape
   * @param {ArrayLike<number> | null} positions   the table of positions that is not learned, or null
   */
  constructor(config, parameters, positions) {
    this.config = config;
    /** @type {Map<string, {shape: number[], data: Float64Array}>} */
    this.parameters = new Map();
    // the gradients of the last run: each run uses this memory again, since new memory takes time
    /** @type {Map<string, Float64Array>} */
    this.gradients = new Map();
    for (const [name, { shape, data }] of parameters) {
      this.parameters.set(name, { shape, data: Float64Array.from(data) });
      this.gradients.set(name, new Float64Array(data.length));
    }
    this.positions = positions && Float64Array.from(positions);
    this.tape = new Tape(); // of the last run
    this.loss = 0;
  }

  /**
   * Return a forward pass of this model that writes on a tape. Each kind of model has its own.
   * @param {Edits} edits
   * @param {Tape} tape
   */
  startPass(edits, tape) {
    return new ForwardPass(this, edits, tape, "n-da");
  }

  /**
   * Compute the loss of an example, and all gradients.
   * @param {Ids} ids
   * @param {Edits} edits
   */
  run(ids, edits = {}) {
    const tape = new Tape(edits.values);
    const loss = this.startPass(edits, tape).loss(ids);
    tape.backward();
    this.tape = tape;
    this.loss = loss.data[0];
    return tape;
  }

  /**
   * Return a pass on a tape of its own. The last run stays as it is.
   * @param {Edits} edits
   * @param {boolean} hasGradients
   */
  passApart(edits, hasGradients = false) {
    const { gradients } = this;
    this.gradients = new Map(); // the tape gets memory of its own
    const pass = this.startPass(edits, new Tape(edits.values, hasGradients));
    this.gradients = gradients;
    return pass;
  }

  /** Return the loss of an example, without gradients. @type {(ids: Ids, edits: Edits) => number} */
  lossOf(ids, edits) {
    return this.passApart(edits).loss(ids).data[0];
  }
}

/** One forward pass. Each method is a layer, which takes the steps of its inputs and returns its output. */
export class ForwardPass {
  /**
   * @param {Model} model
   * @param {Edits} edits
   * @param {Tape} tape
   * @param {string} sequence   the operations before and after each sublayer, see `preprocess`
   */
  constructor(model, edits, tape, sequence) {
    this.config = { ...model.config, ...edits.settings };
    this.edits = edits;
    this.tape = tape;
    this.sequence = sequence;
    this.positions = model.positions;
    /** @type {Step | null} the table of rotary positions, see `rotate` */
    this.rotary = null;
    for (const [name, { shape, data }] of model.parameters) {
      const grad = tape.gradients ? model.gradients.get(name)?.fill(0) : undefined;
      tape.record("parameter", name, shape, data, [], {}, "parameter", grad);
    }
  }

  /**
   * Compute the logits at each position. Each kind of model has its own way.
   * @param {Ids} ids
   * @returns {Step}
   */
  logits(ids) {
    throw new Error(`a kind of model computes the logits of its ids: ${Object.keys(ids).join(", ")}`);
  }

  /**
   * Compute the logits for the output of a layer, as after the last one.
   * @param {Step} x
   * @returns {Step}
   */
  predict(x) {
    throw new Error(`a kind of model predicts from the output of its layers: ${x.path}`);
  }

  /** The id that stands where a position has no target. */
  get noTarget() {
    return this.config.pad_id;
  }

  /**
   * Compute the loss of an example.
   * @param {Ids} ids
   */
  loss(ids) {
    const { label_smoothing: smoothing } = this.config;
    return crossEntropy(this.tape, this.logits(ids), ids.targetOut, smoothing, this.noTarget);
  }

  /**
   * Token vectors plus position vectors: ids (T,) -> x (T, D).
   * @param {string} path
   * @param {number[]} ids
   * @param {Step} weight   the token vectors (V, D)
   * @param {Step | null} positions   the position vectors (max_length, D), or null without them
   */
  embedding(path, ids, weight, positions) {
    const { tape, config } = this;
    const table = tape.alias(`${path}.tokens.table`, weight);
    const scale = config.scale_embedding ? Math.sqrt(config.d_model) : 1;
    let x = embed(tape, `${path}.tokens.y`, table, ids, scale, config.zero_padding ? config.pad_id : null);
    if (positions) x = add(tape, `${path}.sum`, x, positions, "add_positions");
    const p = config.embedding_dropout ?? config.dropout;
    return tape.alias(`${path}.y`, this.dropout(`${path}.dropped`, `${path}.dropout_mask`, x, p));
  }

  /**
   * The norm before a sublayer, if there is one: x (T, D) -> h (T, D).
   *
   * The operations around a sublayer f are letters: n normalizes, d drops, a adds x, and a dash stands for f.
   * So "n-da" is x + dropout(f(norm(x))), and "-dan" is norm(x + dropout(f(x))).
   * @param {string} path
   * @param {number} number   the number of the sublayer in its layer, from 1
   * @param {Step} x
   */
  preprocess(path, number, x) {
    if (this.sequence.startsWith("-")) return x;
    const isSequence = this.config.norm.includes("-"); // its norms have parameters with names of their own
    return this.norm(isSequence ? `${path}.preprocess${number}.norm` : `${path}.norm${number}`, x);
  }

  /**
   * What follows a sublayer, such as norm(x + dropout(h)): x, h (T, D) -> y (T, D).
   * @param {string} path
   * @param {number} number   the number of the sublayer in its layer, from 1
   * @param {Step} x   the input of the sublayer, before its norm
   * @param {Step} h   the output of the sublayer
   */
  postprocess(path, number, x, h) {
    const { tape, config } = this;
    const sum = `${path}.add${number}`;
    const norm = config.norm.includes("-") ? `${path}.postprocess${number}.norm` : `${path}.norm${number}`;
    for (const letter of this.sequence.split("-")[1]) {
      if (letter === "d") h = this.dropout(`${sum}.dropped`, `${sum}.dropout_mask`, h, config.dropout);
      if (letter === "a") h = add(tape, `${sum}.sum`, x, h);
      if (letter === "n") h = this.norm(norm, h);
    }
    return h;
  }

  /**
   * Self-attention, in a decoder cross-attention, and the feed-forward network: x (T, D) -> y (T, D).
   * @param {string} path
   * @param {Step} x
   * @param {import("./masks.js").Mask} mask   of the self-attention
   * @param {{memory: Step, mask: import("./masks.js").Mask} | null} cross   memory (S, D), in a decoder
   */
  layer(path, x, mask, cross = null) {
    // every position attends to the positions that the mask shows
    let h = this.preprocess(path, 1, x);
    h = multiHeadAttention(this, `${path}.self_attention`, h, h, mask);
    x = this.postprocess(path, 1, x, h);
    if (cross) {
      // queries from the decoder, keys and values from the encoder
      h = this.preprocess(path, 2, x);
      h = multiHeadAttention(this, `${path}.cross`, h, cross.memory, cross.mask);
      x = this.postprocess(path, 2, x, h);
    }
    // the same network is applied to each position
    const last = cross ? 3 : 2;
    h = this.preprocess(path, last, x);
    return this.postprocess(path, last, x, this.feedForward(`${path}.feed_forward`, h));
  }

  /**
   * The feed-forward network: x (T, D) -> y (T, D), with a hidden layer (T, F).
   * @param {string} path
   * @param {Step} x
   */
  feedForward(path, x) {
    const { tape, config } = this, hidden = `${path}.hidden`;
    let h = this.linear(`${path}.inner`, x); // (T, F)
    h = activate(tape, `${hidden}.activated`, `${hidden}.activation`, h, config.activation);
    h = this.dropout(`${hidden}.dropped`, `${hidden}.dropout_mask`, h, config.feed_forward_dropout);
    return this.linear(`${path}.outer`, tape.alias(`${hidden}.y`, h));
  }

  /**
   * The output projection: x (T, D) -> logits (T, V).
   * @param {Step} x
   * @param {Step | null} tied   the token vectors (V, D) that it uses, or null if it has a weight (D, V)
   */
  output(x, tied) {
    const { tape } = this;
    const weight = tied ? transpose(tape, "output.weight", tied) : this.parameter("output.weight"); // (D, V)
    const logits = linear(tape, "output", x, weight, tape.names.get("output.bias"), "logits");
    return tape.alias("logits", logits);
  }

  /**
   * Layer norm, with or without a bias: x (T, D) -> y (T, D).
   * @param {string} path
   * @param {Step} x
   */
  norm(path, x) {
    const gain = this.parameter(`${path}.gain`), bias = this.tape.names.get(`${path}.bias`);
    return layerNorm(this.tape, path, x, gain, bias, this.config.norm_eps);
  }

  /**
   * The linear map y = x weight + bias: x (..., I) -> y (..., O).
   * @param {string} path
   * @param {Step} x
   */
  linear(path, x) {
    return linear(this.tape, path, x, this.parameter(`${path}.weight`), this.tape.names.get(`${path}.bias`));
  }

  /**
   * Dropout of the entries that the reader dropped: they become 0, and all others are divided by 1 - p, where
   * p is the dropout probability. If the reader dropped none, nothing changes, as in inference.
   * @param {string} path
   * @param {string} maskPath
   * @param {Step} x
   * @param {number} p
   */
  dropout(path, maskPath, x, p) {
    const dropped = this.edits.dropout?.[maskPath];
    if (!dropped) return x;
    const factors = new Float64Array(x.data.length).fill(1 / (1 - p));
    for (const index of dropped) {
      if (index < factors.length) factors[index] = 0;
    }
    const mask = this.tape.record("constant", maskPath, x.shape, factors, []);
    return multiplyEntries(this.tape, path, x, (i) => mask.data[i], "dropout", "dropout mask");
  }

  /**
   * Return the step of a parameter.
   * @param {string} name
   */
  parameter(name) {
    const step = this.tape.names.get(name);
    if (!step) throw new Error(`the page has no parameter ${name}: its settings belong to another model`);
    return step;
  }
}
