// @ts-check
// Multi-head attention: y = Concat(head_1 .. head_H) Wo, head_h = attention(query Wq_h, key Wk_h, value
// Wv_h).
import { add, linear, multiplyEntries, transpose } from "./linear.js";
import { attentionScores, maskQueries, maskScores, softmax, weightedSum } from "./attention.js";
import { mergeHeads, splitHeads } from "./attention.js";
import { repeatHeads, rotate } from "./rotary.js";
import { clippedDistance, collectByDistance, spreadByDistance } from "./relative.js";
import { activate } from "./activations.js";
import { maskCells } from "./masks.js";

/**
 * Compute the attention of each query to the keys: query (T, D), key (S, D) -> y (T, D). The values are
 * computed from the same input as the keys. In self-attention, query and key are the same step.
 * @param {ForwardPass} pass
 * @param {string} path
 * @param {Step} query
 * @param {Step} key
 * @param {Mask} mask
 */
export function multiHeadAttention(pass, path, query, key, mask) {
  const { tape, config } = pass;
  const { q, k, v } = projectHeads(pass, path, query, key); // (H, T, K), (H, S, K) and (H, S, L)
  const isRelative = config.positions === "relative" && query === key;
  const distance = isRelative ? clippedDistance(query.shape[0], config.max_distance) : null; // (T, S)
  const scores = scoresOfHeads(pass, path, q, k, distance); // (H, T, S)
  const weights = weightsOfHeads(pass, path, scores, mask); // (H, T, S)
  const z = switchHeads(pass, path, sumsOfValues(pass, path, weights, v, distance)); // (H, T, L)
  const merged = mergeHeads(tape, `${path}.merged`, z); // (T, H L)
  return config.attention_output ? pass.linear(`${path}.output`, merged) : merged; // (T, D)
}

/**
 * Compute the queries, keys and values of all heads. Fused projections compute several of them by one matrix
 * product.
 * @param {ForwardPass} pass
 * @param {string} path
 * @param {Step} query
 * @param {Step} key
 */
function projectHeads(pass, path, query, key) {
  const { tape, config } = pass, keyHeads = config.n_kv_heads ?? config.n_heads;
  const [keyWidth, valueWidth] = headWidths(config);
  const sizes = { q: [config.n_heads, keyWidth], k: [keyHeads, keyWidth], v: [keyHeads, valueWidth] };
  const separate = [["q"], ["k"], ["v"]], fused = query === key ? [["q", "k", "v"]] : [["q"], ["k", "v"]];
  /** @type {Record<string, Step>} */
  const parts = {};
  (config.fused_projections ? fused : separate).forEach((names, i) => {
    const projection = `${path}.projections.${i}`;
    const y = pass.linear(projection, names[0] === "q" ? query : key);
    const activation = config.projection_activation;
    const activated = activate(tape, `${projection}.activated`, `${projection}.activation`, y, activation);
    let start = 0;
    for (const name of /** @type {("q" | "k" | "v")[]} */ (names)) {
      const [heads, width] = sizes[name];
      const split = (/** @type {string} */ to) => splitHeads(tape, to, activated, heads, start, width);
      parts[name] = placeHeads(pass, path, name, heads, split);
      start += heads * width;
    }
  });
  return parts;
}

/**
 * Rotate the queries or keys by their positions, if the model has rotary positions, and repeat keys and
 * values for the query heads that share them.
 * @param {ForwardPass} pass
 * @param {string} path
 * @param {"q" | "k" | "v"} name
 * @param {number} heads
 * @param {(path: string) => Step} split   gives the heads (G, T, K) a name
 */
function placeHeads(pass, path, name, heads, split) {
  const { tape, config, rotary } = pass, last = `${path}.attention.${name}`;
  const isRotated = rotary !== null && name !== "v", isRepeated = heads < config.n_heads;
  let x = split(isRotated || isRepeated ? `${path}.${name}` : last);
  const rotated = isRepeated ? `${path}.rotated_${name}` : last;
  if (isRotated) x = rotate(tape, rotated, x, rotary, config.rotary_layout);
  return isRepeated ? repeatHeads(tape, last, x, config.n_heads / heads) : x;
}

/**
 * Return the width K of the queries and keys of a head, and the width L of its values.
 * @param {import("./masks.js").Config} config
 */
