// @ts-check
// The arithmetic of the operations that act on each entry alone, or only move entries to other places.
import { SCALARS } from "../engine/activations.js";
import { computed, constant, entry, gradient, placesOfRow, term } from "./factors.js";
import { t } from "../words/text.js";

/**
 * Return the terms of the gradient that an input gets from the same entry of the output, and nothing else.
 * @param {Step} step
 * @param {number} index
 */
function passedOn(step, index) {
  return index < step.grad.length ? [term(step, index, [gradient(step, index)])] : [];
}

/**
 * Return the indices of an output in which the entry of a vector is used that is added to each row, or scales
 * it.
 * @param {Step} step
 * @param {number} index
 */
function placesOfColumn(step, index) {
  const width = step.shape[step.shape.length - 1];
  return Array.from({ length: step.grad.length / width }, (_, row) => row * width + index);
}

/** y = x + h @type {Arithmetic} */
const SUM = {
  forward: ({ inputs }, index) => inputs.map((input) => term(input, index, [entry(input, index)])),
  backward: (step, _, index) => passedOn(step, index),
};

/** y = x + bias @type {Arithmetic} */
const ADD_BIAS = {
  forward({ inputs: [x, bias] }, index) {
    const place = index % bias.data.length;
    return [term(x, index, [entry(x, index)]), term(bias, place, [entry(bias, place)])];
  },
  backward(step, which, index) {
    if (which === 0) return passedOn(step, index);
    return placesOfColumn(step, index).flatMap((place) => passedOn(step, place));
  },
};

/** y = x * factor @type {Arithmetic} */
const FACTOR = {
  forward({ inputs: [x], note: { factor, name } }, index) {
    return [term(x, index, [entry(x, index), constant(factor(index), name)])];
  },
  backward(step, _, index) {
    const { factor, name } = step.note;
    return [term(step, index, [gradient(step, index), constant(factor(index), name)])];
  },
};

/** y[i] = x[from(i)] @type {Arithmetic} */
const REARRANGE = {
  forward({ inputs: [x], note: { from } }, index) {
    return [term(x, from(index), [entry(x, from(index))])];
  },
  backward(step, _, index) {
    const places = [...step.grad.keys()].filter((place) => step.note.from(place) === index);
    return places.flatMap((place) => passedOn(step, place));
  },
};

/** @type {WeakMap<Step, Step>} */
const masks = new WeakMap();

/**
 * Return the mask of a step as an array of its own: 1 where the query may attend to the key, else 0.
 * @param {Step} step
 * @returns {Step}
 */
export function maskOf(step) {
  const known = masks.get(step), { note: { allowed, isAllowed }, shape: [, queries, keys] } = step;
  if (known) return known;
  const cells = allowed ?? Array.from({ length: queries }, (_, t) => isAllowed(t * keys)),
    data = Float64Array.from(cells, Number), none = new Float64Array(0);
  const mask = {
    ...step, data, computed: data, grad: none, op: "allowed", inputs: [], edited: new Set(),
    path: step.path.replace(/masked(?=_queries|$).*/, allowed ? "mask" : "query_mask"),
    shape: [queries, cells.length / queries],
  };
  masks.set(step, mask);
  return mask;
}

/** y = where(mask, x, fill), or y = x + where(mask, 0, fill) @type {Arithmetic} */
const MASK = {
  forward(step, index) {
    const { inputs: [x], note: { allowed, fill, how } } = step;
    const text = t("masked: the query may not attend to the key");
    const why = computed(maskOf(step), index % allowed.length, fill, text);
    const masked = term(null, 0, [why]), score = term(x, index, [entry(x, index)]);
    if (allowed[index % allowed.length]) return [score];
    return how === "add" ? [score, masked] : [masked];
  },
  backward(step, _, index) {
    const { allowed, how } = step.note;
    return allowed[index % allowed.length] || how === "add" ? passedOn(step, index) : [];
  },
};

/** y = where(query_mask, x, 0) @type {Arithmetic} */
const MASK_QUERIES = {
  forward({ inputs: [x], note: { isAllowed } }, index) {
    if (isAllowed(index)) return [term(x, index, [entry(x, index)])];
    return [term(null, 0, [constant(0, t("masked query"))])];
  },
  backward: (step, _, index) => (step.note.isAllowed(index) ? passedOn(step, index) : []),
};

