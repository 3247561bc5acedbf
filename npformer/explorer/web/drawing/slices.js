// @ts-check
// A slice: the part of an array that one grid shows. It is a matrix: one head of three axes, one row of one
// axis, and of a large vocabulary the tokens that matter for the sentence.
import { rowOf } from "../engine/tape.js";
import { axesOf, tokensOf, vocabularyAxis } from "../state/axes.js";
import { shapeText } from "./number_texts.js";
import { t } from "../words/text.js";

/**
 * @typedef {object} Slice
 * @property {Step} step
 * @property {boolean} isGradient
 * @property {Role} role
 * @property {string} name
 * @property {string} shape          the shape of the matrix as text
 * @property {string} note           what is left out, or ""
 * @property {number[]} rows         the places on the array's axis, for each row of the grid
 * @property {number[]} columns
 * @property {string[] | null} rowLabels
 * @property {string[] | null} columnLabels
 * @property {number} stride         the length of a row of the array
 * @property {number} start          where the head begins
 * @property {number} largest        the largest finite absolute value of the slice
 * @property {Float64Array | null} before   the numbers before the changes, if some numbers are other ones now
 * @property {boolean} isTransposed  whether the grid shows the columns as rows
 */

const MOST_WORDS = 40;

/** @type {WeakMap<Step, number[]>} the words that are shown, found once for each computation */
const probableWords = new WeakMap();

/**
 * Return the ids of the vocabulary that are worth showing: the targets, and the most probable tokens.
 * @param {Session} session
 * @param {number} extra   an id that must be there
 */
export function shownWords(session, extra) {
  const logits = session.tape.names.get("logits");
  if (!logits) return [];
  const words = probableWords.get(logits) ?? mostProbableWords(session, logits);
  probableWords.set(logits, words);
  return extra < 0 || words.includes(extra) || extra >= logits.shape[logits.shape.length - 1]
    ? words
    : [...words, extra].sort((a, b) => a - b);
}

/** @type {(session: Session, logits: Step) => number[]} */
function mostProbableWords(session, logits) {
  const width = logits.shape[logits.shape.length - 1],
    rows = logits.data.length / width;
  const shown = new Set(session.ids?.targetOut ?? []);
  const orders = Array.from({ length: rows }, (_, t) => {
    const row = rowOf(logits, t);
    return [...row.keys()].sort((a, b) => row[b] - row[a]);
  });
  for (let rank = 0; rank < Math.min(3, width); rank++) {
    for (const order of orders) if (shown.size < MOST_WORDS) shown.add(order[rank]);
  }
  return [...shown].filter((id) => id >= 0 && id < width).sort((a, b) => a - b);
}

/**
 * @param {Session} session
 * @param {Step} step
 * @param {{isGradient: boolean, role: Role, name: string, head: number, extra?: number, words?: number[],
 *   used?: number[] | null, isTransposed?: boolean}} options   used: the rows of a table that take part
 * @returns {Slice}
 */
