// @ts-check
// The arithmetic of positions inside attention: the rotation of queries and keys by their positions, and the
// sums of the weights at each distance.
import { constant, entry, gradient, term } from "./factors.js";
import { t } from "../words/text.js";

/**
 * Return the two terms of an entry of a pair that is rotated: the entry times the cosine, and the other one
 * of the pair times the sine. In the table (T, K), the first K / 2 columns are cosines, the others sines.
 * @type {(step: Step, index: number, owner: Step, factorOf: typeof entry, isBack: boolean) => Term[]}
 */
function rotated(step, index, owner, factorOf, isBack) {
  const [, length, width] = step.shape, half = width / 2, [, table] = step.inputs;
  const column = index % width, row = Math.floor(index / width) % length;
  const isInterleaved = step.note.layout === "interleaved",
    isFirst = isInterleaved ? column % 2 === 0 : column < half,
    other = index + (isFirst ? 1 : -1) * (isInterleaved ? 1 : half);
  const cos = row * width + (isInterleaved ? Math.floor(column / 2) : column % half),
    signs = isFirst === isBack ? [] : [constant(-1, t("minus"))];
  return [
    term(owner, index, [factorOf(owner, index), entry(table, cos)]),
    term(owner, other, [...signs, factorOf(owner, other), entry(table, cos + half)]),
  ];
}

/** y_a = a cos - b sin, y_b = a sin + b cos @type {Arithmetic} */
const ROTATE = {
  forward: (step, index) => rotated(step, index, step.inputs[0], entry, false),
  // the rotation by the opposite angle; the table is not learned
  backward: (step, which, index) => (which === 1 ? [] : rotated(step, index, step, gradient, true)),
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
