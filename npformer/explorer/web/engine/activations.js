// @ts-check
// The activations of the feed-forward network and of projections: max(0, x), and x times a number between 0
// and 1.

/**
 * A function that an activation applies to each entry, with its derivative.
 * @typedef {object} Scalar
 * @property {string} name
 * @property {(x: number) => number} value
 * @property {(x: number, y: number) => number} derivative   of y with respect to x
 */

const TANH_SCALE = Math.sqrt(2 / Math.PI);

/** @type {Record<string, Scalar>} */
export const SCALARS = {
  relu: {
    name: "max(0, x)",
    value: (x) => (x > 0 ? x : 0),
    derivative: (x) => (x > 0 ? 1 : 0),
  },
  sigmoid: {
    name: "1 / (1 + exp(−x))",
    value: (x) => (1 + Math.tanh(x / 2)) / 2, // cannot overflow
    derivative: (_, y) => y * (1 - y),
  },
  normal_cdf: {
    name: "Φ(x) = (1 + erf(x / √2)) / 2",
    value: (x) => (1 + erf(x / Math.SQRT2)) / 2,
    derivative: (x) => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI),
  },
  tanh: {
    name: "tanh(√(2/π) (x + 0.044715 x³))",
    value: (x) => Math.tanh(TANH_SCALE * (x + 0.044715 * x ** 3)),
    derivative: (x, y) => (1 - y * y) * TANH_SCALE * (1 + 3 * 0.044715 * x * x),
  },
};

/**
 * The activations y = x gate(x), with the gate (s + shift) * factor of a function s of SCALARS.
 * @type {Record<string, {inner: string, shift: number, factor: number}>}
 */
const GATES = {
  gelu: { inner: "normal_cdf", shift: 0, factor: 1 },
  gelu_tanh: { inner: "tanh", shift: 1, factor: 0.5 },
  silu: { inner: "sigmoid", shift: 0, factor: 1 },
};

/**
 * Apply an activation to each entry: x (..., F) -> y (..., F).
 * @param {Tape} tape
 * @param {string} path   the name of y
 * @param {string} cache  the name of the package's cache of the activation
 * @param {Step} x
 * @param {string} name   one of the package's ACTIVATIONS: "none", "relu", "gelu", "gelu_tanh" or "swish"
 */
export function activate(tape, path, cache, x, name) {
  if (name === "none") return tape.alias(path, x);
  if (name === "relu") return tape.alias(cache, scalar(tape, path, x, "relu"));
  const line = name === "swish" ? "silu" : name;
  tape.alias(`${cache}.0`, x);
  const inner = scalar(tape, `${cache}.1`, x, GATES[line].inner);
  return gate(tape, path, x, inner, GATES[line], line);
}

/** The activation of the gate of each gated activation. @type {Record<string, string>} */
const GATED = { swiglu: "swish", geglu: "gelu", geglu_tanh: "gelu_tanh" };

/** @param {string} name   of an activation */
export function isGated(name) {
  return name in GATED;
}

/**
 * Return the activations by which one can be replaced, itself included: a gated one has other parameters.
 * @param {string} name
 */
export function similarActivations(name) {
  return isGated(name) ? Object.keys(GATED) : ["relu", "gelu", "gelu_tanh", "swish", "none"];
}

/**
 * Apply a gated activation: gate (T, F), value (T, F) -> activation(gate) value (T, F).
 * @param {Tape} tape
 * @param {string} path    the name of y
 * @param {string} cache   the name of the package's cache of the gated activation
 * @param {Step} gateInput
 * @param {Step} value
 * @param {string} name    "swiglu" or "geglu"
 */
export function gatedActivation(tape, path, cache, gateInput, value, name) {
  const activated = activate(tape, `${cache}.activated`, `${cache}.activation`, gateInput, GATED[name]);
  tape.alias(`${cache}.value`, value);
  return gate(tape, path, value, activated, { shift: 0, factor: 1 }, "gated");
}

/**
 * Apply a function of SCALARS to each entry.
 * @type {(tape: Tape, path: string, x: Step, name: string) => Step}
 */
function scalar(tape, path, x, name) {
  const { value, derivative } = SCALARS[name];
  // y = f(x)
  const y = x.data.map(value);
  const step = tape.record("scalar", path, x.shape, y, [x], { name }, name);
  step.back = () => {
    // dx = dy * f'(x)
    step.grad.forEach((dy, i) => { x.grad[i] += dy * derivative(x.data[i], y[i]); });
  };
  return step;
}

/**
 * Multiply x by the gate that an inner function gives.
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} x
 * @param {Step} inner
 * @param {{shift: number, factor: number}} settings
 * @param {string} line
 */
function gate(tape, path, x, inner, { shift, factor }, line) {
  // y = x * (inner + shift) * factor
  const y = x.data.map((value, i) => value * (inner.data[i] + shift) * factor);
  const step = tape.record("gate", path, x.shape, y, [x, inner], { shift, factor }, line);
  step.back = () => {
    // the product rule: dx = dy * (inner + shift) * factor, dinner = dy * x * factor
    step.grad.forEach((dy, i) => {
      x.grad[i] += dy * (inner.data[i] + shift) * factor;
      inner.grad[i] += dy * x.data[i] * factor;
    });
  };
  return step;
}

/**
 * The error function, which JavaScript lacks: erf(x) = 2/√π exp(-x²) Σ_n 2ⁿ x^(2n+1) / (1 · 3 · 5 ⋯ (2n+1)).
 * All terms have the sign of x, so nothing cancels.
 * @param {number} x
 */
export function erf(x) {
  if (Math.abs(x) > 6) return Math.sign(x); // closer to 1 than float64 can tell
  let sum = 0;
  for (let n = 0, term = x; Math.abs(term) > 1e-17 * Math.abs(sum); n++, term *= (2 * x * x) / (2 * n + 1)) {
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}
