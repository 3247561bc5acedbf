// @ts-check
// Which token has the largest gradient: the norms of the rows of a gradient whose rows are tokens.
import { axesOf } from "../state/axes.js";
import { numberText, visibleText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

/**
 * The rows of a gradient with the norm of each: their places on the array's axis, and whether the grid shows
 * all of them that are not 0.
 * @typedef {{slice: Slice, rows: number[], norms: number[], isPart: boolean, head: number | null}} RowNorms
 */

/**
 * Return the norms of the rows of a gradient, of one head: the root of the sum of the squares of a row.
 * Return null where the rows are not tokens.
 * @param {Explorer} explorer
 * @param {Slice} slice   the grid of the result
 * @returns {RowNorms | null}
 */
export function rowNormsOf({ session }, slice) {
  const { rows, rowLabels, isGradient, step, start, stride } = slice,
    axes = axesOf(session, step),
    rowsAxis = axes[axes.length - 2];
  if (!isGradient || !rowsAxis?.labels || !rowLabels || rows.length < 2) return null;
  const norms = Array.from({ length: rowsAxis.length }, (_, row) => {
    const entries = step.grad.subarray(start + row * stride, start + (row + 1) * stride);
    return Math.sqrt(entries.reduce((sum, x) => sum + x * x, 0));
  });
  const shown = new Set(rows),
    isPart = norms.some((norm, row) => norm > 0 && !shown.has(row));
  const head = axes.length === 3 ? start / (stride * rowsAxis.length) : null;
  return { slice, rows: [...rows].sort((a, b) => norms[b] - norms[a]), norms, isPart, head };
}

/**
 * Return the token of a row, with its position where another row has the same token.
 * @type {(slice: Slice, row: number) => string}
 */
export function rowName({ rows, rowLabels }, row) {
  const labels = rowLabels ?? [],
    label = labels[rows.indexOf(row)];
  const isTwice = labels.indexOf(label) !== labels.lastIndexOf(label);
  return `“${visibleText(label)}”${isTwice ? t(" at position {row}", { row }) : ""}`;
}

/**
 * Return the sentence that names the rows with the largest gradients.
 * @param {RowNorms} rowNorms
 */
export function rowNormsSentence({ slice, rows, norms, isPart, head }) {
  const [first, second] = rows;
  if (!(norms[first] > 0)) return t("The gradient of each row is 0.");
  const named = (/** @type {number} */ row) =>
    t("{row} (L2 norm {norm})", { row: rowName(slice, row), norm: numberText(norms[row]) });
  const kind = [slice.isTransposed ? t("column") : t("row"), isPart ? t("shown") : ""];
  if (head !== null) kind.push(t("of head {head}", { head }));
  const rest = norms[second] > 0 ? t(", then {named}", { named: named(second) }) : t("; all others are 0");
  return t("Largest {kind}: {row}{rest}.", { kind: kind.filter(Boolean).join(" "), row: named(first), rest });
}
