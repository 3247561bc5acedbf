// @ts-check
// Which names in a line of code are which arrays, so that they can be tinted like the grids.

/**
 * A role: the output, or the number of an input.
 * @typedef {"output" | 0 | 1 | 2} Role
 */

/**
 * For the lines of one key: the names of inputs in the forward line (the name on its left is the output),
 * the names of gradients in the backward lines, for each input, the number of its backward line, and the
 * gradients whose names are not "d" and the name of their array.
 * @typedef {{forward: Record<string, Role>, backward: Record<string, Role>, lines?: number[],
 *   gradients?: Partial<Record<Role, string>>}} Names
 */

/** @type {Record<string, Names>} */
const NAMES = {
  embed: { forward: { table: 0, y: "output" }, backward: { dtable: 0, dy: "output" } },
  add_positions: { forward: { x: 0, p: 1 }, backward: { dx: "output" }, lines: [1, 0] },
  linear: {
    forward: { rows: 0, weight: 1, y: "output" },
    lines: [1, 0],
    backward: { dx: 0, dweight: 1, drows: "output", rows: 0, weight: 1 },
    gradients: { 0: "dx", output: "drows" },
  },
  add_bias: {
    forward: { y: 0, bias: 1 },
    backward: { dbias: 1, drows: "output" },
    lines: [0, 0],
    gradients: { output: "drows" },
  },
  split_heads: { forward: { x: 0 }, backward: { merged: 0, dparts: "output", dpart: "output" } },
  scores: {
    forward: { q: 0, k: 1, scores: "output" },
    lines: [1, 2],
    backward: { dq: 0, dk: 1, q: 0, k: 1, dscores: "output" },
  },
  rotate: {
    forward: { a: 0, b: 0, cos: 1, sin: 1, y: "output" },
    backward: { dx: 0, dy: "output", cos: 1, sin: 1 },
  },
  repeat_heads: { forward: { x: 0 }, backward: { dy: "output" } },
  relative_products: {
    forward: { q: 0, key_positions: 1, products: "output" },
    lines: [0, 0],
    backward: { dq_positions: 0, dkey_positions: 1, dproducts: "output" },
  },
  spread_by_distance: { forward: { x: 0 }, backward: { dproducts: 0 } },
  relative_scores: { forward: { scores: 0, products: 1 }, backward: { dscores: "output" }, lines: [0, 0] },
  scale_scores: { forward: { scores: 0 }, backward: { dscores: "output" } },
  collect_by_distance: {
    forward: { dropped: 0, share: "output" },
    backward: { ddropped: 0, dshare: "output" },
  },
  relative_values: {
    forward: { share: 0, value_positions: 1, y_positions: "output" },
    lines: [0, 0],
    backward: { dshare: 0, dvalue_positions: 1, dy_positions: "output" },
  },
  relative_sum: { forward: { y: 0, y_positions: 1 }, backward: { dy: "output" }, lines: [0, 0] },
  mask: { forward: { scores: 0, mask: 1 }, backward: { dscores: "output" } },
  mask_queries: { forward: { weights: 0 }, backward: { dweights: "output" } },
  softmax: { forward: { x: 0, y: "output" }, backward: { dy: "output", y: "output" } },
  weighted_sum: {
    forward: { dropped: 0, v: 1, y: "output" },
    lines: [0, 1],
    backward: { ddropped: 0, dropped: 0, dv: 1, v: 1, dy: "output" },
  },
  head_switch: { forward: { blocks: "output" }, backward: {} },
  merge_heads: { forward: { x: 0 }, backward: { dy: "output" } },
  residual: { forward: { x: 0, h: 1 }, backward: { dx: 0, dy: "output", dh: 1 }, lines: [0, 0] },
  layer_norm_statistics: {
    forward: { x: 0, centered: 0, rstd: "output" },
    backward: { dx: 0 },
    lines: [1, 1],
  },
  layer_norm_normalize: {
    forward: { centered: 0, rstd: 2, xhat: "output" },
    lines: [1, 1, 1],
    backward: { dx: 0, dxhat: "output", xhat: "output", rstd: 2 },
  },
  layer_norm_scale: {
    forward: { gain: 1, xhat: 0, bias: 2 },
    lines: [2, 1, 0],
    backward: { dxhat: 0, xhat: 0, dgain: 1, gain: 1, dbias: 2, dy: "output" },
  },
  layer_norm_gain: {
    forward: { gain: 1, xhat: 0 },
    lines: [1, 0],
    backward: { dxhat: 0, xhat: 0, dgain: 1, gain: 1, dy: "output" },
  },
  rms_norm: {
    forward: { x: 0, rrms: 1, mean_square: 0, xhat: "output" },
    lines: [1, 1],
    backward: { dx: 0, dxhat: "output", xhat: "output", rrms: 1 },
  },
  rms_norm_scale: {
    forward: { gain: 1, xhat: 0 },
    lines: [1, 0],
    backward: { dxhat: 0, xhat: 0, dgain: 1, gain: 1, dy: "output" },
  },
  relu: { forward: { x: 0, y: "output" }, backward: { dy: "output", y: "output" } },
  gated: {
    forward: { value: 0, activated: 1 },
    lines: [0, 0],
    backward: { dvalue: 0, value: 0, dactivated: 1, activated: 1, dy: "output" },
  },
  dropout: { forward: { x: 0, dropout_mask: 1 }, backward: { dy: "output" } },
  logits: {
    forward: { x: 0, weight: 1, bias: 2 },
    backward: { dx: 0, dweight: 1, dy: "output" },
    lines: [0, 0, 0],
  },
  transpose: { forward: { weight: 0 }, backward: { dweight: "output" } },
  log_softmax: { forward: { shifted: 0, y: "output" }, backward: { dy: "output", y: "output" } },
  losses: { forward: { log_probs: 0, losses: "output", at_target: 0 }, backward: { drows: 0, log_probs: 0 } },
  cross_entropy: { forward: { losses: 0 }, backward: { drows: 0, dloss: "output" } },
};

