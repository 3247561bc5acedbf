// @ts-check
// The arithmetic of positions inside attention: the rotation of queries and keys by their positions, and the
// sums of the weights at each distance.
import { constant, entry, gradient, term } from "./factors.js";
import { t } from "../words/text.js";

/** @typedef {import("./factors.js").Arithmetic} Arithmetic */
/** @typedef {import("../engine/tape.js").Step} Step */

/**
 * Return the pair (a, b) of x (H, T, K) that is rotated together with an entry: the places of both, and those
 * of their cosine and sine in the table (T, K), whose first K / 2 columns are cosines and whose others sines.
 * @param {Step} step
 * @param {number} index
 */
function pairOf(step, index) {
  const [, length, width] = step.shape, half = width / 2;
  const column = index % width, start = index - column, row = Math.floor(index / width) % length;
  const isInterleaved = step.note.layout === "interleaved";
  const pair = isInterleaved ? Math.floor(column / 2) : column % half;
  const [first, second] = isInterleaved ? [2 * pair, 2 * pair + 1] : [pair, pair + half];
  const cos = row * width + pair;
  return { isFirst: column === first, a: start + first, b: start + second, cos, sin: cos + half };
}

/** y_a = a cos - b sin, y_b = a sin + b cos @type {Arithmetic} */
const ROTATE = {
  forward(step, index) {
    const [x, table] = step.inputs, { isFirst, a, b, cos, sin } = pairOf(step, index);
    if (isFirst) {
      return [
        term(x, a, [entry(x, a), entry(table, cos)]),
        term(x, b, [constant(-1, t("minus")), entry(x, b), entry(table, sin)]),
      ];
    }
    return [
      term(x, a, [entry(x, a), entry(table, sin)]),
      term(x, b, [entry(x, b), entry(table, cos)]),
    ];
  },
  // the rotation by the opposite angle; the table is not learned
  backward(step, which, index) {
    if (which === 1) return [];
    const [, table] = step.inputs, { isFirst, a, b, cos, sin } = pairOf(step, index);
    if (isFirst) {
      return [
        term(step, a, [gradient(step, a), entry(table, cos)]),
        term(step, b, [gradient(step, b), entry(table, sin)]),
      ];
    }
    return [
      term(step, a, [constant(-1, t("minus")), gradient(step, a), entry(table, sin)]),
      term(step, b, [gradient(step, b), entry(table, cos)]),
    ];
  },
};

/** y_tr = the sum of x_ts over the keys s at distance r from query t @type {Arithmetic} */
const COLLECT_BY_DISTANCE = {
  forward({ inputs: [x], note: { to } }, index) {
    const places = [...x.data.keys()].filter((place) => to(place) === index);
    return places.map((place) => term(x, place, [entry(x, place)]));
  },
  backward(step, _, index) {
    const place = step.note.to(index);
    return [term(step, place, [gradient(step, place)])];
  },
};

/** @type {Record<string, Arithmetic>} */
export const ARITHMETIC_OF_POSITIONS = {
  rotate: ROTATE,
  collect_by_distance: COLLECT_BY_DISTANCE,
};
