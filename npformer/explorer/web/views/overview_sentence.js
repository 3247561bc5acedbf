// @ts-check
// The sentence of the overview: what a block does, or what the model does with a token there.
import { cellText, percent, visibleText } from "../drawing/number_texts.js";
import { axesOf } from "../state/axes.js";
import { blockTitle, sentenceOf } from "../state/sentences.js";
import { argmax, rowOf } from "../engine/tape.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */
/** @typedef {import("./flow_layout.js").FlowBlock} FlowBlock */

/**
 * Say what a block does with the chosen token; of a block without attention, to what the token attends.
 * @param {Explorer} explorer
 * @param {FlowBlock[]} blocks
 * @param {string} name
 * @param {number | null} token
 */
export function overviewSentence(explorer, blocks, name, token) {
  const { tape, direction, session } = explorer,
    box = blocks.find(({ block }) => block === name);
  if (!box) return "";
  const title = blockTitle(name, tape),
    line = sentenceOf(box.weights ? "weighted_sum" : box.output.line, direction),
    start = `${title[0].toUpperCase()}${title.slice(1)}${t(": ")}${line}`;
  if (token === null || direction === "backward" || !box.tokens[token]) return start;
  if (name !== "loss") {
    const isAsked = (/** @type {FlowBlock} */ one) =>
      box.weights ? one === box : one.weights && one.column === box.column;
    const told = blocks.filter(isAsked).map((one) => attention(explorer, one, token));
    return told.join(" ") || start;
  }
  const row = rowOf(box.output, token),
    best = argmax(row),
    word = visibleText(axesOf(session, box.output)[1]?.labels?.[best] ?? best),
    values = { read: visibleText(box.tokens[token]), word, p: percent(Math.exp(row[best])) };
  return t("After “{read}”, the most probable token is “{word}”, with {p}.", values);
}

/**
 * Say to which two tokens a token attends most in a block, each with its weight and the head.
 * @type {(explorer: Explorer, box: FlowBlock, token: number) => string}
 */
function attention({ session, tape }, { block, weights, tokens }, token) {
  const { data, shape } = /** @type {import("../engine/tape.js").Step} */ (weights),
    [heads, queries, keys] = shape,
    labels = axesOf(session, /** @type {any} */ (weights))[2].labels ?? [];
  const strongest = Array.from({ length: keys }, (_, key) => {
    const own = new Float64Array(heads).map((_, head) => data[(head * queries + token) * keys + key]),
      head = argmax(own),
      name = visibleText(labels[key] ?? key);
    return { p: own[head], text: t("“{name}” ({p}, head {head})", { name, p: cellText(own[head]), head }) };
  }).sort((a, b) => b.p - a.p);
  const most = [0, 1].map((i) => strongest[i]?.text ?? "").filter(Boolean),
    values = {
      read: visibleText(tokens[token]),
      most: most.join(t(" and ")),
      where: blockTitle(block, tape),
    };
  return t("“{read}” attends most to {most} in {where}.", values);
}
