// @ts-check
// A second text for a comparison: the text with its last word exchanged for one of the same kind, so that the
// model predicts something else.
import { likeliest } from "./attention.js";
import { rowOf } from "./tape.js";

const TRIED = 24; // the number of words that are tried, those with the most similar vectors
const SURE = 0.8; // how sure the model must be of its predictions, relative to the surest text

/**
 * Return the id by which a token of a text is best replaced. Of the words with similar vectors, those belong
 * to the same kind with which the model stays sure of all its predictions; of these, the one whose
 * predictions differ first tells most.
 * @param {import("./pass.js").Model} model
 * @param {import("./tape.js").Tape} tape   of the text
 * @param {Ids} ids
 * @param {number} place   of the token
 * @param {(id: number) => Ids | null} exchanged   the text with another token there, or null if it cannot be
 */
export function bestExchange(model, tape, ids, place, exchanged) {
  const embedded = tape.names.get("source.tokens.y") ?? tape.names.get("embedding.tokens.y"),
    [table] = /** @type {import("./tape.js").Step} */ (embedded).inputs;
  const old = (ids.source.length ? ids.source : ids.targetIn)[place],
    similar = similarRows(table, old).filter(exchanged).slice(0, TRIED),
    own = predictionsOf(model, ids).best;
  const tried = similar.map((id) => {
    const { best, least } = predictionsOf(model, /** @type {Ids} */ (exchanged(id))),
      differs = best.findIndex((token, t) => token !== own[t]);
    return { id, least, first: differs < 0 ? Infinity : differs };
  });
  const changing = tried.filter(({ first }) => first < Infinity),
    surest = Math.max(...changing.map(({ least }) => least));
  const [chosen] = changing
    .filter(({ least }) => least >= SURE * surest)
    .sort((a, b) => a.first - b.first || b.least - a.least);
  return (chosen ?? tried[0])?.id ?? old;
}

/**
 * Return the other rows of a table, those with the most similar directions first.
 * @type {(table: import("./tape.js").Step, id: number) => number[]}
 */
function similarRows(table, id) {
  const own = rowOf(table, id);
  const cosines = Array.from({ length: table.shape[0] }, (_, other) => {
    const row = rowOf(table, other),
      product = row.reduce((sum, x, i) => sum + x * own[i], 0);
    return product / (Math.hypot(...row) || 1);
  });
  return [...cosines.keys()].filter((other) => other !== id).sort((a, b) => cosines[b] - cosines[a]);
}

/**
 * Return the most probable token at each position, and the smallest of their probabilities.
 * @param {import("./pass.js").Model} model
 * @param {Ids} ids
 */
function predictionsOf(model, ids) {
  const logits = model.passApart({}).logits(ids),
    rows = Array.from({ length: logits.shape[0] }, (_, t) => likeliest(rowOf(logits, t)));
  return { best: rows.map(({ best }) => best), least: Math.min(...rows.map(({ p }) => p)) };
}
