// @ts-check
// The sentence of the overview: what a block does, or what the model does with a token there.
import { cellText, percent, visibleText } from "../drawing/number_texts.js";
import { axesOf } from "../state/axes.js";
import { sublayersOf } from "./attention_maps.js";
import { blockKind, blockTitle, sentenceOf } from "../state/sentences.js";
import { argmax, rowOf } from "../engine/tape.js";
import { t } from "../words/text.js";

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
    { line } = box.output,
    text = document.querySelector(`[data-kind="${blockKind(name)}"], [data-kind="${line}"]`)?.textContent,
    does = (direction === "forward" && text) || sentenceOf(box.weights ? "weighted_sum" : line, direction),
    start = `${title[0].toUpperCase()}${title.slice(1)}${t(": ")}${does}`;
  if (token === null || direction === "backward" || !box.tokens[token]) return start;
  if (name !== "loss") {
    const isAsked = (/** @type {FlowBlock} */ one) =>
      box.weights ? one === box : one.weights && one.column === box.column;
    const told = blocks.filter(isAsked).map((one) => attention(explorer, one, token)),
      cross = blocks.findLast(({ block }) => block.endsWith(".cross"));
    if (cross && !box.weights && box.column < cross.column)
      told.push(attention(explorer, cross, token, true));
    return told.join(" ") || start;
  }
  const row = rowOf(box.output, token),
    best = argmax(row),
    word = visibleText(axesOf(session, box.output)[1]?.labels?.[best] ?? best),
    values = { place: readingPlace(session, box.tokens[token]), word, p: percent(Math.exp(row[best])) };
  return t("{place}, the most probable token is “{word}”, with {p}.", values);
}

/**
 * Say where a prediction is made: a model of gaps reads the whole text, and predicts the token itself.
 * @type {(session: Session, token: string) => string}
 */
export function readingPlace({ head }, token) {
  const read = visibleText(token);
  return head.architecture === "bert" ? t("At “{read}”", { read }) : t("After “{read}”", { read });
}

/**
 * Say to which two tokens a token attends most in a block, each with its weight and the head; of a key, which
 * two tokens attend most to it.
 * @type {(explorer: Explorer, box: FlowBlock, token: number, isKey?: boolean) => string}
 */
function attention(explorer, { block, weights }, token, isKey = false) {
  const step = /** @type {import("../engine/tape.js").Step} */ (weights),
    [heads, queries, keys] = step.shape,
    sublayer = sublayersOf(explorer).find(({ name }) => name === block),
    nameOf = (/** @type {"rows" | "keys"} */ side, /** @type {number} */ i) =>
      visibleText(sublayer?.[side][i] ?? i);
  const strongest = Array.from({ length: isKey ? queries : keys }, (_, other) => {
    const place = isKey ? other * keys + token : token * keys + other,
      own = new Float64Array(heads).map((_, head) => step.data[head * queries * keys + place]),
      head = argmax(own),
      name = nameOf(isKey ? "rows" : "keys", other);
    return { p: own[head], text: t("“{name}” ({p}, head {head})", { name, p: cellText(own[head]), head }) };
  }).sort((a, b) => b.p - a.p);
  const most = [0, 1].map((i) => strongest[i]?.text ?? "").filter(Boolean),
    values = {
      read: nameOf(isKey ? "keys" : "rows", token),
      most: most.join(t(" and ")),
      where: blockTitle(block, explorer.tape),
    };
  return isKey
    ? t("In {where}, {most} attend most to “{read}”.", values)
    : t("“{read}” attends most to {most} in {where}.", values);
}
