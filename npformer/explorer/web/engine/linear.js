// @ts-check
// Embeddings, the linear map, and the arrays that are added to others.
import { addProduct, addProductWithTransposed, addTransposedProduct } from "./products.js";

/**
 * Look up the vector of each token: table (V, D), ids (T,) -> y (T, D). The vector of zeroId is 0.
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} table
 * @param {number[]} ids
 * @param {number} scale
 * @param {number | null} zeroId
 */
export function embed(tape, path, table, ids, scale, zeroId) {
  const width = table.shape[1];
  // y = table[ids] * scale
  const y = new Float64Array(ids.length * width);
  for (let i = 0; i < y.length; i++) {
    const id = ids[Math.floor(i / width)];
    y[i] = id === zeroId ? 0 : table.data[id * width + (i % width)] * scale;
  }
  const step = tape.record("embed", path, [ids.length, width], y, [table], { ids, scale, zeroId });
  step.back = () => {
    // dtable[ids] += dy * scale
    for (let i = 0; i < y.length; i++) {
      const id = ids[Math.floor(i / width)];
      if (id !== zeroId) table.grad[id * width + (i % width)] += step.grad[i] * scale;
    }
  };
  return step;
}

/**
 * Multiply the rows of x by a matrix: x (..., I), weight (I, O) -> y (..., O).
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {Step} weight
 * @param {string} line
 */
export function multiply(tape, path, x, weight, line = "linear") {
  const [inner, outer] = weight.shape;
  const rows = x.data.length / inner;
  // y = rows @ weight
  const y = new Float64Array(rows * outer);
  addProduct(x.data, weight.data, y, rows, inner, outer);
  const shape = [...x.shape.slice(0, -1), outer];
  const step = tape.record("linear", path, shape, y, [x, weight], {}, line);
  step.back = () => {
    // dx = dy @ weight.T
    addProductWithTransposed(step.grad, weight.data, x.grad, rows, outer, inner);
    // dweight = rows.T @ dy
    addTransposedProduct(x.data, step.grad, weight.grad, rows, inner, outer);
  };
  return step;
}

/**
 * Add a bias to each row: x (..., O), bias (O,) -> y (..., O).
 * @type {(tape: Tape, path: string, x: Step, bias: Step) => Step}
 */
export function addBias(tape, path, x, bias) {
  const width = bias.data.length, rows = x.data.length / width;
  const y = new Float64Array(x.data.length);
  for (let row = 0, i = 0; row < rows; row++) {
    // y = x + bias
    for (let j = 0; j < width; j++, i++) y[i] = x.data[i] + bias.data[j];
  }
  const step = tape.record("add_bias", path, x.shape, y, [x, bias]);
  step.back = () => {
    for (let row = 0, i = 0; row < rows; row++) {
      // dx = dy, dbias = dy.sum(0)
      for (let j = 0; j < width; j++, i++) {
        x.grad[i] += step.grad[i];
        bias.grad[j] += step.grad[i];
      }
    }
  };
  return step;
}

/**
 * The linear map y = x weight + bias, with or without the bias: x (..., I) -> y (..., O).
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {Step} weight
 * @param {Step | undefined} bias
 * @param {string} line
 */
export function linear(tape, path, x, weight, bias, line = "linear") {
  tape.alias(`${path}.x`, x);
  if (!bias) return multiply(tape, `${path}.y`, x, weight, line);
  return addBias(tape, `${path}.y`, multiply(tape, `${path}.product`, x, weight, line), bias);
}

/**
 * Move or copy entries to other places: y[i] = x[from(i)].
 * @param {Tape} tape
 * @param {string} op
 * @param {string} path
 * @param {Step} x
 * @param {number[]} shape
 * @param {(index: number) => number} from
 */
export function rearrange(tape, op, path, x, shape, from) {
  const y = new Float64Array(shape.reduce((a, b) => a * b));
  for (let i = 0; i < y.length; i++) y[i] = x.data[from(i)];
  const step = tape.record("rearrange", path, shape, y, [x], { from }, op);
  step.back = () => {
    // each gradient returns to the place of its number; a number that was copied gets the sum of its copies'
    for (let i = 0; i < y.length; i++) x.grad[from(i)] += step.grad[i];
  };
  return step;
}

/** Exchange the axes: x (N, M) -> y (M, N). @type {(tape: Tape, path: string, x: Step) => Step} */
export function transpose(tape, path, x) {
  const [n, m] = x.shape;
  const from = (/** @type {number} */ i) => (i % n) * m + Math.floor(i / n);
  // y = x.T; a loop is faster than rearrange, and a table of tokens is large
  const y = new Float64Array(x.data.length);
  for (let i = 0; i < n; i++) {
    for (let j = 0; j < m; j++) y[j * n + i] = x.data[i * m + j];
  }
  const step = tape.record("rearrange", path, [m, n], y, [x], { from }, "transpose");
  step.back = () => {
    // dx = dy.T
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < m; j++) x.grad[i * m + j] += step.grad[j * n + i];
    }
  };
  return step;
}

/**
 * Add the first entries of an array to another one, which has as many or fewer.
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {Step} h   of the same shape; or the table of positions (max_length, D), for x (T, D)
 * @param {string} line
 */
export function add(tape, path, x, h, line = "residual") {
  // y = x + h, or y = x + table[:T]
  const y = x.data.map((value, i) => value + h.data[i]);
  const step = tape.record("add", path, x.shape, y, [x, h], {}, line);
  step.back = () => {
    // dx = dy, dh = dy: a sum passes its gradient to both terms
    step.grad.forEach((dy, i) => {
      x.grad[i] += dy;
      h.grad[i] += dy;
    });
  };
  return step;
}

/**
 * Multiply each entry by a number that is not learned: dropout, a scale, or a head that is switched off.
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {(index: number) => number} factor
 * @param {string} line
 * @param {string} name   the name of the factor in the arithmetic
 */
export function multiplyEntries(tape, path, x, factor, line, name) {
  // y = x * factor
  const y = x.data.map((value, i) => value * factor(i));
  const step = tape.record("factor", path, x.shape, y, [x], { factor, name }, line);
  step.back = () => {
    // dx = dy * factor
    step.grad.forEach((dy, i) => {
      x.grad[i] += dy * factor(i);
    });
  };
  return step;
}
