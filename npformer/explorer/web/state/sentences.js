// @ts-check
// What each step does, in one sentence, forward and backward.

/** @typedef {import("../engine/tape.js").Tape} Tape */

/** @type {Record<string, [string, string]>} */
const SENTENCES = {
  embed: [
    "Each token is replaced by its vector, a row of the embedding table.",
    "Each row of the table receives the gradients of all positions that hold its token.",
  ],
  add_positions: [
    "The vector of its position is added to the vector of each token.",
    "A sum passes its gradient to both terms unchanged.",
  ],
  linear: [
    "Each of the rows is multiplied by the weight matrix.",
    "dx is drows times the transposed weights, and dweight is the transposed rows times drows.",
  ],
  add_bias: [
    "The same bias is added to each row.",
    "The rows pass their gradient on unchanged; the bias receives the sum over all rows.",
  ],
  split_heads: [
    "The columns are divided among the heads. No number changes.",
    "Each gradient returns to the column from which its number came.",
  ],
  scores: [
    "The score of a query and a key is their dot product, divided by √d_head.",
    "The gradient of q collects the keys, and the gradient of k the queries, each weighted by dscores.",
  ],
  rotate: [
    "Each pair of numbers is rotated by an angle that grows with the position of its token.",
    "The gradient is rotated back, by the same angle in the other direction.",
  ],
  repeat_heads: [
    "Each head of keys or values is repeated for the query heads that share it. No number changes.",
    "A shared head receives the sum of the gradients of its copies.",
  ],
  relative_products: [
    "Each query is multiplied by the vector of each distance.",
    "The gradient of q collects the vectors of the distances, and that of the vectors the queries.",
  ],
  spread_by_distance: [
    "Each key gets the product of its query and the vector of its distance from it.",
    "Each product receives the sum of the gradients of the keys at its distance.",
  ],
  relative_scores: [
    "The score of a key is its product with the query, plus that of the vector of its distance.",
    "A sum passes its gradient to both terms unchanged.",
  ],
  scale_scores: ["The scores are divided by √d_head.", "The gradient is divided by √d_head too."],
  collect_by_distance: [
    "The weights of all keys at the same distance from the query are added up.",
    "Each weight receives the gradient of the sum to which it belongs.",
  ],
  relative_values: [
    "Each distance adds its vector, times the sum of the weights at this distance.",
    "The gradient of a sum of weights is the dot product of dz and the vector of its distance.",
  ],
  relative_sum: [
    "The vectors of the distances are added to the weighted sum of the values.",
    "A sum passes its gradient to both terms unchanged.",
  ],
  mask: [
    "Masked scores become −∞, so that their weights become 0.",
    "Masked scores receive no gradient; all others pass theirs on.",
  ],
  mask_queries: ["The rows of queries that are padding become 0.", "Masked queries pass no gradient on."],
  softmax: [
    "The softmax turns the scores of each query into weights that are positive and add up to 1.",
    "Each score receives its weight times (its gradient minus the weighted mean of the row).",
  ],
  weighted_sum: [
    "The output of each query is the sum of the values, each times its attention weight, after dropout.",
    "The gradient of a weight is the dot product of dy and the value; that of a value collects dy by weight.",
  ],
  head_switch: ["The heads that you switched off are set to 0.", "Heads that are off receive no gradient."],
  merge_heads: [
    "The outputs of the heads are placed side by side. No number changes.",
    "Each gradient returns to its head.",
  ],
  residual: [
    "The output of the sublayer is added to its input: the residual connection.",
    "The gradient is copied: one copy goes through the sublayer, the other goes around it.",
  ],
  layer_norm_statistics: [
    "Layer norm computes the mean of each row, and one over its standard deviation.",
    "Mean and deviation depend on the whole row, so each of its entries receives a part of the gradient.",
  ],
  layer_norm_normalize: [
    "Each row is shifted and scaled, so that it has mean 0 and variance 1.",
    "The gradient is divided by the standard deviation; mean and deviation receive theirs too.",
  ],
  layer_norm_scale: [
    "Each column is multiplied by its gain, and its bias is added.",
    "The gradient of xhat is dy times the gain; gain and bias collect over all rows.",
  ],
  layer_norm_gain: [
    "Each column is multiplied by its gain. This layer norm has no bias.",
    "The gradient of xhat is dy times the gain; the gain collects over all rows.",
  ],
  rms_norm: [
    "RMS norm divides each row by the root of the mean of its squares. It does not subtract the mean.",
    "The root depends on the whole row, so each of its entries receives a part of the gradient.",
  ],
  rms_norm_scale: [
    "Each column is multiplied by its gain. RMS norm has no bias.",
    "The gradient of xhat is dy times the gain; the gain collects over all rows.",
  ],
  relu: ["Negative numbers become 0: the ReLU.", "The gradient passes where the number was positive."],
  gelu: ["Each number is multiplied by Φ(x): the GELU.", "The product rule has two terms."],
  gelu_tanh: ["The GELU, approximated by a tanh.", "The product rule has two terms."],
  silu: ["Each number is multiplied by its sigmoid: Swish, or SiLU.", "The product rule has two terms."],
  sigmoid: ["The sigmoid of each number.", "The derivative of the sigmoid is y (1 − y)."],
  normal_cdf: [
    "The probability Φ(x) of the normal distribution.",
    "The derivative is the density of the distribution.",
  ],
  tanh: [
    "The hyperbolic tangent in the approximation of the GELU.",
    "The derivative of the tanh is 1 − tanh².",
  ],
  gated: [
    "The gate, after its activation, is multiplied by the value, entry by entry.",
    "The product rule: each factor receives dy times the other one.",
  ],
  dropout: [
    "Dropped entries become 0, all others are divided by 1 − p.",
    "Dropped entries receive no gradient.",
  ],
  logits: [
    "The logit of each token of the vocabulary is the dot product of x and the token's vector.",
    "The gradient of x collects the vectors of the tokens, weighted by dlogits.",
  ],
  transpose: [
    "The output projection uses the transposed embedding table.",
    "The gradient of the table is the transposed gradient of the projection.",
  ],
  log_softmax: [
    "The log-softmax turns the logits of each position into logarithms of probabilities.",
    "Each logit receives its gradient minus its probability times the sum of the row's gradients.",
  ],
  losses: [
    "The loss of a position is minus the logarithm of the target's probability, with label smoothing.",
    "The gradient is minus the target distribution: it wants to raise the target's probability.",
  ],
  cross_entropy: [
    "The loss is the mean over all target tokens.",
    "The derivative of the loss with respect to itself is 1; each position receives an equal share of it.",
  ],
};

