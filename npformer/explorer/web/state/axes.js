// @ts-check
// The axes of the arrays: which of them are tokens, and how each position is called.
import { t } from "../words/text.js";

/** What the axes without names of their positions count. @type {Record<string, string>} */
const AXES = {
  token: t("token"),
  position: t("position"),
  dimension: t("dimension"),
  row: t("row"),
  column: t("column"),
  "source token": t("source token"),
};

/**
 * An axis: what it counts, and the names of its positions if they have any.
 * @typedef {{name: string, labels: string[] | null, length: number}} Axis
 */

const KEY_COLUMNS = new RegExp(
  "attention\\.((key_|position_|unscaled_)?scores|" +
    "mask|masked|masked_queries|softmax|weights|dropped|dropout_mask)$",
);
const KEY_ROWS = /attention\.(k|v)$/;
const KEY_PROJECTIONS = /cross\.projections\.[12]\./;

/**
 * Return the tokens of one side.
 * @param {Session} session
 * @param {"source" | "target" | "predicted"} side
 * @returns {string[]}
 */
export function tokensOf(session, side) {
  const { head, ids } = session;
  if (!ids) {
    const example = head.example ?? {};
    const list = {
      source: example.source_tokens,
      target: example.target_tokens,
      predicted: example.predicted_tokens,
    }[side];
    return list ?? example.source_tokens ?? [];
  }
  if (side === "source") return ids.source.map((id) => head.source_words[id]);
  // the last token of a text has no next one
  return (side === "target" ? ids.targetIn : ids.targetOut).map((id) => head.target_words[id] ?? "");
}

/**
 * Return the side whose tokens are the queries of an array, or its rows.
 * @param {string} path
 * @returns {"source" | "target" | "predicted"}
 */
export function sideOf(path) {
  if (/^(source|encoder|memory)/.test(path)) return "source";
  if (KEY_PROJECTIONS.test(path) || (path.includes(".cross.") && KEY_ROWS.test(path))) return "source";
  return path.startsWith("loss.") ? "predicted" : "target";
}

/**
 * Return the axes of an array, one for each of its dimensions.
 * @param {Session} session
 * @param {Step} step
 * @returns {Axis[]}
 */
export function axesOf(session, step) {
  const { path, shape } = step;
  const isLayer = session.head.architecture === "layer"; // whose rows need not be tokens
  const rowTokens = tokensOf(session, sideOf(path));
  return shape.map((length, dimension) => {
    const fromEnd = shape.length - 1 - dimension;
    if (shape.length === 3 && dimension === 0) return { name: "head", labels: null, length };
    const words = vocabularyAxis(session, step, fromEnd);
    if (words) return { name: "token", labels: words, length };
    if (step.op === "parameter" || step.op === "constant") {
      if (path.endsWith("table") && fromEnd === 1) return { name: "position", labels: null, length };
      const name = !isLayer ? "dimension" : fromEnd === 1 ? "row" : "column";
      return { name, labels: null, length };
    }
    if (fromEnd === 0 && KEY_COLUMNS.test(path)) {
      const side = path.includes(".cross.") ? "source" : sideOf(path);
      const name = side === "source" ? "source token" : "token";
      return { name, labels: fitting(tokensOf(session, side), length), length };
    }
    if (fromEnd === 1 || (shape.length === 1 && length === rowTokens.length)) {
      return isLayer
        ? { name: "row", labels: null, length }
        : { name: "token", labels: fitting(rowTokens, length), length };
    }
    return { name: isLayer ? "column" : "dimension", labels: null, length };
  });
}

/**
 * Return what each axis of an array counts: the heads, the tokens of one side as rows or as keys, dimensions
 * of this number, or "". Where two arrays have the same, a place along it means the same.
 * @param {Session} session
 * @param {Step} step
 */
export function axisKeys(session, step) {
  const rows = sideOf(step.path).replace("predicted", "target"), last = step.shape.length - 1;
  return axesOf(session, step).map(({ name, length }, i) => {
    if (name === "head") return name;
    if (step.op === "parameter" || vocabularyAxis(session, step, last - i)) return "";
    if (name === "dimension" || name === "column") return `${name} ${length}`;
    if (i < last || last === 0) return rows;
    return `key ${step.path.includes(".cross.") ? "source" : rows}`;
  });
}

/** @type {(tokens: string[], length: number) => string[] | null} */
function fitting(tokens, length) {
  return tokens.length === length ? tokens : null;
}

/**
 * Return the words of an axis that counts the vocabulary, or null.
 * @type {(session: Session, step: Step, fromEnd: number) => any}
 */
export function vocabularyAxis({ head }, { path, shape, note }, fromEnd) {
  const length = shape[shape.length - 1 - fromEnd];
  const isTable = /tokens\.(weight|table)$/.test(path) && fromEnd === 1;
  const isOutput =
    /^((head\.)?output\.(y|product|weight|bias)|logits|loss\.log_probs)$/.test(path) && fromEnd === 0;
  if (!isTable && !isOutput) return null;
  const words =
    note?.labels ?? (isTable && path.startsWith("source") ? head.source_words : head.target_words);
  return words?.length === length ? words : null;
}

/** Return the indices along all axes of an entry. @type {(shape: number[], index: number) => number[]} */
export function unravel(shape, index) {
  const places = [];
  for (let i = shape.length - 1; i >= 0; i--) {
    places.unshift(index % shape[i]);
    index = Math.floor(index / shape[i]);
  }
  return places;
}

/**
 * Describe the place of an entry in words: "head 1, query “était”, key “tired”".
 * @param {Session} session
 * @param {Step} step
 * @param {number} index
 * @param {boolean[]} named   the axes to name, all by default
 */
export function placeText(session, step, index, named = step.shape.map(() => true)) {
  const axes = axesOf(session, step),
    places = unravel(step.shape, index);
  const isMap = KEY_COLUMNS.test(step.path);
  return axes
    .map(({ name, labels }, i) => {
      const place = places[i];
      if (!named[i]) return "";
      if (name === "head") return t("head {place}", { place });
      if (!labels) return step.shape[i] === 1 ? "" : `${AXES[name]} ${place}`;
      const role = !isMap ? "" : i === axes.length - 1 ? t("key ") : t("query ");
      return `${role}“${labels[place]}”`;
    })
    .filter(Boolean)
    .join(t(", "));
}
