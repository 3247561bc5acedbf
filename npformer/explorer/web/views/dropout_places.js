// @ts-check
// The places of the model where dropout can act.
import { blockOf, stackName, sublayerOf } from "../state/sentences.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */

/** @type {Record<string, string>} */
const EMBEDDINGS = {
  source: t("source embedding"),
  target: t("target embedding"),
  embedding: t("embedding"),
};

/**
 * Return the places of the model where dropout can act.
 * @param {Explorer} explorer
 */
export function dropoutPlaces({ tape, session: { config } }) {
  const names = [...tape.names];
  const length = (/** @type {string} */ path) => tape.names.get(path)?.data.length ?? 0;
  const sides = Object.keys(EMBEDDINGS).filter((side) => tape.names.has(`${side}.y`));
  const places = sides.map((side) => ({
    path: `${side}.dropout_mask`,
    length: length(`${side}.y`),
    p: config.embedding_dropout ?? config.dropout,
    name: EMBEDDINGS[side],
  }));
  for (const [path, { data }] of names) {
    const [stack, number] = path.split("."),
      layer = `${stack === "layers" ? t("layer") : stackName(stack)} ${number}`;
    if (path.endsWith(".attention.weights")) {
      const base = path.replace(/\.weights$/, "");
      places.push({
        path: `${base}.dropout_mask`,
        length: data.length,
        p: config.attention_dropout ?? config.dropout,
        name: path.includes("cross")
          ? t("{layer}, cross-attention weights", { layer })
          : t("{layer}, self-attention weights", { layer }),
      });
    }
    if (/\.add\d\.sum$/.test(path)) {
      places.push({
        path: path.replace(/sum$/, "dropout_mask"),
        length: data.length,
        p: config.dropout,
        name: t("{layer}, {sublayer} sublayer", { layer, sublayer: sublayerOf(blockOf(path), tape) }),
      });
    }
    if (path.endsWith(".hidden.y") && config.feed_forward_dropout !== undefined) {
      places.push({
        path: path.replace(/y$/, "dropout_mask"),
        length: data.length,
        p: config.feed_forward_dropout,
        name: t("{layer}, hidden layer", { layer }),
      });
    }
  }
  return places;
}