function headWidths(config) {
  const keyWidth = config.d_head ?? config.d_model / config.n_heads;
  return [keyWidth, config.d_value ?? keyWidth];
}

/**
 * Compute the scores: q (H, T, K), k (H, S, K) -> (H, T, S). Relative positions add the product of each query
 * and the vector of its distance from the key.
 * @param {ForwardPass} pass
 * @param {string} layer
 * @param {Step} q
 * @param {Step} k
 * @param {Int32Array | null} distance
 */
function scoresOfHeads(pass, layer, q, k, distance) {
  const { tape, config } = pass, path = `${layer}.attention`;
  const scale = config.scale_scores ? 1 / Math.sqrt(headWidths(config)[0]) : 1;
  if (!distance) return attentionScores(tape, `${path}.scores`, q, k, scale);
  const ofKeys = attentionScores(tape, `${path}.key_scores`, q, k, 1);
  const positions = pass.parameter(`${layer}.key_positions`); // (R, K)
  const vectors = transpose(tape, `${path}.key_product.weight`, positions); // (K, R)
  // (H, T, R)
  const products = linear(tape, `${path}.key_product`, q, vectors, undefined, "relative_products");
  const ofPositions = spreadByDistance(tape, `${path}.position_scores`, products, distance);
  const unscaled = add(tape, `${path}.unscaled_scores`, ofKeys, ofPositions, "relative_scores");
  return multiplyEntries(tape, `${path}.scores`, unscaled, () => scale, "scale_scores", "scale");
}

/**
 * Compute the attention weights by masks, softmax and dropout: scores (H, T, S) -> (H, T, S).
 * @param {ForwardPass} pass
 * @param {string} layer
 * @param {Step} scores
 * @param {Mask} mask
 */
function weightsOfHeads(pass, layer, scores, mask) {
  const { tape, config, edits } = pass, path = `${layer}.attention`;
  const [, queries, keys] = scores.shape;
  const cells = maskCells(mask, queries, keys, edits.masks?.[layer] ?? []); // (T, S)
  let x = maskScores(tape, `${path}.masked`, scores, cells, Number(config.mask_fill), config.masking_how);
  if (mask.queries && config.query_masking === "before") {
    x = maskQueries(tape, `${path}.masked_queries`, x, mask.queries);
  }
  x = softmax(tape, `${path}.softmax`, x);
  if (mask.queries && config.query_masking === "after") {
    x = maskQueries(tape, `${path}.masked_queries`, x, mask.queries);
  }
  tape.alias(`${path}.weights`, x);
  return pass.dropout(`${path}.dropped`, `${path}.dropout_mask`, x, config.attention_dropout);
}

/**
 * Compute the weighted sums of the values: weights (H, T, S), v (H, S, L) -> z (H, T, L). Relative positions
 * add the vector of each distance, times the sum of the weights of the keys at this distance.
 * @param {ForwardPass} pass
 * @param {string} layer
 * @param {Step} weights
 * @param {Step} v
 * @param {Int32Array | null} distance
 */
function sumsOfValues(pass, layer, weights, v, distance) {
  const { tape } = pass, path = `${layer}.attention`;
  if (!distance) return weightedSum(tape, `${path}.z`, weights, v);
  const ofValues = weightedSum(tape, `${path}.value_sum`, weights, v);
  const vectors = pass.parameter(`${layer}.value_positions`); // (R, L)
  tape.alias(`${path}.value_product.weight`, vectors);
  const share = collectByDistance(tape, `${path}.share`, weights, distance, vectors.shape[0]); // (H, T, R)
  const ofPositions = linear(tape, `${path}.value_product`, share, vectors, undefined, "relative_values");
  return add(tape, `${path}.z`, ofValues, ofPositions, "relative_sum");
}

/**
 * Set the outputs of the heads to 0 that the reader switched off: z (H, T, L) -> (H, T, L).
 * @param {ForwardPass} pass
 * @param {string} layer
 * @param {Step} z
 */
function switchHeads(pass, layer, z) {
  const off = pass.edits.heads?.[layer] ?? [];
  if (!off.length) return z;
  const size = z.data.length / z.shape[0]; // of a head
  const isOn = (/** @type {number} */ i) => (off.includes(Math.floor(i / size)) ? 0 : 1);
  return multiplyEntries(pass.tape, `${layer}.attention.switched`, z, isOn, "head_switch", "head on");
}
