// @ts-check
// The places of the model where dropout can act.
import { blockOf, sublayerOf } from "../state/sentences.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */

/**
 * Return the places of the model where dropout can act.
 * @param {Explorer} explorer
 */
export function dropoutPlaces({ tape, session: { config } }) {
  const names = [...tape.names];
  const length = (/** @type {string} */ path) => tape.names.get(path)?.data.length ?? 0;
  const sides = ["source", "target", "embedding"].filter((side) => tape.names.has(`${side}.y`));
  const places = sides.map((side) => ({
    path: `${side}.dropout_mask`,
    length: length(`${side}.y`),
    p: config.embedding_dropout ?? config.dropout,
    name: side === "embedding" ? side : `${side} embedding`,
  }));
  for (const [path, { data }] of names) {
    const layer = path.split(".").slice(0, 2).join(" ").replace("layers", "layer");
    if (path.endsWith(".attention.weights")) {
      const base = path.replace(/\.weights$/, "");
      places.push({
        path: `${base}.dropout_mask`,
        length: data.length,
        p: config.attention_dropout ?? config.dropout,
        name: `${layer}, ${path.includes("cross") ? "cross-" : "self-"}attention weights`,
      });
    }
    if (/\.add\d\.sum$/.test(path)) {
      places.push({
        path: path.replace(/sum$/, "dropout_mask"),
        length: data.length,
        p: config.dropout,
        name: `${layer}, ${sublayerOf(blockOf(path), tape)} sublayer`,
      });
    }
    if (path.endsWith(".hidden.y") && config.feed_forward_dropout !== undefined) {
      places.push({
        path: path.replace(/y$/, "dropout_mask"),
        length: data.length,
        p: config.feed_forward_dropout,
        name: `${layer}, hidden layer`,
      });
    }
  }
  return places;
}
