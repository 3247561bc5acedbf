// @ts-check
// The gradient of an array, divided among the positions whose losses it comes from.

/**
 * Return the gradient of an array for the loss of each position alone, divided by the number of tokens as in
 * the mean. They add up to the gradient of the loss. The last run of the model stays as it is.
 * @param {import("./pass.js").Model} model
 * @param {import("./pass.js").Ids} ids
 * @param {import("./pass.js").Edits} edits
 * @param {string} path
 * @returns {Float64Array[]}
 */
export function gradientsByPosition(model, ids, edits, path) {
  const pass = model.passApart(edits, true),
    { tape } = pass,
    loss = pass.loss(ids);
  const step = tape.names.get(path),
    [losses] = loss.inputs,
    { real, tokens } = loss.note;
  return Array.from(losses.data, (_, t) => {
    for (const { grad } of tape.steps) grad.fill(0);
    // dlosses = dloss / tokens at this position, and 0 at all others
    loss.back = () => {
      losses.grad[t] = real[t] ? loss.grad[0] / tokens : 0;
    };
    tape.backward();
    return step ? step.grad.slice() : new Float64Array(0);
  });
}