/** y = f(x) @type {Arithmetic} */
const SCALAR = {
  forward(step, index) {
    const [x] = step.inputs;
    return [term(x, index, [computed(x, index, step.computed[index], SCALARS[step.note.name].name)])];
  },
  backward(step, _, index) {
    const [x] = step.inputs, { name, derivative } = SCALARS[step.note.name];
    const slope = derivative(x.data[index], step.computed[index]);
    const factor = computed(x, index, slope, t("derivative of {name}", { name }));
    return [term(step, index, [gradient(step, index), factor])];
  },
};

/** y = x * (inner + shift) * factor @type {Arithmetic} */
const GATE = {
  forward({ inputs: [x, inner], note: { shift, factor } }, index) {
    return [term(x, index, [entry(x, index), ...gateFactors(inner, index, shift, factor)])];
  },
  backward(step, which, index) {
    const { inputs: [x, inner], note: { shift, factor } } = step;
    const others = which === 0
      ? gateFactors(inner, index, shift, factor)
      : [entry(x, index), ...(factor === 1 ? [] : [constant(factor, t("factor"))])];
    return [term(step, index, [gradient(step, index), ...others])];
  },
};

/**
 * @param {Step} inner
 * @param {number} index
 * @param {number} shift
 * @param {number} factor
 */
function gateFactors(inner, index, shift, factor) {
  if (factor === 1) return [entry(inner, index)];
  return [computed(inner, index, inner.data[index] + shift, t("1 + tanh")), constant(factor, t("factor"))];
}

/** xhat = (x - mean) * rstd @type {Arithmetic} */
const NORMALIZE = {
  forward({ inputs: [x, mean, rstd] }, index) {
    const row = Math.floor(index / x.shape[1]);
    return [
      term(x, index, [entry(x, index), entry(rstd, row)]),
      term(mean, row, [constant(-1, t("minus")), entry(mean, row), entry(rstd, row)]),
    ];
  },
  backward(step, which, index) {
    const [x, mean, rstd] = step.inputs;
    if (which === 0) {
      return [term(step, index, [gradient(step, index), entry(rstd, Math.floor(index / x.shape[1]))])];
    }
    return placesOfRow(step, index * x.shape[1]).map((place) => {
      const factors = which === 1
        ? [constant(-1, t("minus")), entry(rstd, index)]
        : [computed(x, place, x.data[place] - mean.data[index], t("x − mean"))];
      return term(step, place, [gradient(step, place), ...factors]);
    });
  },
};

/** y = x * scale, with one scale for each row @type {Arithmetic} */
const SCALE_ROWS = {
  forward({ inputs: [x, scale] }, index) {
    return [term(x, index, [entry(x, index), entry(scale, Math.floor(index / x.shape[1]))])];
  },
  backward(step, which, index) {
    const [x, scale] = step.inputs, width = x.shape[1];
    if (which === 0) {
      return [term(step, index, [gradient(step, index), entry(scale, Math.floor(index / width))])];
    }
    const places = placesOfRow(step, index * width);
    return places.map((place) => term(step, place, [gradient(step, place), entry(x, place)]));
  },
};

/** y = gain * xhat + bias, or y = gain * xhat @type {Arithmetic} */
const SCALE_AND_SHIFT = {
  forward({ inputs: [xhat, gain, bias] }, index) {
    const place = index % gain.data.length;
    const scaled = term(xhat, index, [entry(gain, place), entry(xhat, index)]);
    return bias ? [scaled, term(bias, place, [entry(bias, place)])] : [scaled];
  },
  backward(step, which, index) {
    const [xhat, gain] = step.inputs;
    if (which === 0) {
      return [term(step, index, [gradient(step, index), entry(gain, index % gain.data.length)])];
    }
    return placesOfColumn(step, index).map((place) => {
      const factors = which === 1 ? [entry(xhat, place)] : [];
      return term(step, place, [gradient(step, place), ...factors]);
    });
  },
};

/** @type {Record<string, Arithmetic>} */
export const ARITHMETIC_OF_ENTRIES = {
  add: SUM,
  add_bias: ADD_BIAS,
  factor: FACTOR,
  rearrange: REARRANGE,
  mask: MASK,
  mask_queries: MASK_QUERIES,
  scalar: SCALAR,
  gate: GATE,
  normalize: NORMALIZE,
  scale_rows: SCALE_ROWS,
  scale_and_shift: SCALE_AND_SHIFT,
};