/**
 * @param {string} key
 * @param {"forward" | "backward"} direction
 */
export function sentenceOf(key, direction) {
  return SENTENCES[key]?.[direction === "forward" ? 0 : 1] ?? "";
}

/** @type {Record<string, string>} */
const BLOCK_NAMES = {
  self_attention: "self-attention",
  cross: "cross-attention",
  feed_forward: "feed-forward",
  attention: "attention",
};

/**
 * Return the block to which a path belongs: "encoder.0.self_attention", "decoder.1.norm2", "output".
 * @param {string} path
 */
export function blockOf(path) {
  const parts = path.split(".");
  const layer = parts.findIndex((part) => /^\d+$/.test(part));
  if (layer < 0 || layer > 2)
    return parts[0] === "logits" ? "output" : parts.slice(0, /norm/.test(parts[1]) ? 2 : 1).join(".");
  return parts.slice(0, layer + 2).join(".");
}

/**
 * Return the name of a block as the model map shows it.
 * @param {string} block
 */
export function blockName(block) {
  if (block === "source" || block === "target") return "embedding and positions";
  if (block === "output") return "linear";
  if (block === "loss") return "softmax and loss";
  const parts = block.split("."),
    last = parts[parts.length - 1];
  if (/^(norm|preprocess|postprocess)/.test(last)) return "norm";
  if (/^\d+$/.test(last)) return parts.slice(-2).join(" ");
  if (/^add\d$/.test(last)) return "add";
  if (last === "self_attention" && parts[0] === "decoder") return "masked self-attention";
  return BLOCK_NAMES[last] ?? last.replace(/_/g, " ");
}

/**
 * Return the full name of a block: "decoder, layer 2, cross-attention".
 * @param {string} block
 * @param {Tape} tape   the tape, whose names say which sublayers the layer has
 */
export function blockTitle(block, tape) {
  const parts = block.split("."),
    layer = parts.findIndex((part) => /^\d+$/.test(part));
  const name = blockName(block);
  if (layer >= 0 && layer < parts.length - 1) {
    const isAround = ["add", "norm"].includes(name);
    const of = isAround ? ` (${name === "add" ? "to" : "around"} ${sublayerOf(block, tape)})` : "";
    const stack = parts.slice(0, layer).filter((part) => part !== "layers");
    return [...stack, `layer ${parts[layer]}`, name + of].join(", ");
  }
  return (
    {
      source: "source embedding and positions",
      target: "target embedding and positions",
      output: "output projection, linear",
    }[block] ??
    (parts.length > 1 ? `${parts[0]}, ${name}` : name)
  );
}

/**
 * Return the name of the sublayer to which a sum or a norm belongs: "cross-attention" for "decoder.0.norm2".
 * @param {string} block
 * @param {Tape} tape
 */
export function sublayerOf(block, tape) {
  const layer = block.slice(0, block.lastIndexOf(".")), number = Number(block.slice(-1));
  if (number === 1) return "self-attention";
  const hasCross = tape.names.has(`${layer}.cross.attention.weights`);
  return hasCross && number === 2 ? "cross-attention" : "feed-forward";
}
