// @ts-check
// Activation patching, as in npformer/lenses: one activation after the other is taken from a pass on another
// text into the pass on the text, and the change of a score is measured (Meng et al. 2022). Beside it stands
// its estimate of first order, which the gradient of the score gives at once (attribution patching).
import { outputsOfLayers } from "./lenses.js";
import { argmax, rowOf } from "./tape.js";

/**
 * The score is the logit of a token at a position minus that of another one, if there is one.
 * @typedef {{position: number, token: number, versus: number | null}} Score
 */

/**
 * What is patched: the vector of a token after a layer, the output of an attention or of a feed-forward
 * network at a token, or the output of a head at all tokens, before Wo.
 * @typedef {"layers" | "attention" | "feed-forward" | "heads"} Activation
 */

/**
 * A patch: the entries that are taken over, and how much the score changes.
 * @typedef {{entries: [number, number][], exact: number, firstOrder: number}} Patch
 */

/**
 * Compute the patches of all activations of a kind: of each array, one for each token or each head.
 * @param {Model} model
 * @param {Edits} edits   of both passes
 * @param {[Ids, Ids]} ids   of the text and of the other one, which has as many tokens
 * @param {Score} score
 * @param {Activation} what
 * @returns {{score: number, otherScore: number, sites: {step: Step, patches: Patch[]}[]}}
 */
export function patchingOf(model, edits, [ids, otherIds], score, what) {
  const own = scoredPass(model, edits, ids, score, true),
    other = scoredPass(model, edits, otherIds, score, false),
    now = own.value;
  own.tape.backward();
  const sites = activationsOf(own.tape, what).map((step) => {
    const { path, data, grad, shape } = step,
      taken = /** @type {Step} */ (other.tape.names.get(path)).data,
      count = what === "heads" ? step.inputs[0].shape[0] : shape[0];
    const placeOf = (/** @type {number} */ i) =>
      what === "heads" ? Math.floor(((i % shape[1]) * count) / shape[1]) : Math.floor(i / shape[1]);
    const patches = Array.from({ length: count }, (_, place) => {
      const indices = [...data.keys()].filter((i) => placeOf(i) === place),
        entries = indices.map((i) => /** @type {[number, number]} */ ([i, taken[i]])),
        values = { ...edits.values, [path]: [...(edits.values?.[path] ?? []), ...entries] };
      const patched = scoredPass(model, { ...edits, values }, ids, score, false).value;
      // (other activation - activation) · dscore / dactivation
      const firstOrder = indices.reduce((sum, i) => sum + (taken[i] - data[i]) * grad[i], 0);
      return { entries, exact: patched - now, firstOrder };
    });
    return { step, patches };
  });
  return { score: now, otherScore: other.value, sites };
}

/**
 * Compute a score on a tape of its own, of which it is the last step.
 * @param {Model} model
 * @param {Edits} edits
 * @param {Ids} ids
 * @param {Score} score
 * @param {boolean} hasGradients
 */
function scoredPass(model, edits, ids, { position, token, versus }, hasGradients) {
  const pass = model.passApart(edits, hasGradients),
    logits = pass.logits(ids),
    row = position * logits.shape[1];
  const value = logits.data[row + token] - (versus === null ? 0 : logits.data[row + versus]);
  const step = pass.tape.record("score", "score", [], Float64Array.of(value), [logits]);
  step.back = () => {
    // dlogits = dscore at the token, and -dscore at the other one
    logits.grad[row + token] += step.grad[0];
    if (versus !== null) logits.grad[row + versus] -= step.grad[0];
  };
  return { tape: pass.tape, value };
}

/**
 * Return the arrays of the activations of a kind, layer by layer.
 * @param {Tape} tape
 * @param {Activation} what
 */
function activationsOf(tape, what) {
  if (what === "layers") return [...outputsOfLayers(tape, ["encoder", "decoder", "layers"]).values()];
  if (what === "feed-forward") return tape.steps.filter(({ path }) => path.endsWith(".feed_forward.outer.y"));
  const merged = tape.steps.filter(({ line }) => line === "merge_heads");
  if (what === "heads") return merged;
  return merged.map((step) => tape.names.get(step.path.replace(/merged$/, "output.y")) ?? step);
}

/**
 * Return the position at which the predictions for two texts are compared, with the token that is predicted
 * there for each: for two sources, where the predictions first differ; for two texts, after the last token.
 * @param {Model} model
 * @param {Edits} edits
 * @param {[Ids, Ids]} ids
 * @returns {Score}
 */
export function comparedScore(model, edits, ids) {
  const [own, other] = ids.map((each) => {
    const logits = model.passApart(edits).logits(each);
    return Array.from({ length: logits.shape[0] }, (_, t) => argmax(rowOf(logits, t)));
  });
  const differs = own.findIndex((token, t) => token !== other[t]),
    position = ids[0].source.length ? Math.max(0, differs) : own.length - 1,
    [token, versus] = [own[position], other[position]];
  return { position, token, versus: token === versus ? null : versus };
}
