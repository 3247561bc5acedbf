// @ts-check
// Lenses on a pass, as in npformer/lenses: what the model would predict after each layer (the logit lens),
// and what each of its parts adds to a logit (direct logit attribution, Elhage et al. 2021).
import { argmax, rowOf } from "./tape.js";

/**
 * A part of the model, its array, and what it adds to a logit; and the dimension of the array that adds most,
 * with what it adds if that is known. The name of a head is its number.
 * @typedef {{name: string, step: Step, value: number, dimension: number, largest?: number}} Part
 */

/**
 * Return the vectors (T, D) before the first layer and after each one.
 * @param {Tape} tape
 * @returns {Step[]}
 */
export function layerVectors(tape) {
  const embedded = tape.names.get("target.y") ?? tape.names.get("embedding.y");
  return embedded ? [embedded, ...outputsOfLayers(tape, ["decoder", "layers"]).values()] : [];
}

/**
 * Return the last array of each layer of some stacks, by the layer: "decoder.0".
 * @param {Tape} tape
 * @param {string[]} stacks
 */
export function outputsOfLayers(tape, stacks) {
  /** @type {Map<string, Step>} */
  const last = new Map();
  for (const step of tape.steps) {
    const [stack, layer] = step.path.split(".");
    const isOfLayer = stacks.includes(stack) && /^\d+$/.test(layer) && step.op !== "parameter";
    if (isOfLayer) last.set(`${stack}.${layer}`, step);
  }
  return last;
}

/**
 * Return the logits (T, V) that the model would have after its embedding and after each layer.
 * @param {import("./pass.js").Model} model
 * @param {import("./pass.js").Edits} edits
 * @param {Tape} tape   of the pass
 */
export function layerLogits(model, edits, tape) {
  const pass = model.passApart(edits);
  return layerVectors(tape).map((x) => pass.predict(x).data);
}

/**
 * Return what each part of the model adds to a logit. The gradient of the logit goes back through sums and
 * norms alone, whose statistics count as constants, so that the parts add up to the logit.
 * @param {Tape} tape
 * @param {number} position
 * @param {number} token
 * @returns {Part[]}
 */
export function attributionOf(tape, position, token) {
  let step = /** @type {Step} */ (tape.names.get("logits"));
  /** @type {Part[]} */
  const parts = [];
  /** @type {Float64Array} */
  let g = Float64Array.from({ length: step.shape[1] }, (_, v) => (v === token ? 1 : 0));
  const add = (/** @type {string} */ name, /** @type {Step} */ of, /** @type {Float64Array} */ terms) => {
    const dimension = argmax(terms.map(Math.abs)),
      value = terms.reduce((sum, term) => sum + term, 0);
    parts.unshift({ name, step: of, value, dimension, largest: terms[dimension] });
  };
  for (;;) {
    const [x, second, third] = step.inputs;
    const data = rowOf(step, position);
    const before = rowOf({ ...step, data: step.computed }, position);
    if (step.edited.size) add("set", step, products(data.map((x, i) => x - before[i]), g));
    if (step.op === "add_bias") add("bias", step, products(second.data, g));
    else if (step.op === "linear") g = timesTransposed(g, second);
    else if (step.op === "scale_and_shift") {
      if (third) add("bias", step, products(third.data, g));
      g = g.map((dy, i) => dy * second.data[i]); // dxhat = dy * gain
    } else if (step.op === "normalize") {
      // dx = dxhat * rstd - the mean of this, with a constant rstd
      const mean = g.reduce((sum, dxhat) => sum + dxhat, 0) / g.length;
      g = g.map((dxhat) => (dxhat - mean) * third.data[position]);
    } else if (step.op === "scale_rows") g = g.map((dxhat) => dxhat * second.data[position]);
    else if (step.op === "factor") g = g.map((dy, i) => dy * step.note.factor(position * g.length + i));
    else if (step.line === "residual") addSublayer(second, position, g, add);
    else {
      add("embedding", step, products(data, g));
      return parts;
    }
    step = x;
  }
}

/**
 * Add the parts of a sublayer: each head of an attention, or the feed-forward network, and the output's bias.
 * @param {Step} output
 * @param {number} position
 * @param {Float64Array} g   the gradient of the logit for a row of the output
 * @param {(name: string, step: Step, terms: Float64Array) => void} add
 */
function addSublayer(output, position, g, add) {
  let rest = products(rowOf(output, position), g),
    h = output;
  if (h.op === "add_bias") {
    const bias = products(h.inputs[1].data, g);
    rest = rest.map((term, i) => term - bias[i]);
    add("bias", output, bias);
    [h] = h.inputs;
  }
  const merged = h.op === "linear" ? h.inputs[0] : h;
  if (merged.line !== "merge_heads") {
    add("feed-forward", h, rest);
    return;
  }
  // y = merged @ weight, and merged has the outputs of the heads side by side
  const [heads] = merged.inputs[0].shape, dmerged = h === merged ? g : timesTransposed(g, h.inputs[1]),
    width = dmerged.length / heads, terms = products(rowOf(merged, position), dmerged);
  for (let head = heads - 1; head >= 0; head--)
    add(String(head), merged, terms.map((term, i) => (Math.floor(i / width) === head ? term : 0)));
}

/** @type {(a: Float64Array, b: Float64Array) => Float64Array} */
function products(a, b) {
  return a.map((x, i) => x * b[i]);
}

/** @type {(a: Float64Array, b: Float64Array) => number} */
function dot(a, b) {
  return a.reduce((sum, x, i) => sum + x * b[i], 0);
}

/** dy (O,), weight (I, O) -> dy @ weight.T (I,) @type {(dy: Float64Array, weight: Step) => Float64Array} */
function timesTransposed(dy, { data, shape: [inner, outer] }) {
  return Float64Array.from({ length: inner }, (_, i) => dot(data.subarray(i * outer, (i + 1) * outer), dy));
}
