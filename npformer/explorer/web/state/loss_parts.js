// @ts-check
// What the loss of the page consists of: the cross-entropy and label smoothing.
import { t } from "../words/text.js";

/** @typedef {import("../engine/tape.js").Tape} Tape */

/**
 * Return how much label smoothing the loss has, such as "label smoothing 0.1", or "" if it has none.
 * @param {Tape} tape
 */
export function smoothingOf(tape) {
  const smoothing = tape.names.get("loss.losses")?.note.smoothing;
  return smoothing ? t("label smoothing {smoothing}", { smoothing: +smoothing.toPrecision(4) }) : "";
}

/**
 * Return the mean of -log p(target), or NaN on a page without targets.
 * @param {Tape} tape
 */
export function crossEntropyOf(tape) {
  const losses = tape.names.get("loss.losses"),
    { real, tokens } = tape.names.get("loss")?.note ?? {};
  if (!losses || !real) return NaN;
  const [logProbs] = losses.inputs,
    width = logProbs.shape[1];
  const surprises = losses.note.targets.map((/** @type {number} */ target, /** @type {number} */ t) =>
    real[t] ? -logProbs.data[t * width + target] : 0,
  );
  return surprises.reduce((/** @type {number} */ sum, /** @type {number} */ x) => sum + x, 0) / tokens;
}
