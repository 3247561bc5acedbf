// @ts-check
// The maps of attention: which there are, and the weights, their mean over the heads, the rollout and the
// gradients.
import { tokensOf } from "../state/axes.js";
import { visibleText } from "../drawing/number_texts.js";
import { stackName } from "../state/sentences.js";
import { t } from "../words/text.js";

/**
 * One attention sublayer with its weights. The queries of a decoder are tokens that it reads, and its rows
 * are named by these and by the tokens that it has to predict there: "qu' → il".
 * @typedef {{name: string, kind: string, title: string, isCross: boolean, layer: number, weights: Step,
 *   queries: string[], predicted: string[], rows: string[], keys: string[], querySide: "source" | "target",
 *   keySide: "source" | "target"}} Sublayer
 */

/**
 * A matrix of weights with the tokens of its rows and columns.
 * @typedef {{matrix: Float64Array, queries: string[], keys: string[], title: string,
 *   isGradient: boolean}} AttentionMap
 */

/** @typedef {"weights" | "gradients" | "mean" | "rollout"} Quantity */

/** The quantities of a map, with their names on the page. */
export const QUANTITIES = /** @type {[string, string][]} */ ([
  ["weights", t("weights")],
  ["gradients", t("gradients of the loss")],
  ["mean", t("mean of the heads")],
  ["rollout", t("rollout")],
]);

/**
 * Return all attention sublayers of the tape.
 * @param {Explorer} explorer
 * @returns {Sublayer[]}
 */
export function sublayersOf({ session, tape }) {
  return [...tape.names]
    .filter(([name]) => name.endsWith(".attention.weights"))
    .map(([path, weights]) => {
      const name = path.replace(/\.attention\.weights$/, ""),
        parts = name.split(".");
      const [, queries, keys] = weights.shape;
      const fits = (/** @type {string[]} */ tokens, /** @type {number} */ n) =>
        tokens.length === n ? tokens : Array.from({ length: n }, (_, i) => String(i));
      const isSource = parts[0] === "encoder",
        isCross = parts[2] === "cross";
      const ofStack = ["encoder", "decoder"].includes(parts[0]) ? stackName(parts[0]) : t("self-attention");
      const querySide = isSource ? "source" : "target",
        keySide = isSource || isCross ? "source" : "target";
      const read = fits(tokensOf(session, querySide), queries);
      const known = session.ids || session.head.example?.predicted_tokens,
        next = known && !isSource ? tokensOf(session, "predicted") : [],
        predicted = next.length === queries ? next : []; // "" where a position has nothing to predict
      const kind = isCross ? t("cross-attention") : ofStack,
        layer = Number(parts.find((part) => /^\d+$/.test(part)) ?? 0);
      return {
        name,
        kind,
        title: t("{kind}, layer {layer}", { kind, layer }),
        isCross,
        layer,
        weights,
        queries: read,
        predicted,
        rows: read.map((token, t) =>
          predicted[t] ? `${visibleText(token)} → ${visibleText(predicted[t])}` : token,
        ),
        keys: fits(tokensOf(session, keySide), keys),
        querySide,
        keySide,
      };
    });
}

/**
 * Return the attentions for a choice, with short names.
 * @param {Sublayer[]} sublayers
 */
export function namesOf(sublayers) {
  const pairs = sublayers.map(({ name, kind, layer }) => [name, `${kind} ${layer}`]);
  return /** @type {[string, string][]} */ (pairs);
}

/**
 * Return a map of a sublayer.
 * @param {Sublayer[]} sublayers
 * @param {Sublayer} sublayer
 * @param {number} head
 * @param {Quantity} quantity
 * @returns {AttentionMap}
 */
export function mapOf(sublayers, sublayer, head, quantity) {
  const { weights, queries, keys, title: where } = sublayer,
    cells = queries.length * keys.length,
    isGradient = quantity === "gradients";
  if (quantity === "mean" || (quantity === "rollout" && sublayer.isCross)) {
    const title = t("{where}, mean of all heads", { where });
    return { matrix: meanOfHeads(weights), queries, keys, title, isGradient };
  }
  if (quantity === "rollout") {
    const before = sublayers.filter((other) => other.kind === sublayer.kind && other.layer <= sublayer.layer),
      title = t("{where}, rollout up to this layer", { where });
    return { matrix: rollout(before.map((other) => other.weights)), queries, keys, title, isGradient };
  }
  const ofLoss = isGradient ? t(", gradient of the loss") : "",
    matrix = (isGradient ? weights.grad : weights.data).slice(head * cells, (head + 1) * cells);
  return { matrix, queries, keys, title: t("{where}, head {head}", { where, head }) + ofLoss, isGradient };
}

/**
 * weights (H, T, S) -> (T, S)
 * @param {Step} weights
 */
export function meanOfHeads({ data, shape: [heads, queries, keys] }) {
  const cells = queries * keys,
    mean = new Float64Array(cells);
  for (let i = 0; i < data.length; i++) mean[i % cells] += data[i] / heads;
  return mean;
}

/**
 * Attention rollout (Abnar and Zuidema 2020): the product over the layers of (A + I) / 2, with A the mean of
 * the heads. The identity stands for the residual connection.
 * @param {Step[]} layers   from the first layer to the last
 */
export function rollout(layers) {
  const n = layers[0].shape[1];
  const matrices = layers.map((weights) =>
    meanOfHeads(weights).map((a, i) => (a + (i % (n + 1) === 0 ? 1 : 0)) / 2),
  );
  return matrices.reduce((below, above) => {
    const product = new Float64Array(n * n);
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < n; k++)
        for (let j = 0; j < n; j++) product[i * n + j] += above[i * n + k] * below[k * n + j];
    }
    return product;
  });
}
