// @ts-check
// What each step does, in one sentence, forward and backward.
import { t } from "../words/text.js";

/** @type {Record<string, [string, string]>} */
const SENTENCES = {
  embed: [
    t("Each token is replaced by its vector, a row of the embedding table."),
    t("Each row of the table receives the gradients of all positions that hold its token."),
  ],
  add_positions: [
    t("The vector of its position is added to the vector of each token."),
    t("A sum passes its gradient to both terms unchanged."),
  ],
  linear: [
    t("Each of the rows is multiplied by the weight matrix."),
    t("dx is drows times the transposed weights, and dweight is the transposed rows times drows."),
  ],
  add_bias: [
    t("The same bias is added to each row."),
    t("The rows pass their gradient on unchanged; the bias receives the sum over all rows."),
  ],
  split_heads: [
    t("The columns are divided among the heads. No number changes."),
    t("Each gradient returns to the column from which its number came."),
  ],
  scores: [
    t("The score of a query and a key is their dot product, divided by √d_head."),
    t("The gradient of q collects the keys, and the gradient of k the queries, each weighted by dscores."),
  ],
  rotate: [
    t("Each pair of numbers is rotated by an angle that grows with the position of its token."),
    t("The gradient is rotated back, by the same angle in the other direction."),
  ],
  repeat_heads: [
    t("Each head of keys or values is repeated for the query heads that share it. No number changes."),
    t("A shared head receives the sum of the gradients of its copies."),
  ],
  relative_products: [
    t("Each query is multiplied by the vector of each distance."),
    t("The gradient of q collects the vectors of the distances, and that of the vectors the queries."),
  ],
  spread_by_distance: [
    t("Each key gets the product of its query and the vector of its distance from it."),
    t("Each product receives the sum of the gradients of the keys at its distance."),
  ],
  relative_scores: [
    t("The score of a key is its product with the query, plus that of the vector of its distance."),
    t("A sum passes its gradient to both terms unchanged."),
  ],
  scale_scores: [t("The scores are divided by √d_head."), t("The gradient is divided by √d_head too.")],
  collect_by_distance: [
    t("The weights of all keys at the same distance from the query are added up."),
    t("Each weight receives the gradient of the sum to which it belongs."),
  ],
  relative_values: [
    t("Each distance adds its vector, times the sum of the weights at this distance."),
    t("The gradient of a sum of weights is the dot product of dz and the vector of its distance."),
  ],
  relative_sum: [
    t("The vectors of the distances are added to the weighted sum of the values."),
    t("A sum passes its gradient to both terms unchanged."),
  ],
  mask: [
    t("Masked scores become −∞, so that their weights become 0."),
    t("Masked scores receive no gradient; all others pass theirs on."),
  ],
  mask_queries: [
    t("The rows of queries that are padding become 0."),
    t("Masked queries pass no gradient on."),
  ],
  softmax: [
    t("The softmax turns the scores of each query into weights that are positive and add up to 1."),
    t("Each score receives its weight times (its gradient minus the weighted mean of the row)."),
  ],
  weighted_sum: [
    t("The output of each query is the sum of the values, each times its attention weight, after dropout."),
    t(
      "The gradient of a weight is the dot product of dy and the value; that of a value collects dy by " +
        "weight.",
    ),
  ],
  head_switch: [
    t("The heads that you switched off are set to 0."),
    t("Heads that are off receive no gradient."),
  ],
  merge_heads: [
    t("The outputs of the heads are placed side by side. No number changes."),
    t("Each gradient returns to its head."),
  ],
  residual: [
    t("The output of the sublayer is added to its input: the residual connection."),
    t("The gradient is copied: one copy goes through the sublayer, the other goes around it."),
  ],
  layer_norm_statistics: [
    t("Layer norm computes the mean of each row, and one over its standard deviation."),
    t("Mean and deviation depend on the whole row, so each of its entries receives a part of the gradient."),
  ],
  layer_norm_normalize: [
    t("Each row is shifted and scaled, so that it has mean 0 and variance 1."),
    t("The gradient is divided by the standard deviation; mean and deviation receive theirs too."),
  ],
  layer_norm_scale: [
    t("Each column is multiplied by its gain, and its bias is added."),
    t("The gradient of xhat is dy times the gain; gain and bias collect over all rows."),
  ],
  layer_norm_gain: [
    t("Each column is multiplied by its gain. This layer norm has no bias."),
    t("The gradient of xhat is dy times the gain; the gain collects over all rows."),
  ],
  rms_norm: [
    t("RMS norm divides each row by the root of the mean of its squares. It does not subtract the mean."),
    t("The root depends on the whole row, so each of its entries receives a part of the gradient."),
  ],
  rms_norm_scale: [
    t("Each column is multiplied by its gain. RMS norm has no bias."),
    t("The gradient of xhat is dy times the gain; the gain collects over all rows."),
  ],
  relu: [t("Negative numbers become 0: the ReLU."), t("The gradient passes where the number was positive.")],
  gelu: [t("Each number is multiplied by Φ(x): the GELU."), t("The product rule has two terms.")],
  gelu_tanh: [t("The GELU, approximated by a tanh."), t("The product rule has two terms.")],
  silu: [
    t("Each number is multiplied by its sigmoid: Swish, or SiLU."),
    t("The product rule has two terms."),
  ],
  sigmoid: [t("The sigmoid of each number."), t("The derivative of the sigmoid is y (1 − y).")],
  normal_cdf: [
    t("The probability Φ(x) of the normal distribution."),
    t("The derivative is the density of the distribution."),
  ],
  tanh: [
    t("The hyperbolic tangent in the approximation of the GELU."),
    t("The derivative of the tanh is 1 − tanh²."),
  ],
  gated: [
    t("The gate, after its activation, is multiplied by the value, entry by entry."),
    t("The product rule: each factor receives dy times the other one."),
  ],
  dropout: [
    t("Dropped entries become 0, all others are divided by 1 − p."),
    t("Dropped entries receive no gradient."),
  ],
  logits: [
    t("The logit of each token of the vocabulary is the dot product of x and the token's vector."),
    t("The gradient of x collects the vectors of the tokens, weighted by dlogits."),
  ],
  transpose: [
    t("The output projection uses the transposed embedding table."),
    t("The gradient of the table is the transposed gradient of the projection."),
  ],
  log_softmax: [
    t("The log-softmax turns the logits of each position into logarithms of probabilities."),
    t("Each logit receives its gradient minus its probability times the sum of the row's gradients."),
  ],
  losses: [
    t("The loss of a position is minus the logarithm of the target's probability, with label smoothing."),
    t("The gradient is minus the target distribution: it wants to raise the target's probability."),
  ],
  cross_entropy: [
    t("The loss is the mean over all target tokens."),
    t("The derivative of the loss with respect to itself is 1; each position receives an equal share of it."),
  ],
};

