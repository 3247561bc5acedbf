// @ts-check
// The way to another step: by its number, or from the list of the steps of the present block.
import { byId, element } from "../drawing/page_elements.js";
import { blockOf } from "../state/sentences.js";
import { resultOf } from "../state/timeline.js";
import { shortPath } from "./arithmetic_view.js";
import { t } from "../words/text.js";

export class StepChoice {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    const number = byId("step-number"),
      list = byId("block-steps");
    number.addEventListener("change", () => this.goTo(Math.round(number.valueAsNumber) - 1));
    list.addEventListener("change", () => this.goTo(Number(list.value)));
  }

  /** @param {number} position   outside of the steps, the nearest one is shown */
  goTo(position) {
    if (Number.isFinite(position)) this.explorer.goToPosition(position);
    this.explorer.changed();
  }

  render() {
    const { timeline, position, direction, moment } = this.explorer,
      block = blockOf(moment.step.path);
    Object.assign(byId("step-number"), { max: timeline.length, value: position + 1 });
    const options = timeline.flatMap((other, i) => {
      if (blockOf(other.step.path) !== block) return [];
      const name = shortPath(this.explorer, resultOf(other, direction).path);
      const textContent = `${i + 1}: ${direction === "backward" ? t("gradient of ") : ""}${name}`;
      return [element("option", { value: i, textContent, selected: i === position })];
    });
    byId("block-steps").replaceChildren(...options);
  }
}