export function sliceOf(session, step, options) {
  const { isGradient, role, head, used = null, isTransposed = false } = options;
  const axes = axesOf(session, step),
    rank = step.shape.length;
  const columnsAxis = axes[rank - 1] ?? { name: "", labels: null, length: 1 };
  const rowsAxis = axes[rank - 2] ?? { name: "", labels: null, length: 1 };
  const stride = columnsAxis.length;
  const start = rank === 3 ? Math.min(head, step.shape[0] - 1) * stride * rowsAxis.length : 0;
  const all = (/** @type {number} */ length) => Array.from({ length }, (_, i) => i);
  const hidesColumns = columnsAxis.length > 200 && vocabularyAxis(session, step, 0) !== null;
  const hidesRows = rowsAxis.length > 64 && (vocabularyAxis(session, step, 1) !== null || used !== null);
  const columns = hidesColumns ? (options.words ?? shownWords(session, -1)) : all(columnsAxis.length);
  const rows = used ?? (hidesRows ? (options.words ?? shownWords(session, -1)) : all(rowsAxis.length));
  const labelsOf = (/** @type {any} */ axis, /** @type {number[]} */ places) =>
    axis.labels && places.map((place) => axis.labels[place]);
  const numbers = isGradient ? step.grad : step.data,
    before = numbersBefore(session, step, isGradient);
  let largest = 0,
    hasChanged = false;
  for (const row of rows) {
    for (const column of columns) {
      const index = start + row * stride + column,
        size = Math.abs(numbers[index]);
      if (Number.isFinite(size) && size > largest) largest = size;
      if (before && before[index] !== numbers[index]) hasChanged = true;
    }
  }
  const notes = [hasChanged ? t("a corner marks what changed since before") : ""];
  if (hidesColumns) {
    const counts = { count: columns.length, all: columnsAxis.length };
    notes.push(t("{count} of {all} tokens: the targets and the most probable ones", counts));
  } else if (rows.length < rowsAxis.length) {
    const counts = { count: rows.length, all: rowsAxis.length };
    notes.push(t("{count} of {all} rows: those that this sentence uses", counts));
  }
  const shape = rank === 3 ? step.shape.slice(1) : step.shape;
  return {
    step,
    isGradient,
    role,
    name: options.name,
    shape: shapeText(isTransposed ? [...shape].reverse() : shape),
    note: notes.filter(Boolean).join("; "),
    rows,
    columns,
    rowLabels: labelsOf(rowsAxis, rows) ?? positionLabels(session, step, rows),
    columnLabels: labelsOf(columnsAxis, columns),
    stride,
    start,
    largest,
    before: hasChanged ? before : null,
    isTransposed,
  };
}

/**
 * Return the numbers of an array before the changes, or null if there were none or others.
 * @type {(session: Session, step: Step, isGradient: boolean) => Float64Array | null}
 */
function numbersBefore({ tape, tapeBefore }, { path, data, op }, isGradient) {
  const before = tapeBefore.names.get(path);
  // parameters are trained in place, and their gradients have one memory
  if (tape === tapeBefore || before?.data.length !== data.length || op === "parameter") return null;
  return isGradient ? before.grad : before.data;
}

/**
 * Return the tokens at the positions of a table of position vectors.
 * @type {(session: Session, step: Step, rows: number[]) => string[] | null}
 */
function positionLabels(session, step, rows) {
  if (!/positions\.(table|weight)$/.test(step.path)) return null;
  const tokens = tokensOf(session, step.path.startsWith("source") ? "source" : "target");
  return tokens.length === rows.length ? tokens.map((_, i) => t("position {i}", { i })) : null;
}

/**
 * Return the place in the array of a cell of the grid.
 * @param {Slice} slice
 * @param {number} i   the row of the grid
 * @param {number} j   the column of the grid
 */
export function placeOf({ rows, columns, stride, start, isTransposed }, i, j) {
  return isTransposed ? start + rows[j] * stride + columns[i] : start + rows[i] * stride + columns[j];
}

/**
 * Return the number of rows and columns of the grid.
 * @param {Slice} slice
 * @returns {[number, number]}
 */
export function gridSize({ rows, columns, isTransposed }) {
  return isTransposed ? [columns.length, rows.length] : [rows.length, columns.length];
}

/**
 * Return the row and the column of the grid in which an entry stands, or null.
 * @param {Slice} slice
 * @param {number} index
 * @returns {[number, number] | null}
 */
export function cellOf({ rows, columns, stride, start, isTransposed }, index) {
  const row = rows.indexOf(Math.floor((index - start) / stride)),
    column = columns.indexOf((index - start) % stride);
  if (index < start || row < 0 || column < 0) return null;
  return isTransposed ? [column, row] : [row, column];
}

/** @param {Slice} slice */
export function numbersOf({ step, isGradient }) {
  return isGradient ? step.grad : step.data;
}