const OTHER_NAMES = { forward: { x: 0, y: "output" }, backward: { dx: 0, dy: "output", x: 0, y: "output" } };

/** The tint of each role: a name of a class and of a colour of the style sheet. */
export const TINTS = { output: "output", 0: "input-0", 1: "input-1", 2: "input-2" };

/**
 * Return the number of the gradient line of an input.
 * @param {string} key
 * @param {number} which
 * @param {number} count   the number of gradient lines
 */
export function gradientLine(key, which, count) {
  return Math.min(NAMES[key]?.lines?.[which] ?? 0, Math.max(0, count - 1));
}

/**
 * Cut a line of code into pieces, each with the role of its name.
 * @param {string} line
 * @param {string} key
 * @param {"forward" | "backward"} direction
 * @returns {{text: string, role: Role | null}[]}
 */
export function tintedPieces(line, key, direction) {
  const names = /** @type {Record<string, Role>} */ ((NAMES[key] ?? OTHER_NAMES)[direction]);
  const code = line.replace(/\s+#.*$/, ""),
    equals = code.indexOf(" = ");
  const pieces = [...code.matchAll(/[A-Za-z_]\w*|[^A-Za-z_]+/g)].map(({ 0: text, index }) => {
    const isAttribute = code[index - 1] === "." || code[index + text.length] === "(";
    const isLeft = direction === "forward" && equals > 0 && index < equals && index === 0;
    /** @type {Role | null} */
    const role = isLeft ? "output" : isAttribute ? null : (names[text] ?? null);
    return { text, role };
  });
  if (code.length < line.length) pieces.push({ text: line.slice(code.length), role: null });
  return pieces;
}

/**
 * Return the short name of the gradient of an array in a step: that of the code.
 * @param {string} key
 * @param {Role} role
 * @param {string} path
 */
export function gradientName(key, role, path) {
  return NAMES[key]?.gradients?.[role] ?? `d${codeName(key, role, path)}`;
}

/**
 * Return the short name of an array in a step: that of the code.
 * @param {string} key
 * @param {Role} role
 * @param {string} path
 */
export function codeName(key, role, path) {
  const names = (NAMES[key] ?? OTHER_NAMES).forward;
  if (role === "output" && key in NAMES && names.y === "output") return "y";
  const own = Object.keys(names).find((name) => names[name] === role);
  if (own && role !== "output") return ["centered", "shifted"].includes(own) ? "x" : own;
  const last = path.split(".").pop() ?? path;
  return (
    {
      product: "y",
      softmax: "weights",
      sum: "y",
      masked: "scores",
      log_probs: "log_probs",
      activated: "h",
      merged: "y",
      table: "p",
      switched: "z",
      weight: "weight",
      dropout_mask: "mask",
    }[last] ?? last
  );
}
