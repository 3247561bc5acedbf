// @ts-check
// Draws the grids of a layout: cells, numbers, labels, and frames around what takes part in a number.
import { CHOSEN, labelStyle, levelOf, paletteOf } from "./colors.js";
import { cellText } from "./number_texts.js";
import { cellOf, gridSize, numbersOf, placeOf } from "./slices.js";
import { labelsOf } from "./step_layout.js";

const DIMMED = 0.6; // of a cell that takes no part
const INFINITE = "#767676"; // the colour of -inf

/**
 * What takes part in the chosen number: the places of values and of gradients of each array.
 * @typedef {{values: Map<object, Set<number>>, gradients: Map<object, Set<number>>}} Parts
 */

/** @type {(explanation: Explanation) => Parts} */
export function partsOf({ terms: list, inner }) {
  /** @type {Parts} */
  const parts = { values: new Map(), gradients: new Map() };
  for (const { factors } of [...list, ...(inner?.terms ?? [])]) {
    for (const { step, index, grad } of factors) {
      if (!step) continue;
      const places = grad ? parts.gradients : parts.values;
      if (!places.has(step)) places.set(step, new Set());
      /** @type {Set<number>} */ (places.get(step)).add(index);
    }
  }
  return parts;
}

/**
 * @param {Surface} surface
 * @param {Theme} theme
 * @param {Placed} placed
 * @param {Parts} parts
 * @param {number} chosen   the index of the chosen number, if this is the grid of the result
 */
export function drawGrid(surface, theme, placed, parts, chosen) {
  const { slice } = placed,
    lit = (slice.isGradient ? parts.gradients : parts.values).get(slice.step);
  const cell = placed.isResult ? cellOf(slice, chosen) : null;
  drawTitle(surface, theme, placed);
  drawCells(surface, theme, placed, (index) =>
    placed.isResult ? index === chosen : (lit?.has(index) ?? false),
  );
  if (lit && !placed.isResult) drawFrames(surface, placed, lit);
  drawLabels(surface, theme, placed, cell ?? commonCell(slice, lit));
}

/**
 * Return the row and the column in which all lit cells stand, or -1 where they do not stand in one.
 * @param {import("./slices.js").Slice} slice
 * @param {Set<number> | undefined} lit
 * @returns {[number, number] | null}
 */
function commonCell(slice, lit) {
  const cells = [...(lit ?? [])].map((index) => cellOf(slice, index)).filter((cell) => cell !== null);
  if (!cells.length) return null;
  const [[row, column]] = cells;
  return [cells.every(([i]) => i === row) ? row : -1, cells.every(([, j]) => j === column) ? column : -1];
}

/** @type {(surface: Surface, theme: Theme, placed: Placed) => void} */
function drawTitle(surface, theme, { slice, title }) {
  const name = slice.name + (slice.isTransposed ? "ᵀ" : "");
  const color = theme.tints[["output", "0", "1", "2"].indexOf(String(slice.role))];
  surface.text(title.x, title.y, name, { size: 15, color, bold: true, mono: true });
  surface.text(title.x + 9.6 * name.length + 10, title.y, slice.shape, { size: 12, color: theme.faint });
}

/** @type {(surface: Surface, theme: Theme, placed: Placed, isLit: (index: number) => boolean) => void} */
function drawCells(surface, theme, { slice, x, y, cellWidth, cellHeight, isResult }, isLit) {
  const [rows, columns] = gridSize(slice),
    numbers = numbersOf(slice),
    top = slice.largest || 1;
  const kind = slice.isGradient ? "gradient" : "value",
    line = cellWidth > 5 ? 1 : 0,
    rule = cellHeight > 4 ? 1 : 0,
    corner = Math.min(5, cellWidth / 3, cellHeight / 3); // of a cell that changed
  const bright = paletteOf(kind, theme, 1),
    dim = paletteOf(kind, theme, isResult ? 0.72 : DIMMED);
  const power = powerOf(slice),
    digits = slice.step.op === "allowed" ? 0 : cellWidth < 36 ? 1 : 2,
    hasNumbers = cellWidth >= 30 && cellHeight >= 14 && (isResult || columns <= 20);
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < columns; j++) {
      const index = placeOf(slice, i, j),
        number = numbers[index],
        lit = isLit(index);
      const palette = lit ? bright : dim,
        level = levelOf(number / top),
        isFinite = Number.isFinite(number);
      const left = x + j * cellWidth,
        height = y + i * cellHeight;
      surface.rectangle(
        left,
        height,
        cellWidth - line,
        cellHeight - rule,
        isFinite ? palette.colors[level] : INFINITE,
      );
      if (slice.before && slice.before[index] !== number)
        surface.rectangle(left + cellWidth - line - corner, height, corner, corner, theme.accent);
      if (!hasNumbers) continue;
      const isSmall = slice.isGradient && Math.abs(number) < 0.01 * top;
      surface.text(
        left + cellWidth / 2 - 0.5,
        height + cellHeight / 2,
        isSmall ? "·" : cellText(number / 10 ** power, digits),
        { size: 11, color: isFinite ? palette.inks[level] : "#ffffff", align: "center" },
      );
    }
  }
}

