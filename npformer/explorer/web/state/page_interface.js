// @ts-check
// window.npformer: what tests and curious readers can use in the browser's console.

import { patching } from "./comparison.js";
import { layerLogits } from "../engine/lenses.js";
import { everyPrediction } from "./predictions.js";

/**
 * @param {Explorer} explorer
 * @param {import("./writer.js").Writer} writer   of the text that the reader writes
 * @param {any} overview
 */
export function pageInterface(explorer, writer, overview) {
  const { session } = explorer;
  const stepOf = (/** @type {string} */ path) => session.tape.names.get(path);
  return {
    paths: () => [...session.tape.names.keys()],
    values: (/** @type {string} */ path) => stepOf(path)?.data,
    gradients: (/** @type {string} */ path) => stepOf(path)?.grad,
    shape: (/** @type {string} */ path) => stepOf(path)?.shape,
    loss: () => session.loss,
    /** @type {(source: string, target?: string | null) => number} */
    set_sentence(source, target = null) {
      session.setSentence(source, target);
      explorer.renew();
      return session.loss;
    },
    /** @type {(learningRate: number, options?: {optimizer?: "gradient descent" | "adam"}) => number} */
    step(learningRate, { optimizer = "gradient descent" } = {}) {
      session.optimize(learningRate, optimizer);
      explorer.renew();
      return session.loss;
    },
    /** @type {(edits: any) => number} */
    edit(edits) {
      session.edits = edits;
      explorer.recompute();
      return session.loss;
    },
    /** The logits after each layer, and the parts that add up to a logit. */
    layer_logits: () => (session.model ? layerLogits(session.model, session.edits, session.tape) : []),
    /** @type {(position: number, token: number) => [string, string, number][]} */
    attribution: (position, token) =>
      everyPrediction(session)
        .parts(position, token)
        .map(({ name, step, value }) => [name, step.path, value]),
    /** The most probable token after each layer, at each position. */
    predictions: () => {
      const { words, guesses } = everyPrediction(session);
      return guesses.map((list) => list.map(({ best, p }) => [words[best], p]));
    },
    /**
     * The effects of the activations of another text on the score that compares the two.
     * @type {(text: string, what: import("../engine/patching.js").Activation) => any}
     */
    patch(text, what) {
      const found = patching(session, text, what);
      return { ...found, sites: found?.sites.map(({ step, patches }) => ({ path: step.path, patches })) };
    },
    explorer,
    writer,
    overview,
  };
}
