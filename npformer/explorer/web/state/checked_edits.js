// @ts-check
// The changes in an address, which may say anything.
import { similarActivations } from "../engine/activations.js";

/**
 * Keep of edits only what has the right form: an address may say anything.
 * @param {Session} session
 * @param {any} edits
 */
export function checkedEdits(session, edits) {
  const isNumber = (/** @type {any} */ x) => typeof x === "number" && Number.isFinite(x);
  const isTuple = (/** @type {any} */ list, /** @type {number} */ length) =>
    Array.isArray(list) && list.length === length && Number.isInteger(list[0]);
  /** @type {any} */
  const checked = {};
  const keep = (/** @type {string} */ kind, /** @type {(item: any) => boolean} */ isRight) => {
    for (const [path, list] of Object.entries(edits?.[kind] ?? {})) {
      if (!Array.isArray(list)) continue;
      const right = list.filter(isRight);
      if (right.length) (checked[kind] ??= {})[path] = right;
    }
  };
  keep("heads", (head) => Number.isInteger(head) && head >= 0 && head < session.config.n_heads);
  keep("masks", (cell) => isTuple(cell, 3) && Number.isInteger(cell[1]));
  keep("values", (pair) => isTuple(pair, 2) && isNumber(pair[1]));
  keep("dropout", (index) => Number.isInteger(index) && index >= 0);
  const activation = edits?.settings?.activation,
    { activation: own } = session.config;
  if (activation !== own && similarActivations(own).includes(activation)) checked.settings = { activation };
  return checked;
}
