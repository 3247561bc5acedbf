// @ts-check
// Who may attend to whom: the masks of the encoder, of the decoder and of cross-attention, for one pair of
// sentences.

/**
 * @typedef {object} Mask
 * @property {(t: number, s: number) => boolean} allowed   true if query t may attend to key s
 * @property {Uint8Array | null} queries  1 at queries that are tokens, 0 at padding, or null
 */

/** @typedef {Record<string, any>} Config  the settings of the package's TransformerConfig */

/**
 * Allow all queries to attend to the source's tokens that are not padding: in the encoder, and in
 * cross-attention.
 * @param {Config} config
 * @param {number[]} source
 * @param {number[] | null} targetIn   the ids of the queries in cross-attention, or null in the encoder
 * @returns {Mask}
 */
export function sourceMask(config, source, targetIn = null) {
  const isSourceToken = (/** @type {number} */ s) => source[s] !== config.pad_id;
  const queries = targetIn
    ? queryMask(config, targetIn, isTargetToken(config, targetIn))
    : queryMask(config, source, isSourceToken);
  return { allowed: (_, s) => isSourceToken(s), queries };
}

/**
 * Allow each position of the target to attend to itself and to the tokens before it.
 * @type {(config: Config, targetIn: number[]) => Mask}
 */
export function causalMask(config, targetIn) {
  const isToken = isTargetToken(config, targetIn);
  return { allowed: (t, s) => s <= t && isToken(s), queries: queryMask(config, targetIn, isToken) };
}

/**
 * Allow each token of a text without padding to attend to itself and to the tokens before it, or to the last
 * ones of them.
 * @param {number | null} window   the number of tokens to which a token attends, or null for all
 * @returns {Mask}
 */
export function textMask(window) {
  return { allowed: (t, s) => s <= t && (window === null || t - s < window), queries: null };
}

/**
 * Return a function that is false at padding. The start symbol is never padding, even where their ids are
 * equal.
 * @type {(config: Config, targetIn: number[]) => (position: number) => boolean}
 */
function isTargetToken({ pad_id: padId, start_id: startId }, targetIn) {
  return (s) => targetIn[s] !== padId || (s === 0 && startId === padId);
}

/**
 * @param {Config} config
 * @param {number[]} ids
 * @param {(position: number) => boolean} isToken
 */
function queryMask(config, ids, isToken) {
  return config.query_masking === "none" ? null : Uint8Array.from(ids, (_, t) => (isToken(t) ? 1 : 0));
}

/**
 * Return the cells (T, S) of a mask, 1 where the query may attend to the key, as the reader changed them.
 * @param {Mask} mask
 * @param {number} queries
 * @param {number} keys
 * @param {[number, number, boolean | number][]} changes
 */
export function maskCells(mask, queries, keys, changes) {
  const cells = new Uint8Array(queries * keys);
  for (let t = 0; t < queries; t++) {
    for (let s = 0; s < keys; s++) cells[t * keys + s] = mask.allowed(t, s) ? 1 : 0;
  }
  for (const [t, s, allowed] of changes) {
    if (t < queries && s < keys) cells[t * keys + s] = allowed ? 1 : 0;
  }
  return cells;
}
