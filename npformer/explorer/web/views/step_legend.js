// @ts-check
// The legend of a grid: its colours from the smallest to the largest number.
import { element } from "../drawing/page_elements.js";
import { powerOf } from "../drawing/draw_grids.js";
import { colorOf, rgbText, scaleColors } from "../drawing/colors.js";
import { numberText, powerOfTen } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

/**
 * @param {import("../drawing/step_layout.js").Placed} placed
 * @param {import("../drawing/colors.js").Theme} theme
 */
export function legendOf({ slice, cellWidth }, theme) {
  const kind = slice.isGradient ? "gradient" : "value",
    colors = scaleColors(kind, theme.dark);
  const stops = Array.from({ length: 21 }, (_, i) => rgbText(colorOf(colors, kind, i / 10 - 1)));
  const bar = element("i", { styles: { background: `linear-gradient(90deg, ${stops.join(",")})` } });
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