/** @type {(key: string, direction: "forward" | "backward") => string} */
export function sentenceOf(key, direction) {
  return SENTENCES[key]?.[direction === "forward" ? 0 : 1] ?? "";
}

/** @type {Record<string, string>} the names of the blocks, by their kinds */
const BLOCK_NAMES = {
  source: t("embedding"),
  target: t("embedding"),
  output: t("linear"),
  loss: t("softmax and loss"),
  norm: t("norm"),
  add: t("add"),
  masked_self_attention: t("masked self-attention"),
  self_attention: t("self-attention"),
  cross: t("cross-attention"),
  feed_forward: t("feed-forward"),
  attention: t("attention"),
  embedding: t("embedding"),
  biases: t("biases"),
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
 * Return the kind of a block: a key of BLOCK_NAMES, or a name of its own in a layer that is no model.
 * @param {string} block
 */
export function blockKind(block) {
  const parts = block.split("."),
    last = parts[parts.length - 1];
  if (/^(norm|preprocess|postprocess)/.test(last)) return "norm";
  if (/^\d+$/.test(last)) return parts.slice(-2).join(" ");
  if (/^add\d$/.test(last)) return "add";
  if (last === "self_attention" && parts[0] === "decoder") return "masked_self_attention";
  return last;
}

/**
 * Return the name of a block as the model map shows it.
 * @param {string} block
 */
export function blockName(block) {
  const kind = blockKind(block);
  return BLOCK_NAMES[kind] ?? kind.replace(/_/g, " ");
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
    const stack = parts
        .slice(0, layer)
        .filter((part) => part !== "layers")
        .map(stackName),
      sublayer = sublayerOf(block, tape);
    const around = {
      add: t("add (to {sublayer})", { sublayer }),
      norm: t("norm (around {sublayer})", { sublayer }),
    };
    const title = /** @type {Record<string, string>} */ (around)[blockKind(block)] ?? name;
    return [...stack, t("layer {layer}", { layer: parts[layer] }), title].join(t(", "));
  }
  return (
    {
      source: t("source embedding"),
      target: t("target embedding"),
      output: t("output projection, linear"),
    }[block] ?? (parts.length > 1 ? `${stackName(parts[0])}${t(", ")}${name}` : name)
  );
}

/**
 * Return the short name of the layer of a path: "encoder 0" for "encoder.0.norm2.y", or "layer 0".
 * @param {string} path
 */
export function layerName(path) {
  const [stack, number] = path.split(".");
  return `${stack === "layers" ? t("layer") : stackName(stack)} ${number}`;
}

/** @param {string} stack   "encoder", "decoder", or a part of a layer */
export function stackName(stack) {
  return { encoder: t("encoder"), decoder: t("decoder"), layers: t("layers") }[stack] ?? stack;
}

/**
 * Return the name of the sublayer to which a sum or a norm belongs: "cross-attention" for "decoder.0.norm2".
 * @param {string} block
 * @param {Tape} tape
 */
export function sublayerOf(block, tape) {
  const layer = block.slice(0, block.lastIndexOf(".")),
    number = Number(block.slice(-1));
  if (number === 1) return BLOCK_NAMES.self_attention;
  const hasCross = tape.names.has(`${layer}.cross.attention.weights`);
  return hasCross && number === 2 ? BLOCK_NAMES.cross : BLOCK_NAMES.feed_forward;
}
