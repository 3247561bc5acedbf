// @ts-check
// How a number is made, in beats: the factors meet, their products appear, and bars stack into the cell; a
// softmax has the scores, their exponentials and the division; the terms of all others move into the cell.
import { sumOf } from "../arithmetic/terms.js";
import { clip } from "./draw_grids.js";
import { cellText, visibleText } from "./number_texts.js";
import { cellOf, gridSize, numbersOf, placeOf } from "./slices.js";
import { STRIP } from "./step_layout.js";
import { isProduct } from "./step_slices.js";
import { CHOSEN, levelOf, paletteOf } from "./colors.js";
import { t } from "../words/text.js";

/** @typedef {{x: number, y: number, width: number, height: number, color: string}} Cell */

const PRODUCT_BEATS = [t("meet"), t("products"), t("sum")];
const SOFTMAX_BEATS = [t("scores"), t("exponentials"), t("division")];
const OTHER_BEATS = [t("terms")];
const REVEAL = 0.3; // the part of the last beat in which all other numbers appear
const LONGEST = 110; // of the bars
const SIGNS = ["#5fa2d8", "#f0974a"]; // of positive and of negative terms, as in their list

/** Return the names of the beats of a moment. @param {import("../state/explorer.js").Explorer} explorer */
export function beatsOf({ moment: { step }, direction }) {
  if (isProduct(step)) return PRODUCT_BEATS;
  return step.op === "softmax" && direction === "forward" ? SOFTMAX_BEATS : OTHER_BEATS;
}

/**
 * Return the stage at which a beat stands still: all of it has happened.
 * @type {(beats: string[], beat: number) => number}
 */
export function stageOf(beats, beat) {
  return beat + 1 - (beat === beats.length - 1 ? REVEAL + 0.01 : 0);
}

/**
 * Draw a stage over the grids of a layout.
 * @param {Surface} surface
 * @param {Theme} theme
 * @param {Layout} layout
 * @param {{explanation: Explanation, index: number, beats: string[], stage: number}} state
 */
export function drawBeats(surface, theme, layout, { explanation, index, beats, stage }) {
  const { placed, width } = layout;
  if (layout.strip) drawSoftmax(surface, theme, layout, explanation, index, stage);
  const result = placed.find(({ isResult }) => isResult),
    cell = result && cellOf(result.slice, index);
  if (!result || !cell || stage >= beats.length) return;
  const shown = Math.max(0, (stage - beats.length + REVEAL) / REVEAL);
  coverResult(surface, theme, result, shown);
  if (beats === SOFTMAX_BEATS) return;
  const target = cellAt(result, cell, theme);
  const moving = explanation.terms.map(({ factors, value }) => ({
    value,
    cells: factors.flatMap((factor) => cellOfFactor(placed, factor, theme) ?? []),
  }));
  const pairs = moving.filter(({ cells }) => cells.length > 1);
  if (beats === PRODUCT_BEATS && pairs.length) drawProducts(surface, theme, pairs, target, stage, width);
  else {
    const part = ease(stage / (1 - REVEAL));
    const cells = moving.flatMap((one) => one.cells);
    for (const one of cells) drawCell(surface, between(one, target, target, part));
  }
  surface.frame(target.x - 1, target.y - 1, target.width + 1, target.height + 1, CHOSEN, 2.5);
}

/** @type {(surface: Surface, theme: Theme, pairs: {value: number, cells: Cell[]}[], target: Cell,
 *   stage: number, width: number) => void} */
function drawProducts(surface, theme, pairs, target, stage, width) {
  const [first, last] = [pairs[0].cells[1], pairs[pairs.length - 1].cells[1]];
  // right of a column, or above a row: there the other factor arrives, and next to it the bar appears
  const [dx, dy] = first.x === last.x ? [first.width + 2, 0] : [0, -first.height],
    longest = dx ? LONGEST : first.width,
    [right, bottom] = [last.x + 2 * dx + longest, last.y + last.height];
  if (stage <= 2) {
    const top = first.y + 2 * dy;
    surface.rectangle(first.x + dx, top, right - first.x - dx, bottom + dy - top, theme.card);
  }
  const most = Math.max(...pairs.map(({ value }) => Math.abs(value))) || 1,
    side = target.x + LONGEST < width ? 1 : -1; // to which the stack grows
  const totals = [1, -1].map((sign) => pairs.reduce((sum, { value }) => sum + Math.max(0, sign * value), 0)),
    scale = (LONGEST / (Math.max(...totals) || 1)) * (1 - ease((stage - 3 + REVEAL) / REVEAL));
  const sums = [0, 0]; // of the positive and of the negative products
  pairs.forEach(({ value, cells: [moved, kept] }, i) => {
    const met = { ...kept, x: kept.x + dx, y: kept.y + dy },
      corner = dx ? { ...met, y: moved.y } : { ...met, x: moved.x };
    if (stage <= 2) drawCell(surface, between(moved, corner, met, ease(stage)));
    const size = Math.abs(value),
      negative = Number(value < 0),
      length = (longest * size * ease(stage - 1)) / most;
    const bar = { ...met, x: met.x + dx, y: met.y + dy, width: length, color: SIGNS[negative] };
    const stacked = {
      x: target.x + side * sums[negative] - (side < 0 ? size * scale : 0),
      y: target.y + (target.height / 2) * negative,
      width: size * scale,
      height: target.height / 2,
    };
    sums[negative] += size * scale;
    const arrived = { ...bar, ...stacked };
    drawCell(surface, between(bar, bar, arrived, ease((stage - 2 - (0.4 * i) / pairs.length) / 0.3)));
  });
}

