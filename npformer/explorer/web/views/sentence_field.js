// @ts-check
// A field that shows a whole sentence in as many lines as it needs, and which of its words were exchanged.
import { byId } from "../drawing/page_elements.js";
import { detokenize, tokenize } from "../state/tokenize.js";
import { Exchange } from "./exchange.js";
import { t } from "../words/text.js";

/**
 * Return a field of the page, in which Enter does what the button of its form does, and put the fields below
 * its form in which one of its tokens is exchanged.
 * @type {(explorer: import("../state/explorer.js").Explorer, id: string, side: "source" | "target") => any}
 */
export function sentenceField(explorer, id, side) {
  const field = byId(id),
    rules = explorer.session.head.tokenization?.[side],
    tokens = () => tokenize(field.value, rules);
  field.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault(); // a sentence is one line
    field.form.requestSubmit();
  });
  if (!rules) return field; // the characters of a text need no list
  const fields = new Exchange(explorer, side, (place, id) => {
    const word = explorer.session.head[`${side}_words`][id];
    field.value = detokenize(tokens().map((token, i) => (i === place ? word : token)));
    for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind));
  });
  field.addEventListener("input", () => fields.show(tokens()));
  field.form.after(fields.root);
  return field;
}

/**
 * Return the words that another text of as many words has in place of others.
 * @type {(before: string, after: string) => [string, string][]}
 */
export function exchangedPairs(before, after) {
  const [old, now] = [before, after].map((text) => text.trim().split(/\s+/));
  if (old.length !== now.length) return [];
  return old.flatMap((word, i) => (word === now[i] ? [] : [[word, now[i]]]));
}

/** Name these words: "“il” becomes “elle”. " @type {(before: string, after: string) => string} */
export function exchangedWords(before, after) {
  const texts = exchangedPairs(before, after).map(([word, other]) =>
    t("“{word}” becomes “{other}”. ", { word, other }),
  );
  return texts.join("");
}