/**
 * Return the power of ten by which the numbers in the cells of a gradient are divided.
 * @param {import("./slices.js").Slice} slice
 */
export function powerOf({ isGradient, largest }) {
  return isGradient && largest ? Math.floor(Math.log10(largest)) : 0;
}

/**
 * Draw a frame around some cells of a grid: those from row a to b and from column c to d.
 * @type {(surface: Surface, placed: Placed, cells: number[], thickness: number) => void}
 */
export function frameCells(surface, { x, y, cellWidth, cellHeight }, [a, b, c, d], thickness) {
  const width = (d - c + 1) * cellWidth + 1,
    height = (b - a + 1) * cellHeight + 1;
  surface.frame(x + c * cellWidth - 1, y + a * cellHeight - 1, width, height, CHOSEN, thickness);
}

/** @type {(surface: Surface, placed: Placed, lit: Set<number>) => void} */
function drawFrames(surface, placed, lit) {
  const cells = /** @type {[number, number][]} */ (
    [...lit].map((index) => cellOf(placed.slice, index)).filter(Boolean)
  );
  if (!cells.length) return;
  const rows = cells.map(([i]) => i),
    columns = cells.map(([, j]) => j);
  const [i0, i1, j0, j1] = [Math.min(...rows), Math.max(...rows), Math.min(...columns), Math.max(...columns)];
  const isBlock = (i1 - i0 + 1) * (j1 - j0 + 1) === new Set(cells.map(([i, j]) => `${i} ${j}`)).size;
  if (isBlock) frameCells(surface, placed, [i0, i1, j0, j1], 2);
  else cells.slice(0, 100).forEach(([i, j]) => frameCells(surface, placed, [i, i, j, j], 2));
}

/** @type {(surface: Surface, theme: Theme, placed: Placed, cell: [number, number] | null) => void} */
function drawLabels(surface, theme, placed, cell) {
  const { slice, x, y, cellWidth, cellHeight } = placed;
  const [rows, columns] = [labelsOf(slice, "rows"), labelsOf(slice, "columns")];
  const size = Math.min(12.5, cellHeight - 1);
  const styleOf = (/** @type {number} */ place, /** @type {0 | 1} */ axis) =>
    labelStyle(theme, !cell || cell[axis] < 0 || place === cell[axis]);
  if (placed.labelsLeft && rows && cellHeight >= 9) {
    rows.forEach((word, i) => {
      const style = { size, align: "right", ...styleOf(i, 0), bold: i === cell?.[0] };
      surface.text(x - 6, y + (i + 0.5) * cellHeight, clip(word, 12), style);
    });
  }
  if (placed.labelsTop && columns && cellWidth >= 8) {
    const slant = cellWidth < 14 ? { size: 10, rotate: -90 } : { size: 12, rotate: -42 };
    columns.forEach((word, j) => {
      const style = { ...slant, ...styleOf(j, 1), bold: j === cell?.[1] };
      surface.text(x + (j + 0.5) * cellWidth, y - 7, clip(word, 10), style);
    });
  }
}

/** @type {(word: string, length: number) => string} */
export function clip(word, length) {
  return word.length > length ? `${word.slice(0, length - 1)}…` : word;
}
