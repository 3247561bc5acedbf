// @ts-check
// What can be done at a step: go on and back, see the source text, save the arrays, change or check a number.
import { button, byId } from "../drawing/page_elements.js";
import { saveFile } from "../drawing/surfaces.js";
import { linesOf, showSource } from "./code_view.js";
import { t } from "../words/text.js";

/** Make the buttons of the present step. @type {(explorer: Explorer) => any[]} */
export function stepActions(explorer) {
  const { timeline, position } = explorer,
    hidden = !explorer.session.isLive;
  const pinAndShow = (/** @type {"slope" | "changes"} */ view) => {
    explorer.isPinned = true;
    explorer.show(view);
    if (view === "changes") byId("value-of-value").focus();
  };
  return [
    button(t("← Back"), () => explorer.move(-1), { disabled: position === 0, title: t("Shift+Space") }),
    button(t("Next →"), () => explorer.move(1), {
      disabled: position === timeline.length - 1,
      title: t("Space"),
      className: "main",
    }),
    button(t("Show me the code"), () => showSource(explorer)),
    button(t("Save the arrays (JSON)"), () => saveArrays(explorer)),
    button(t("Change this number"), () => pinAndShow("changes"), { hidden }),
    button(t("Check this gradient"), () => pinAndShow("slope"), { hidden }),
  ];
}

/** Save the arrays of the present step as JSON. @type {(explorer: Explorer) => void} */
function saveArrays(explorer) {
  const { moment: { step }, direction } = explorer;
  const array = (/** @type {import("../engine/tape.js").Step} */ one) => ({
    path: one.path,
    shape: one.shape,
    values: numbersForJson(one.data),
    gradients: numbersForJson(one.grad),
  });
  const lines = linesOf(explorer);
  const data = {
    step: step.path,
    direction,
    code: lines.code,
    gradient: lines.gradient,
    sentence: explorer.session.texts,
    output: array(step),
    inputs: step.inputs.map(array),
  };
  saveFile(step.path, "json", new Blob([JSON.stringify(data)], { type: "application/json" }));
}

/** Return numbers that JSON can hold: infinities become text. @param {Float64Array} numbers */
function numbersForJson(numbers) {
  return Array.from(numbers, (x) => (Number.isFinite(x) ? x : String(x)));
}
