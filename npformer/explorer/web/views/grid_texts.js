// @ts-check
// What stands below a grid: the legend of its colours, and its numbers as a table, for screen readers and for
// copying.
import { element, scroller, table } from "../drawing/page_elements.js";
import { powerOf } from "../drawing/draw_grids.js";
import { scaleBar } from "../drawing/colors.js";
import { gridSize, numbersOf, placeOf } from "../drawing/slices.js";
import { labelsOf } from "../drawing/step_layout.js";
import { numberText, powerOfTen, shapeText, visibleText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

/** @type {(placed: Placed, theme: Theme) => any} */
export function legendOf({ slice, cellWidth }, theme) {
  const kind = slice.isGradient ? "gradient" : "value",
    bar = element("i", { styles: { background: scaleBar(kind, theme) } });
  const power = cellWidth >= 30 ? powerOf(slice) : 0;
  return element(
    "span",
    {},
    `${slice.name} −${numberText(slice.largest)}`,
    bar,
    numberText(slice.largest),
    power ? t(" (numbers in cells · {power})", { power: powerOfTen(power) }) : "",
    slice.note ? ` (${slice.note})` : "",
  );
}

/** @param {import("../drawing/slices.js").Slice} slice */
export function tableOf(slice) {
  const [rows, columns] = gridSize(slice),
    numbers = numbersOf(slice);
  const [rowLabels, columnLabels] = [labelsOf(slice, "rows"), labelsOf(slice, "columns")];
  const head = Array.from({ length: columns }, (_, j) => visibleText(columnLabels?.[j] ?? j));
  const body = Array.from({ length: rows }, (_, i) => [
    visibleText(rowLabels?.[i] ?? i),
    ...Array.from({ length: columns }, (__, j) => numberText(numbers[placeOf(slice, i, j)])),
  ]);
  const caption = `${slice.name}, ${shapeText([rows, columns])}`;
  return scroller(t("Table of {name}", { name: slice.name }), table(["", ...head], body, { caption }));
}
