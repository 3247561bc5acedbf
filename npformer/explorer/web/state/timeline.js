// @ts-check
// The steps in the order in which the reader goes through them.

/**
 * A moment: forward, the array that is computed; backward, the array whose gradient is computed, as an input
 * of a step.
 * @typedef {{step: Step, which: number}} Moment
 */

/**
 * Forward, each array in its order. Backward, from the loss to the embeddings: for each array, first the
 * gradients that it sends to its inputs.
 * @param {Tape} tape
 * @param {"forward" | "backward"} direction
 * @returns {Moment[]}
 */
export function timelineOf(tape, direction) {
  const computed = tape.steps.filter(isComputed);
  if (direction === "forward") return computed.map((step) => ({ step, which: 0 }));
  return computed.reverse().flatMap((step) =>
    step.inputs
      .map((input, which) => ({ step, which, input }))
      .filter(
        ({ input, step: { grad } }) => input.op !== "constant" && input.grad.length > 0 && grad.length > 0,
      )
      .map(({ step: of, which }) => ({ step: of, which })),
  );
}

/** @param {Step} step */
export function isComputed({ op }) {
  return !["parameter", "constant", "input"].includes(op);
}

/**
 * Return the array that a moment is about: the computed one, or the one that receives a gradient.
 * @param {Moment} moment
 * @param {"forward" | "backward"} direction
 */
export function resultOf({ step, which }, direction) {
  return direction === "forward" ? step : step.inputs[which];
}

/**
 * Return all steps from which a step is computed, itself included; or all that are computed from it.
 * @param {Tape} tape
 * @param {Step} step
 * @param {"forward" | "backward"} direction
 */
export function pathOf(tape, step, direction) {
  const found = new Set([step]);
  if (direction === "forward") {
    for (const each of tape.steps.slice().reverse()) {
      if (found.has(each)) each.inputs.forEach((input) => found.add(input));
    }
  } else {
    for (const each of tape.steps) if (each.inputs.some((input) => found.has(input))) found.add(each);
  }
  return found;
}
