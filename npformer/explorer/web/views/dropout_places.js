// @ts-check
// The places of the model where dropout can act.
import { blockOf, layerName, sublayerOf } from "../state/sentences.js";
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
  const kinds = /** @type {[RegExp, number | undefined, (path: string, layer: string) => string][]} */ ([
    [
      /^(source|target|embedding)\.y$/,
      config.embedding_dropout ?? config.dropout,
      (path) => EMBEDDINGS[path.split(".")[0]],
    ],
    [
      /\.attention\.weights$/,
      config.attention_dropout ?? config.dropout,
      (path, layer) =>
        path.includes("cross")
          ? t("{layer}, cross-attention weights", { layer })
          : t("{layer}, self-attention weights", { layer }),
    ],
    [
      /\.add\d\.sum$/,
      config.dropout,
      (path, layer) =>
        t("{layer}, {sublayer} sublayer", { layer, sublayer: sublayerOf(blockOf(path), tape) }),
    ],
    [/\.hidden\.y$/, config.feed_forward_dropout, (_, layer) => t("{layer}, hidden layer", { layer })],
  ]);
  return kinds.flatMap(([pattern, p, nameOf]) =>
    [...tape.names]
      .filter(([path]) => p !== undefined && pattern.test(path))
      .map(([path, { data }]) => {
        const mask = path.replace(/\w+$/, "dropout_mask");
        return { path: mask, length: data.length, p, name: nameOf(path, layerName(path)) };
      }),
  );
}
