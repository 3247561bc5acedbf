// @ts-check
// The overview of the model: which blocks it has, and where each of them stands.
import { tokensOf, sideOf } from "../state/axes.js";
import { isComputed } from "../state/timeline.js";
import { blockKind, blockOf } from "../state/sentences.js";

/**
 * A block of the overview: its output, a row for each token, and in attention the weights. Its place is that
 * of a box, in which a column stands for each token.
 * @typedef {{block: string, output: Step, weights: Step | undefined, tokens: string[],
 *   column: number, x: number, y: number, width: number, height: number, left: number}} FlowBlock
 *   left: where the columns of the tokens begin; before it stands the name of the block
 */

const FLOW_GAP = 10,
  NAME_WIDTH = 112, // the width of the names of the blocks, where there is room
  FLOW_LABELS = 62, // the height of the tokens below the model
  FLOW_TOP = 92, // the height of the probabilities above it
  SLANT = 24; // the room at the right for the last slanting token; where it is narrow, at the left, too

/**
 * Return the blocks that compute something of their own, in the order of the forward pass: norms and sums
 * belong to the sublayers around which they stand.
 * @param {Explorer} explorer
 * @returns {Omit<FlowBlock, "x" | "y" | "width" | "height" | "left">[]}
 */
export function flowBlocks({ session, tape }) {
  /** @type {Map<string, Step>} */
  const outputs = new Map();
  for (const step of tape.steps) {
    if (isComputed(step) && step.shape.length >= 2) outputs.set(blockOf(step.path), step);
  }
  const blocks = [...outputs].filter(([block]) => !["add", "norm"].includes(blockKind(block)));
  const hasBoth = ["encoder", "decoder"].every((stack) => blocks.some(([block]) => block.startsWith(stack)));
  return blocks.map(([block, last]) => {
    const output = block === "loss" ? (tape.names.get("loss.log_probs") ?? last) : last,
      tokens = tokensOf(session, sideOf(block)),
      length = output.shape[output.shape.length - 2];
    return {
      block,
      output,
      weights: tape.names.get(`${block}.attention.weights`),
      tokens: tokens.length === length ? tokens : Array.from({ length }, () => ""),
      column: hasBoth && !/^(source|encoder)/.test(block) ? 1 : 0,
    };
  });
}

/**
 * Place the blocks from the bottom to the top, the encoder left of the decoder.
 * @param {ReturnType<typeof flowBlocks>} blocks
 * @param {number} width
 * @param {number} room   the height that is free on the screen
 * @returns {{blocks: FlowBlock[], width: number, height: number, base: number}}
 */
export function placeFlow(blocks, width, room) {
  const columns = Math.max(...blocks.map(({ column }) => column)) + 1,
    between = width < 640 ? 14 : 40;
  const wide = Math.min(width - SLANT, columns === 1 ? 900 : 1500),
    start = width < 640 ? SLANT : 0,
    each = (wide - start - between * (columns - 1)) / columns;
  const weightOf = (/** @type {{weights: any}} */ { weights }) => (weights ? 2 : 1);
  const stacks = Array.from({ length: columns }, (_, column) =>
    blocks.filter((one) => one.column === column && one.block !== "loss"),
  );
  const most = Math.max(...stacks.map((stack) => stack.reduce((sum, one) => sum + weightOf(one), 0))),
    gaps = FLOW_GAP * Math.max(...stacks.map(({ length }) => length)),
    unit = Math.max(each < 400 ? 34 : 18, Math.min(44, (room - FLOW_LABELS - FLOW_TOP - gaps) / most)),
    base = FLOW_TOP + most * unit + gaps;
  const tops = new Array(columns).fill(base);
  const placed = blocks.map((one) => {
    const isLoss = one.block === "loss",
      height = isLoss ? FLOW_TOP - 24 : unit * weightOf(one);
    tops[one.column] -= height + (isLoss ? 0 : FLOW_GAP);
    const x = start + one.column * (each + between);
    return { ...one, x, y: tops[one.column], width: each, height, left: x + (each < 400 ? 0 : NAME_WIDTH) };
  });
  return { blocks: placed, width: wide + SLANT, height: base + FLOW_LABELS, base };
}

/**
 * Return the middle of the column of a token in a box.
 * @type {(box: FlowBlock, i: number, count: number) => number}
 */
export function columnAt(box, i, count) {
  return box.left + 6 + (i + 0.5) * columnWidth(box, count);
}

/** @type {(box: FlowBlock, count: number) => number} */
export function columnWidth({ x, width, left }, count) {
  return (x + width - left - 12) / count;
}
