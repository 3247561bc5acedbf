// @ts-check
// What a reader points at in a step: a name in the line of code, which stands for an array, or a cell. It is
// outlined in the picture wherever it stands, and its block in the map of the model.
import { maskOf } from "../arithmetic/terms_entries.js";
import { frameCells } from "../drawing/draw_grids.js";
import { shapeText } from "../drawing/number_texts.js";
import { say } from "../drawing/page_elements.js";
import { cellOf, gridSize } from "../drawing/slices.js";
import { blockOf, blockTitle } from "../state/sentences.js";
import { t } from "../words/text.js";

/**
 * An array by its role in the step, or a cell of it.
 * @typedef {{step: Step, role?: Role, isGradient?: boolean, index?: number}} Pointed
 */

/**
 * Return the properties by which a name in the line of code answers to a pointer, a finger and the keyboard.
 * @param {Explorer} explorer
 * @param {Role} role
 * @param {boolean} isGradient
 * @param {(pointed: Pointed | null) => void} outline
 */
export function answering(explorer, role, isGradient, outline) {
  const { step } = explorer.moment,
    masked = step.op.startsWith("mask") ? maskOf(step) : null,
    array = role === "output" ? step : (step.inputs[role] ?? masked);
  if (!array) return {};
  const block = blockTitle(blockOf(array.path), explorer.tape),
    path = isGradient ? t("gradient of ") + array.path : array.path,
    title = t("{path}, shape {shape}: {block}", { path, shape: shapeText(array.shape), block });
  const point = () => outline({ step: array, role, isGradient }),
    leave = () => outline(null);
  const focus = () => {
    point();
    say(title);
  };
  return { title, tabIndex: 0, onpointerenter: point, onpointerleave: leave, onfocus: focus, onblur: leave };
}

/** @type {(surface: Surface, placed: Placed[], pointed: Pointed) => void} */
export function drawPointed(surface, placed, { step, role, isGradient, index }) {
  for (const one of placed) {
    const { slice } = one;
    if (index !== undefined) {
      const [i, j] = (slice.step === step && cellOf(slice, index)) || [];
      if (i !== undefined && j !== undefined) frameCells(surface, one, [i, i, j, j], 2.5);
    } else if (slice.role === role && slice.isGradient === isGradient) {
      const [rows, columns] = gridSize(slice);
      frameCells(surface, one, [0, rows - 1, 0, columns - 1], 2.5);
    }
  }
}