/**
 * Draw the three beats of a softmax side by side, as far as they have come: bars of all keys of the query.
 * @type {(surface: Surface, theme: Theme, layout: Layout, explanation: Explanation, index: number,
 *   stage: number) => void}
 */
function drawSoftmax(surface, theme, { placed, width }, { inner }, index, stage) {
  const list = inner?.terms ?? [],
    { slice } = placed[placed.length - 1],
    [before, after] = placed.map(({ slice: { step } }) => list.map((term) => step.data[term.index])),
    bottom = STRIP - 14;
  const exps = list.map(({ value }) => value),
    total = sumOf(list);
  const titles = [
    t("1 the scores"),
    t("2 their exponentials"),
    t("3 divided by their sum, {total}", { total: cellText(total, 3) }),
  ];
  [before, exps, after].slice(0, Math.ceil(Math.min(stage, 3))).forEach((numbers, group) => {
    const left = 8 + (group * width) / 3,
      wide = Math.min(44, (width / 3 - 24) / numbers.length),
      most = numbers.reduce((a, b) => (Number.isFinite(b) ? Math.max(a, Math.abs(b)) : a), 0) || 1;
    const hasNegative = numbers.some((x) => x < 0 && Number.isFinite(x)),
      high = (bottom - 46) / (hasNegative ? 2 : 1),
      base = 26 + high;
    const title = clip(titles[group], Math.floor(width / 20));
    surface.text(left, 8, title, { size: 12, color: theme.ink, bold: true });
    numbers.forEach((x, i) => {
      const size = Number.isFinite(x) ? (high - 12) * (Math.abs(x) / most) * ease(stage - group) : 0,
        at = left + i * wide,
        isChosen = list[i].index === index;
      const top = x < 0 ? base : base - size,
        box = /** @type {const} */ ([at, top, Math.max(1, wide - 2), Math.max(1, size)]);
      surface.rectangle(...box, SIGNS[Number(x < 0)]);
      if (isChosen) surface.frame(...box, CHOSEN, 2.5);
      const style = { size: 10.5, color: theme.ink, align: /** @type {const} */ ("center") };
      if (wide > 25) surface.text(at + wide / 2 - 1, x < 0 ? top + size + 7 : top - 7, cellText(x), style);
      const word = clip(visibleText(slice.columnLabels?.[i] ?? i), Math.max(1, Math.floor(wide / 6)));
      if (wide > 12) surface.text(at + wide / 2 - 1, bottom - 6, word, { ...style, bold: isChosen });
    });
  });
}

/**
 * Cover the numbers of the result that are not computed yet, from the last row on.
 * @type {(surface: Surface, theme: Theme, result: Placed, shown: number) => void}
 */
function coverResult(surface, theme, { slice, x, y, cellWidth, cellHeight }, shown) {
  const [rows, columns] = gridSize(slice),
    first = Math.round(rows * shown);
  const height = (rows - first) * cellHeight;
  surface.rectangle(x, y + first * cellHeight, columns * cellWidth, height, theme.card);
  surface.frame(x, y, columns * cellWidth, rows * cellHeight, theme.line, 1);
}

/** @type {(placed: Placed[], factor: Factor, theme: Theme) => Cell | null} */
function cellOfFactor(placed, { step, index, grad }, theme) {
  const found = placed.find(({ slice }) => slice.step === step && slice.isGradient === grad),
    cell = found && cellOf(found.slice, index);
  return found && cell ? cellAt(found, cell, theme) : null;
}

/** @type {(placed: Placed, cell: [number, number], theme: Theme) => Cell} */
function cellAt({ slice, x, y, cellWidth: width, cellHeight: height }, [i, j], theme) {
  const { colors } = paletteOf(slice.isGradient ? "gradient" : "value", theme, 1),
    color = colors[levelOf(numbersOf(slice)[placeOf(slice, i, j)] / (slice.largest || 1))];
  return { x: x + j * width, y: y + i * height, width, height, color };
}

/** @type {(surface: Surface, cell: Cell) => void} */
function drawCell(surface, { x, y, width, height, color }) {
  surface.rectangle(x, y, Math.max(0, width - 1), Math.max(0, height - 1), color);
}

/**
 * Return a cell on its way from one place to another, on a curve that bends towards a corner.
 * @type {(from: Cell, corner: Cell, to: Cell, part: number) => Cell}
 */
function between(from, corner, to, part) {
  const [a, b, c] = [(1 - part) ** 2, 2 * part * (1 - part), part ** 2];
  const mixed = (/** @type {"x" | "y" | "width" | "height"} */ key) =>
    a * from[key] + b * corner[key] + c * to[key];
  return { x: mixed("x"), y: mixed("y"), width: mixed("width"), height: mixed("height"), color: from.color };
}

/** Cut a part to 0 .. 1, and make it slow at both ends. @type {(part: number) => number} */
function ease(part) {
  const x = Math.max(0, Math.min(1, part));
  return x * x * (3 - 2 * x);
}
