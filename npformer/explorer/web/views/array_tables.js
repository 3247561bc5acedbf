// @ts-check
// The arrays of a step as tables, for screen readers and for copying.
import { scroller, table } from "../drawing/page_elements.js";
import { gridSize, numbersOf, placeOf } from "../drawing/slices.js";
import { labelsOf } from "../drawing/step_layout.js";
import { numberText, shapeText, visibleText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

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
