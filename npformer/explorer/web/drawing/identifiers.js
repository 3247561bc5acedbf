// @ts-check
// Which names in a line of code are which arrays, so that they can be tinted like the grids.

/**
 * A role: the output, or the number of an input.
 * @typedef {"output" | 0 | 1 | 2} Role
 */

/**
 * For the lines of one key: the roles of the names in the forward line (the name on its left is the output),
 * for each input the number of its backward line, the gradients whose names are not "d" and the name of their
 * array, and the names that the backward lines use for something else.
 * @typedef {{names: Record<string, Role>, lines?: number[], gradients?: Record<string, Role>,
 *   others?: string[]}} Names
 */

/** @type {Record<string, Names>} */
const NAMES = {
  embed: { names: { table: 0, y: "output" } },
  add_positions: { names: { x: 0, p: 1 }, gradients: { dx: "output" }, lines: [1, 0] },
  linear: {
    names: { rows: 0, weight: 1, y: "output" },
    gradients: { dx: 0, drows: "output" },
    lines: [1, 0],
  },
  add_bias: { names: { y: 0, bias: 1 }, gradients: { drows: "output" }, lines: [0, 0] },
  split_heads: { names: { x: 0 }, gradients: { merged: 0, dparts: "output", dpart: "output" } },
  scores: { names: { q: 0, k: 1, scores: "output" }, lines: [1, 2] },
  rotate: { names: { a: 0, b: 0, cos: 1, sin: 1, y: "output" }, gradients: { dx: 0 } },
  repeat_heads: { names: { x: 0 } },
  relative_products: {
    names: { q: 0, key_positions: 1, products: "output" },
    gradients: { dq_positions: 0 },
    others: ["dq"],
    lines: [0, 0],
  },
  spread_by_distance: { names: { x: 0 }, gradients: { dproducts: 0 } },
  relative_scores: { names: { scores: 0, products: 1 }, gradients: { dscores: "output" }, lines: [0, 0] },
  scale_scores: { names: { scores: 0 }, gradients: { dscores: "output" } },
  collect_by_distance: { names: { dropped: 0, share: "output" } },
  relative_values: { names: { share: 0, value_positions: 1, y_positions: "output" }, lines: [0, 0] },
  relative_sum: { names: { y: 0, y_positions: 1 }, gradients: { dy: "output" }, lines: [0, 0] },
  mask: { names: { scores: 0, mask: 1 }, gradients: { dscores: "output" } },
  mask_queries: { names: { weights: 0 }, gradients: { dweights: "output" } },
  softmax: { names: { x: 0, y: "output" } },
  weighted_sum: { names: { dropped: 0, v: 1, y: "output" }, lines: [0, 1] },
  head_switch: { names: { blocks: "output" } },
  merge_heads: { names: { x: 0 } },
  residual: { names: { x: 0, h: 1 }, lines: [0, 0] },
  layer_norm_statistics: {
    names: { x: 0, centered: 0, rstd: "output" },
    others: ["rstd"],
    lines: [1, 1],
  },
  layer_norm_normalize: {
    names: { centered: 0, rstd: 2, xhat: "output" },
    gradients: { dx: 0 },
    lines: [1, 1, 1],
  },
  layer_norm_scale: { names: { gain: 1, xhat: 0, bias: 2 }, lines: [2, 1, 0] },
  layer_norm_gain: { names: { gain: 1, xhat: 0 }, lines: [1, 0] },
  rms_norm: { names: { x: 0, rrms: 1, mean_square: 0, xhat: "output" }, lines: [1, 1] },
  rms_norm_scale: { names: { gain: 1, xhat: 0 }, lines: [1, 0] },
  relu: { names: { x: 0, y: "output" } },
  gated: { names: { value: 0, activated: 1 }, lines: [0, 0] },
  dropout: { names: { x: 0, dropout_mask: 1 } },
  logits: { names: { x: 0, weight: 1, bias: 2 }, lines: [0, 0, 0] },
  transpose: { names: { weight: 0 }, gradients: { dweight: "output" } },
  log_softmax: { names: { shifted: 0, y: "output" } },
  losses: { names: { log_probs: 0, losses: "output", at_target: 0 }, gradients: { drows: 0 } },
  cross_entropy: { names: { losses: 0 }, gradients: { drows: 0, dloss: "output" } },
};

/** @type {Names} */
const OTHER_NAMES = { names: { x: 0, y: "output" } };

/** The roles of the names in the backward lines of a key. @type {(key: string) => Record<string, Role>} */
function backwardNames(key) {
  const { names, gradients = {}, others = [] } = NAMES[key] ?? OTHER_NAMES;
  const derived = Object.entries({ y: "output", ...names }).flatMap(([name, role]) => [
    [name, role],
    [`d${name}`, role],
  ]);
  const roles = { ...Object.fromEntries(derived), ...gradients };
  for (const name of others) delete roles[name];
  return roles;
}

/** Gradients on the page whose names are not "d" and the name of their array. */
/** @type {Record<string, Partial<Record<Role, string>>>} */
const GRADIENT_NAMES = { linear: { 0: "dx", output: "drows" }, add_bias: { output: "drows" } };

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
 * Cut a line of code into pieces, each with the role of its name, and whether that is the name of a gradient.
 * @param {string} line
 * @param {string} key
 * @param {"forward" | "backward"} direction
 * @returns {{text: string, role: Role | null, isGradient: boolean}[]}
 */
export function tintedPieces(line, key, direction) {
  const { names: values } = NAMES[key] ?? OTHER_NAMES,
    names = direction === "forward" ? values : backwardNames(key);
  const code = line.replace(/\s+#.*$/, ""),
    equals = code.indexOf(" = ");
  const pieces = [...code.matchAll(/[A-Za-z_]\w*|[^A-Za-z_]+/g)].map(({ 0: text, index }) => {
    const isAttribute = code[index - 1] === "." || code[index + text.length] === "(";
    const isLeft = direction === "forward" && equals > 0 && index < equals && index === 0;
    /** @type {Role | null} */
    const role = isLeft ? "output" : isAttribute ? null : (names[text] ?? null);
    return { text, role, isGradient: direction === "backward" && text !== "y" && !(text in values) };
  });
  const comment = { text: line.slice(code.length), role: null, isGradient: false };
  return comment.text ? [...pieces, comment] : pieces;
}

/**
 * Return the short name of the gradient of an array in a step: that of the code.
 * @type {(key: string, role: Role, path: string) => string}
 */
export function gradientName(key, role, path) {
  return GRADIENT_NAMES[key]?.[role] ?? `d${codeName(key, role, path)}`;
}

/**
 * Return the short name of an array in a step: that of the code.
 * @type {(key: string, role: Role, path: string) => string}
 */
export function codeName(key, role, path) {
  const { names } = NAMES[key] ?? OTHER_NAMES;
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
