// @ts-check
// A form that chooses an entry of an array, and a value for it. It proposes the chosen number of the step.
import { button, byId, element, textInput } from "../drawing/page_elements.js";
import { numberText, shapeText } from "../drawing/number_texts.js";
import { placeText, unravel } from "../state/axes.js";
import { t } from "../words/text.js";

/**
 * @param {Explorer} explorer
 * @param {string} id
 * @param {string} action   the text of the button
 * @param {(step: Step, index: number, value: number) => void} act
 * @param {() => {step: Step, index: number}} proposal   what is proposed; without it the chosen number
 */
export function entryForm(explorer, id, action, act, proposal = () => chosenNumber(explorer)) {
  const path = textInput({ id: `${id}-path`, list: "paths", className: "wide" });
  const place = textInput({ id: `${id}-place`, size: 9 }),
    value = textInput({ id: `${id}-value`, size: 9 });
  const told = element("p", { className: "told" });
  const form = element(
    "form",
    { className: "controls" },
    element("label", {}, t("array "), path),
    element("label", {}, t("indices "), place),
    element("label", {}, t("value "), value),
    element("button", { textContent: action, className: "main" }),
    button(t("The chosen number of the step"), () => propose(chosenNumber(explorer))),
  );
  let proposed = "";

  const chosen = () => {
    const step = explorer.tape.names.get(path.value.trim());
    if (!step) return unknownText(path.value.trim(), [...explorer.tape.names.keys()]);
    const { shape } = step,
      texts = /** @type {string[]} */ (place.value.split(/[\s,;]+/).filter(Boolean)),
      indices = texts.map(Number);
    const fits = indices.every((i, axis) => Number.isInteger(i) && i >= 0 && i < shape[axis]);
    if (!fits || indices.length !== shape.length)
      return t("The array has the shape {shape}: write {count} indices, counted from 0.", {
        shape: shapeText(shape),
        count: shape.length,
      });
    return { step, index: indices.reduce((sum, i, axis) => sum * shape[axis] + i, 0) };
  };
  const tell = () => {
    const entry = chosen();
    told.textContent = typeof entry === "string" ? entry : entryText(explorer, entry);
    return entry;
  };
  /** @type {(step: Step, index: number) => void} */
  const write = (step, index) => {
    path.value = step.path;
    place.value = unravel(step.shape, index).join(", ");
    value.value = String(+step.data[index].toPrecision(6));
  };
  /** @param {{step: Step, index: number}} entry */
  const propose = ({ step, index }) => {
    write(step, index);
    tell();
    act0(false);
  };
  /** @param {boolean} isAsked */
  const act0 = (isAsked) => {
    const entry = tell(),
      { eager } = form.dataset; // without a value that the reader writes
    if (typeof entry === "string" || (!isAsked && !eager)) return;
    const written = Number(value.value.trim().replace("−", "-").replace(",", ".") || NaN),
      number = eager ? entry.step.data[entry.index] : written;
    if (!Number.isFinite(number))
      told.textContent = eager
        ? t("This entry is −∞: nudging it changes nothing. Choose another.")
        : t("Write a number as the value, such as 0.5.");
    else act(entry.step, entry.index, number);
  };
  form.addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    act0(true);
  });
  for (const input of [path, place]) input.addEventListener("change", () => tell());
  return {
    root: element("div", {}, form, told),
    form,
    chosen,
    /** Show an entry, as if the reader had written it. @type {(step: Step, index: number) => void} */
    show(step, index) {
      proposed = `${explorer.result.path} ${explorer.index}`;
      write(step, index);
      tell();
    },
    /** Propose an entry, once after each choice of a number. */
    render() {
      const now = `${explorer.result.path} ${explorer.index}`;
      if (now === proposed) tell();
      else propose(proposal());
      proposed = now;
      const list = byId("paths"),
        paths = new Set(explorer.tape.steps.map((step) => step.path));
      if (!list.childElementCount) list.append(...[...paths].map((value) => element("option", { value })));
    },
  };
}

/** @type {(explorer: Explorer, entry: {step: Step, index: number}) => string} */
function entryText({ session }, { step, index }) {
  return t("{path}, {place}: value {value}, gradient {gradient}.", {
    path: step.path,
    place: placeText(session, step, index),
    value: numberText(step.data[index]),
    gradient: numberText(step.grad[index]),
  });
}

/** @param {Explorer} explorer */
function chosenNumber({ result, index }) {
  return { step: result, index };
}

/**
 * Say that an array is unknown, and name some whose names contain what was written.
 * @param {string} text
 * @param {string[]} names
 */
function unknownText(text, names) {
  const near = text ? names.filter((name) => name.toLowerCase().includes(text.toLowerCase())) : [];
  if (!near.length) return t("There is no array named “{text}”: choose one of the list.", { text });
  const first = near.slice(0, 3);
  return near.length > 3
    ? t("There is no array named “{text}”. {count} names contain it: write one of them, such as {first}.", {
        text,
        count: near.length,
        first: first.join(", "),
      })
    : t("There is no array named “{text}”: write {first}.", { text, first: first.join(t(" or ")) });
}
