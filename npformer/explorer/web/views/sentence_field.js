// @ts-check
// A field that shows a whole sentence in as many lines as it needs, and which of its words were exchanged.
import { button, byId } from "../drawing/page_elements.js";
import { t } from "../words/text.js";

/**
 * Return a field of the page, in which Enter does what the button of its form does.
 * @param {string} id
 */
export function sentenceField(id) {
  const field = byId(id);
  field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault(); // a sentence is one line
    field.form.requestSubmit();
  });
  return field;
}

/**
 * Make a button that writes a word into a field, in place of the word at its cursor, and folds the words.
 * @type {(word: string, field: any, words: any) => any}
 */
export function wordButton(word, field, words) {
  const write = () => {
    const { value, selectionStart: at } = field,
      [before, after] = [value.lastIndexOf(" ", at - 1), value.indexOf(" ", at)];
    field.setRangeText(word, before + 1, after < 0 ? value.length : after, "end");
    field.dispatchEvent(new Event("input"));
    words.open = false;
  };
  return button(word, write, { tabIndex: -1 }); // the keyboard has the field
}

/**
 * Return a sentence that names the words which another text has in place of some: "“il” becomes “elle”. "
 * @param {string} before
 * @param {string} after
 */
export function exchangedWords(before, after) {
  const [old, now] = [before, after].map((text) => text.trim().split(/\s+/));
  if (old.length !== now.length) return "";
  const texts = old.map((word, i) => t("“{word}” becomes “{other}”. ", { word, other: now[i] }));
  return texts.filter((_, i) => old[i] !== now[i]).join("");
}
