// @ts-check
// Draws the overview: columns of colour for the vectors of the tokens, ribbons for attention, bars for
// probabilities; each block as far as it is computed.
import { CHOSEN, HEAD_COLORS, levelOf, paletteOf } from "../drawing/colors.js";
import { clip } from "../drawing/draw_grids.js";
import { axesOf } from "../state/axes.js";
import { visibleText } from "../drawing/number_texts.js";
import { blockName } from "../state/sentences.js";
import { argmax, rowOf } from "../engine/tape.js";
import { splitName } from "./model_map.js";
import { columnAt, columnWidth } from "./flow_layout.js";

const ROOF = 14; // the height of a block's name where it stands above its columns
const ROWS = 8; // of a thumbnail: each shows the largest number of some dimensions
const LEAST = 0.05; // the smallest weight that has a ribbon

/**
 * What the picture shows: how much of the block is computed, from 0 to 1, the chosen token, the direction.
 * @typedef {{part: number, token: number | null, key: number | null, isBackward: boolean,
 *   isChosen: boolean}} FlowState   token: -1 where that of the other side is chosen; it may be a key here
 */

/** @type {WeakMap<Float64Array, Float64Array>} thumbnails, by their arrays */
const thumbnails = new WeakMap();

/**
 * Return the largest number of each group of dimensions, for each token, relative to the largest of all:
 * (T, ROWS).
 * @param {Float64Array} data
 * @param {number} count   the number of tokens
 */
function thumbnailOf(data, count) {
  const known = thumbnails.get(data);
  if (known) return known;
  const width = data.length / count,
    most = data.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0) || 1;
  const small = new Float64Array(count * ROWS);
  for (let i = 0; i < data.length; i++) {
    const place = Math.floor(i / width) * ROWS + Math.floor(((i % width) * ROWS) / width);
    const x = data[i] / most;
    if (Number.isFinite(x) && Math.abs(x) > Math.abs(small[place])) small[place] = x;
  }
  thumbnails.set(data, small);
  return small;
}

/** @type {(surface: Surface, theme: Theme, box: FlowBlock, state: FlowState, session: Session) => void} */
export function drawFlowBlock(surface, theme, box, state, session) {
  const { x, y, width, height, block, weights } = box,
    { part, isChosen } = state;
  if (block === "loss") {
    if (part > 0) drawProbabilities(surface, theme, box, state, session);
    return;
  }
  surface.rectangle(x, y, width, height, theme.card);
  if (part > 0) {
    // in attention, the ribbons lead from the keys at the bottom to the vectors of the queries at the top
    const top = box.left > x ? y : y + ROOF,
      own = (y + height - top) * (weights ? 0.3 : 1);
    if (weights) drawRibbons(surface, theme, box, state, top + own, y + height);
    drawColumns(surface, theme, box, state, top, own, weights ? Math.max(0, 2 * part - 1) : part);
  }
  surface.frame(x, y, width, height, isChosen ? CHOSEN : theme.line, isChosen ? 3 : 1);
  const names = box.left > x ? splitName(blockName(block)) : [blockName(block)];
  names.forEach((name, i) => {
    const style = { size: 11.5, color: theme.ink, bold: isChosen && box.left > x };
    surface.text(x + 5, y + (box.left > x ? height / 2 + (i - (names.length - 1) / 2) * 14 : 8), name, style);
  });
}

/** @type {(surface: Surface, theme: Theme, box: FlowBlock,
 *   state: FlowState, top: number, height: number, part: number) => void} */
function drawColumns(surface, theme, box, { token, isBackward }, top, height, part) {
  const { output, tokens } = box,
    count = tokens.length,
    data = isBackward ? output.grad : output.data;
  if (!data.length) return;
  const small = thumbnailOf(data, count),
    kind = isBackward ? "gradient" : "value";
  const [bright, dim] = [1, 0.45].map((mixed) => paletteOf(kind, theme, mixed));
  const wide = Math.max(1, columnWidth(box, count) - 1.5),
    high = (height - 4) / ROWS;
  for (let i = 0; i < count; i++) {
    const palette = token === null || token === i ? bright : dim,
      left = columnAt(box, i, count) - wide / 2;
    for (let row = 0; row < Math.round(part * ROWS); row++) {
      const color = palette.colors[levelOf(small[i * ROWS + row])];
      surface.rectangle(left, top + height - 2 - (row + 1) * high, wide, high, color);
    }
  }
}

/** @type {(surface: Surface, theme: Theme, box: FlowBlock,
 *   state: FlowState, top: number, bottom: number) => void} */
function drawRibbons(surface, theme, box, { token, key, part, isBackward }, top, bottom) {
  const { data, grad, shape } = /** @type {import("../engine/tape.js").Step} */ (box.weights),
    [heads, queries, keys] = shape,
    numbers = isBackward ? grad : data;
  const most = isBackward ? numbers.reduce((a, b) => Math.max(a, Math.abs(b)), 0) || 1 : 1,
    widest = Math.min(12, 0.7 * columnWidth(box, Math.max(queries, keys))),
    grown = Math.min(1, 2 * part);
  const gradients = paletteOf("gradient", theme, 1).colors;
  for (let i = 0; i < numbers.length; i++) {
    const weight = Math.abs(numbers[i]) / most,
      t = Math.floor(i / keys) % queries,
      isOwn = token === t || key === i % keys;
    if (weight < LEAST || (token !== null && !isOwn && weight < 0.3)) continue;
    const head = Math.floor(i / (queries * keys)),
      from = columnAt(box, i % keys, keys) + (head - (heads - 1) / 2) * 2,
      to = columnAt(box, t, queries);
    const color = isBackward ? gradients[numbers[i] < 0 ? 20 : 236] : HEAD_COLORS[head % HEAD_COLORS.length],
      opacity = token === null ? 0.2 + 0.5 * weight : isOwn ? 0.9 : 0.12;
    const end = [from + (to - from) * grown, bottom + (top - bottom) * grown];
    surface.line(from, bottom, end[0], end[1], color, Math.max(0.6, widest * weight), opacity);
  }
}

/** @type {(surface: Surface, theme: Theme, box: FlowBlock,
 *   state: FlowState, session: import("../state/session.js").Session) => void} */
function drawProbabilities(surface, theme, box, { token, part, isChosen }, session) {
  const { output, tokens, y, height } = box,
    count = tokens.length,
    words = axesOf(session, output)[1]?.labels;
  const wide = Math.min(30, columnWidth(box, count) - 3),
    bars = height - 34;
  for (let i = 0; i < count; i++) {
    const row = rowOf(output, i),
      best = argmax(row),
      p = Math.exp(row[best]) * part,
      middle = columnAt(box, i, count);
    const color = token === null || token === i ? theme.tints[0] : theme.line;
    surface.rectangle(middle - wide / 2, y + height - bars * p, wide, bars * p, color);
    const style = { ...slantOf(wide), color: theme.ink, bold: token === i },
      above = wide < 16 ? bars : bars * p; // narrow columns have their words at one height
    if (part > 0.5 && words)
      surface.text(middle - 3, y + height - above - 5, clip(visibleText(words[best]), 9), style);
  }
  if (isChosen) surface.frame(box.x, y, box.width, height, CHOSEN, 3);
}

/** Return the size and the slant of words above or below columns. @param {number} width   of a column */
export function slantOf(width) {
  return { size: Math.max(10, Math.min(15, 0.45 * width)), rotate: width < 16 ? -65 : -50 };
}
