// @ts-check
// The probabilities of the right tokens, before and after a change.
import { argmax } from "../engine/tape.js";
import { element, scroller, table } from "../drawing/page_elements.js";
import { numberText, percent } from "../drawing/number_texts.js";
import { tokensOf } from "../state/axes.js";
import { t } from "../words/text.js";

const OPPOSITE = t(
  "Label smoothing rewards a model that is less certain, so the two losses can change in opposite " +
    "directions. The cross-entropy alone says how well the right tokens are predicted.",
);

/**
 * What a change is compared with.
 * @typedef {{loss: number, crossEntropy: number, probabilities: Float64Array, width: number,
 *   output: string}} Summary
 */

/**
 * Make the comparison of the present state with an earlier one.
 * @param {Explorer} explorer
 * @param {Summary} before
 * @param {(p: number, row: number) => any} shown how a probability is shown
 */
export function comparison(explorer, before, shown = (p) => percent(p)) {
  const { session } = explorer,
    now = session.summary();
  const { smoothing, task } = session;
  const numbers = (/** @type {string} */ name, /** @type {"loss" | "crossEntropy"} */ key) =>
    [name, numberText(before[key]), numberText(now[key]), difference(now[key] - before[key])];
  const lines = [
    numbers(smoothing ? t("Loss with {smoothing}", { smoothing }) : t("Loss"), "loss"),
    ...(smoothing ? [numbers(t("Cross-entropy without it"), "crossEntropy")] : []),
    [
      task?.words.output ?? t("Output"),
      ...[before, now].map(({ output }) => task?.shown(output) ?? ""),
      before.output === now.output ? t("the same") : t("changed"),
    ],
  ];
  const { target } = session.texts,
    caption = target ? t("The loss is that of “{target}”.", { target }) : "";
  const isOpposite = (now.loss - before.loss) * (now.crossEntropy - before.crossEntropy) < 0;
  return element(
    "div",
    { className: "comparison" },
    probabilityTable(explorer, before, now, shown),
    isOpposite ? element("p", {}, OPPOSITE) : "",
    table([t("quantity"), t("before"), t("after"), t("difference")], lines, { caption }),
  );
}

/**
 * @type {(explorer: Explorer, before: Summary, now: Summary, shown: (p: number, row: number) => any) => any}
 */
function probabilityTable({ session }, before, now, shown) {
  const targets = session.ids?.targetOut ?? [],
    words = session.head.target_words ?? [];
  const read = tokensOf(session, "target"),
    isSame = before.probabilities.length === now.probabilities.length;
  const rows = targets.map((target, t) => {
    // the last token of a text has no right one after it
    const [after, old] = [now, isSame ? before : null].map(
      (one) => one?.probabilities[t * one.width + target] ?? NaN,
    );
    const best = argmax(now.probabilities.subarray(t * now.width, (t + 1) * now.width));
    return [
      read[t],
      words[target] ?? "–",
      Number.isNaN(old) ? "–" : percent(old),
      Number.isNaN(after) ? "–" : shown(after, t),
      Number.isNaN(after - old) ? "–" : points(after - old),
      best === target ? "✓" : words[best],
    ];
  });
  const names = [t("reads"), t("target"), t("before"), t("after"), t("change")],
    caption = t("Probability of each token of the target, its change in points; ✓: it is predicted");
  const made = table([...names, t("predicts")], rows, { className: "words", caption });
  return scroller(t("Probabilities of the target"), made);
}

/** The widths of the bars that were drawn last, from which the next ones move on. @type {string[]} */
const DRAWN = [];

/** Make a probability with its bar, in a row of the table. @type {(p: number, row: number) => any} */
export function withBar(p, row) {
  const bar = element("i", { className: "positive" }),
    width = `${100 * p}%`;
  bar.style.setProperty("--before", DRAWN[row] ?? width);
  bar.style.setProperty("--now", width);
  DRAWN[row] = width;
  return element("span", {}, percent(p), element("span", { className: "share" }, bar));
}

/**
 * Return the change of a probability in percentage points, such as "−3.5".
 * @param {number} by
 */
function points(by) {
  const text = (100 * by).toFixed(Math.abs(by) < 0.001 ? 2 : 1).replace("-", "−");
  return !/[1-9]/.test(text) ? "0" : by > 0 ? `+${text}` : text;
}

/** @param {number} by */
function difference(by) {
  return by === 0 ? t("the same") : `${by > 0 ? "+" : ""}${numberText(by)}`;
}
