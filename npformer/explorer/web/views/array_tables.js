// @ts-check
// The arrays of a step as tables, for screen readers and for copying.
import { element } from "../drawing/page_elements.js";
import { gridSize, numbersOf, placeOf } from "../drawing/slices.js";
import { labelsOf } from "../drawing/step_layout.js";
import { numberText, shapeText, visibleText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

/** @param {import("../drawing/slices.js").Slice} slice */
export function tableOf(slice) {
  const [rows, columns] = gridSize(slice),
    numbers = numbersOf(slice);
  const [rowLabels, columnLabels] = [labelsOf(slice, "rows"), labelsOf(slice, "columns")];
  const heads = Array.from({ length: columns }, (_, j) =>
    element("th", { textContent: visibleText(columnLabels?.[j] ?? j), scope: "col" }),
  );
  const body = Array.from({ length: rows }, (_, i) =>
    element(
      "tr",
      {},
      element("th", { textContent: visibleText(rowLabels?.[i] ?? i), scope: "row" }),
      ...Array.from({ length: columns }, (__, j) =>
        element("td", { textContent: numberText(numbers[placeOf(slice, i, j)]) }),
      ),
    ),
  );
  return element(
    "div",
    {
      className: "scroller",
      tabIndex: 0,
      role: "region",
      "aria-label": t("Table of {name}", { name: slice.name }),
    },
    element(
      "table",
      {},
      element("caption", { textContent: `${slice.name}, ${shapeText([rows, columns])}` }),
      element("thead", {}, element("tr", {}, element("td"), ...heads)),
      element("tbody", {}, ...body),
    ),
  );
}
