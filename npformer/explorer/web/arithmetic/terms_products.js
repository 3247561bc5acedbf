// @ts-check
// The arithmetic of the matrix products: an entry is the sum of the products of a row and a column.
import { constant, entry, gradient, term } from "./factors.js";
import { t } from "../words/text.js";

/**
 * Return the terms that a function gives for 0 .. length - 1.
 * @param {number} length
 * @param {(i: number) => Term} make
 */
function makeTerms(length, make) {
  return Array.from({ length }, (_, i) => make(i));
}

/**
 * Return the term of all columns that a recorded page leaves out: what the others lack to the whole gradient.
 * @param {number} whole
 * @param {Term[]} list
 */
function restOf(whole, list) {
  const rest = list.reduce((left, { value }) => left - value, whole);
  return term(null, 0, [constant(rest, t("all other tokens of the vocabulary"))]);
}

/** y = table[ids] * scale @type {Arithmetic} */
const EMBED = {
  forward(step, index) {
    const { ids, scale, zeroId } = step.note, [table] = step.inputs, width = table.shape[1];
    const id = ids[Math.floor(index / width)], place = id * width + (index % width);
    if (id === zeroId) return [term(table, place, [constant(0, t("the vector of padding"))])];
    return [term(table, place, [entry(table, place), constant(scale, t("scale"))])];
  },
  // the gradients of all positions that hold the token
  backward(step, _, index) {
    const { ids, scale, zeroId } = step.note, width = step.inputs[0].shape[1];
    const id = Math.floor(index / width);
    const positions = [...ids.keys()].filter((row) => ids[row] === id && id !== zeroId);
    return positions.map((row) => {
      const place = row * width + (index % width);
      return term(step, place, [gradient(step, place), constant(scale, t("scale"))]);
    });
  },
};

/** y = x @ weight @type {Arithmetic} */
const LINEAR = {
  forward(step, index) {
    const [x, weight] = step.inputs, [inner, outer] = weight.shape;
    const row = Math.floor(index / outer), column = index % outer;
    return makeTerms(inner, (i) => {
      const place = row * inner + i;
      return term(x, place, [entry(x, place), entry(weight, i * outer + column)]);
    });
  },
  backward(step, which, index) {
    const [x, weight] = step.inputs, [inner, outer] = weight.shape;
    if (which === 0) { // dx = dy @ weight.T
      const row = Math.floor(index / inner), i = index % inner;
      const list = makeTerms(outer, (o) => {
        const place = row * outer + o;
        return term(step, place, [gradient(step, place), entry(weight, i * outer + o)]);
      });
      return step.note.isPart ? [...list, restOf(x.grad[index], list)] : list;
    } // dweight = x.T @ dy
    const i = Math.floor(index / outer), column = index % outer;
    return makeTerms(x.data.length / inner, (row) => {
      const place = row * outer + column;
      return term(step, place, [entry(x, row * inner + i), gradient(step, place)]);
    });
  },
};

/** scores = q @ k.swapaxes(-1, -2) * scale @type {Arithmetic} */
const SCORES = {
  scale({ note: { scale }, inputs: [{ shape: [, , width] }] }) {
    return constant(scale, Math.abs(scale * Math.sqrt(width) - 1) < 1e-6 ? `1/√${width}` : "");
  },
  forward(step, index) {
    const [q, k] = step.inputs, [, queries, keys] = step.shape, width = q.shape[2];
    const head = Math.floor(index / (queries * keys));
    const ofQuery = Math.floor(index / keys) * width, ofKey = (head * keys + (index % keys)) * width;
    return makeTerms(width, (i) => term(q, ofQuery + i, [entry(q, ofQuery + i), entry(k, ofKey + i)]));
  },
  backward(step, which, index) {
    const [q, k] = step.inputs, [, queries, keys] = step.shape, width = q.shape[2];
    const scale = constant(step.note.scale, t("scale"));
    const row = Math.floor(index / width), i = index % width; // row = head, then position
    if (which === 0) { // dq = dscores @ k
      const head = Math.floor(row / queries);
      return makeTerms(keys, (s) => {
        const place = row * keys + s;
        return term(step, place, [gradient(step, place), entry(k, (head * keys + s) * width + i), scale]);
      });
    } // dk = dscores.swapaxes(-1, -2) @ q
    const head = Math.floor(row / keys);
    return makeTerms(queries, (t) => {
      const place = (head * queries + t) * keys + (row % keys);
      return term(step, place, [gradient(step, place), entry(q, (head * queries + t) * width + i), scale]);
    });
  },
};

/** z = weights @ v @type {Arithmetic} */
const WEIGHTED_SUM = {
  forward(step, index) {
    const [weights, v] = step.inputs, [, queries, keys] = weights.shape, width = v.shape[2];
    const row = Math.floor(index / width), head = Math.floor(row / queries), l = index % width;
    return makeTerms(keys, (s) => {
      const place = row * keys + s;
      return term(weights, place, [entry(weights, place), entry(v, (head * keys + s) * width + l)]);
    });
  },
  backward(step, which, index) {
    const [weights, v] = step.inputs, [, queries, keys] = weights.shape, width = v.shape[2];
    if (which === 0) { // dweights = dz @ v.swapaxes(-1, -2)
      const row = Math.floor(index / keys), head = Math.floor(row / queries);
      const ofValue = (head * keys + (index % keys)) * width;
      return makeTerms(width, (l) => {
        const place = row * width + l;
        return term(step, place, [gradient(step, place), entry(v, ofValue + l)]);
      });
    } // dv = weights.swapaxes(-1, -2) @ dz
    const row = Math.floor(index / width), head = Math.floor(row / keys);
    return makeTerms(queries, (t) => {
      const query = head * queries + t, place = query * width + (index % width);
      return term(step, place, [entry(weights, query * keys + (row % keys)), gradient(step, place)]);
    });
  },
};

/** @type {Record<string, Arithmetic>} */
export const ARITHMETIC_OF_PRODUCTS = {
  embed: EMBED,
  linear: LINEAR,
  scores: SCORES,
  weighted_sum: WEIGHTED_SUM,
};
