// @ts-check
// Where the grids of a step stand. In a matrix product, the first factor stands left, the second above, and
// the product where they cross (Falk's scheme). In the backward pass the places stay, and the gradient takes
// the place of its array.
import { gridSize } from "./slices.js";
import { isProduct, slicesOf } from "./step_slices.js";

/**
 * A grid on the picture.
 * @typedef {object} Placed
 * @property {Slice} slice
 * @property {boolean} isResult
 * @property {number} x
 * @property {number} y
 * @property {number} cellWidth
 * @property {number} cellHeight
 * @property {boolean} labelsLeft
 * @property {boolean} labelsTop
 * @property {{x: number, y: number}} title   where the name stands
 */

/**
 * @typedef {{width: number, height: number, placed: Placed[], corner: {width: number, height: number} | null,
 *   isNarrow: boolean, strip?: boolean}} Layout   strip: whether the bars of a softmax stand above the grids
 */

export const STRIP = 140; // the height of the bars of a softmax, above its grids
const SLANTED = 64; // the height of slanted labels
const TITLE = 24;

/** @type {(explorer: Explorer, width: number) => Layout} */
export function layoutStep(explorer, width) {
  const { slices, result } = slicesOf(explorer),
    isNarrow = width < 640;
  if (isProduct(explorer.moment.step)) return layoutProduct(slices, result, width, isNarrow);
  const layout = layoutRow(slices, result, width, isNarrow) ?? layoutColumn(slices, result, width, isNarrow);
  if (explorer.moment.step.op !== "softmax" || explorer.direction === "backward") return layout;
  const placed = layout.placed.map(({ y, title, ...rest }) => {
    return { ...rest, y: y + STRIP, title: { x: title.x, y: title.y + STRIP } };
  });
  return { ...layout, placed, strip: true, height: layout.height + STRIP };
}

/** @type {(slices: Slice[], result: Slice, width: number, isNarrow: boolean) => Layout} */
function layoutProduct([left, above, output], result, width, isNarrow) {
  const [rows, inner] = gridSize(left),
    outer = gridSize(output)[1];
  const label = isNarrow ? 58 : 90,
    gap = isNarrow ? 8 : 16,
    room = width - label - gap - 4;
  const equal = room / (inner + outer),
    hasTokens = labelsOf(output, "columns") !== null;
  const least = inner > 40 ? room / inner / 3 : isNarrow ? 5 : 7;
  let outerWidth = hasTokens ? Math.min(40, (room - inner * least) / outer) : Math.min(40, equal);
  if (outerWidth < 9) outerWidth = equal;
  const innerWidth = Math.min(isNarrow ? 12 : hasTokens ? 24 : 40, (room - outerWidth * outer) / inner);
  const aboveLabels = labelsOf(above, "rows") !== null,
    leftLabels = labelsOf(left, "columns") !== null && innerWidth >= 9;
  const aboveTop = TITLE + (labelsOf(above, "columns") !== null ? SLANTED : 0),
    rule = TITLE + 4;
  const aboveHeight = Math.max(2.5, Math.min(aboveLabels ? 16 : isNarrow ? 7 : 10, 260 / inner));
  const rowHeight = isNarrow ? 14 : rows > 24 ? 16 : 20;
  const split = label + innerWidth * inner + gap;
  const showsLabels = aboveLabels && aboveHeight >= 10;
  const cornerWidth = split - gap - (showsLabels ? 76 : 64);
  const hasCorner = !isNarrow && cornerWidth >= 330;
  const low = aboveTop + Math.max(aboveHeight * inner + rule, hasCorner ? 200 : 0) + (leftLabels ? 20 : 0);
  const top = low - rule - aboveHeight * inner;
  return {
    width,
    isNarrow,
    height: low + rowHeight * rows + 6,
    placed: [
      {
        ...place(left, result, label, low, innerWidth, rowHeight),
        labelsTop: leftLabels,
        title: { x: label, y: low - 13 - (leftLabels ? SLANTED - 8 : 0) },
      },
      {
        ...place(above, result, split, top, outerWidth, aboveHeight),
        labelsLeft: showsLabels,
        labelsTop: true,
        title: { x: split, y: top - aboveTop + 10 },
      },
      {
        ...place(output, result, split, low, outerWidth, rowHeight),
        labelsLeft: false,
        labelsTop: false,
        title: { x: split, y: low - 12 },
      },
    ],
    corner: hasCorner ? { width: cornerWidth, height: low - 36 - (leftLabels ? SLANTED : 0) } : null,
  };
}

/**
 * Place small grids side by side, or return null if there is no room.
 * @type {(slices: Slice[], result: Slice, width: number, isNarrow: boolean) => Layout | null}
 */
function layoutRow(slices, result, width, isNarrow) {
  if (isNarrow) return null;
  const margins = slices.map((slice) => (labelsOf(slice, "rows") ? 90 : 16));
  const columns = slices.map((slice) => gridSize(slice)[1]);
  const room = width - margins.reduce((a, b) => a + b, 0) - 20 * slices.length;
  const cell = Math.min(40, room / columns.reduce((a, b) => a + b, 0));
  if (cell < 15) return null;
  const hasTop = slices.some((slice) => labelsOf(slice, "columns")),
    y = TITLE + (hasTop ? SLANTED : 4);
  let x = 0;
  const placed = slices.map((slice, i) => {
    x += margins[i];
    const cellWidth = columns[i] === 1 ? Math.max(cell, 64) : cell;
    const one = place(slice, result, x, y, cellWidth, gridSize(slice)[0] > 24 ? 16 : 20);
    x += cellWidth * columns[i] + 20;
    return one;
  });
  if (x > width) return null;
  const height = Math.max(...placed.map((one) => y + one.cellHeight * gridSize(one.slice)[0])) + 6;
  return { width, height, placed, corner: null, isNarrow };
}

/**
 * Place the grids one below the other, so that equal columns of wide grids stand in line.
 * @type {(slices: Slice[], result: Slice, width: number, isNarrow: boolean) => Layout}
 */
function layoutColumn(slices, result, width, isNarrow) {
  const label = isNarrow ? 58 : 90,
    room = width - label - 4;
  let y = 0;
  const placed = slices.map((slice) => {
    const [rows, columns] = gridSize(slice);
    const cellWidth = Math.min(columns === 1 ? 80 : 40, room / columns);
    y += TITLE + (labelsOf(slice, "columns") && cellWidth >= 9 ? SLANTED : 2);
    const one = place(slice, result, label, y, cellWidth, rows > 20 ? 13 : 16);
    y += one.cellHeight * rows + 10;
    return one;
  });
  return { width, height: y + 4, placed, corner: null, isNarrow };
}

/** @type {(slice: Slice, result: Slice, x: number, y: number, wide: number, high: number) => Placed} */
function place(slice, result, x, y, cellWidth, cellHeight) {
  const top = labelsOf(slice, "columns") && cellWidth >= 9 ? SLANTED : 2;
  return {
    slice,
    isResult: slice === result,
    x,
    y,
    cellWidth,
    cellHeight,
    labelsLeft: true,
    labelsTop: cellWidth >= 9,
    title: { x, y: y - top - 10 },
  };
}

/**
 * Return the labels of the rows or columns of a grid.
 * @type {(slice: Slice, which: "rows" | "columns") => string[] | null}
 */
export function labelsOf({ rowLabels, columnLabels, isTransposed }, which) {
  return (which === "rows") !== isTransposed ? rowLabels : columnLabels;
}
