// @ts-check
// The words of the page. Each of them stands in the modules in English, as t("English text"), so that a page
// in another language needs nothing but a catalogue: an object of translations by their English texts.

/** @type {Record<string, string>} */
const CATALOGUE = JSON.parse(document.getElementById("messages")?.textContent || "{}");

/**
 * Return a text in the language of the page. Names in braces are replaced by values:
 * t("{count} tokens", { count: 3 }) is "3 tokens".
 * @param {string} english
 * @param {Record<string, any>} values
 */
export function t(english, values = {}) {
  const text = CATALOGUE[english] ?? english;
  return text.replace(/\{(\w+)\}/g, (braces, name) => (name in values ? String(values[name]) : braces));
}

/**
 * Return a text with a count: that of one, or that of many.
 * @type {(count: number, one: string, many: string) => string}
 */
export function counted(count, one, many) {
  return (count === 1 ? one : many).replace("{count}", String(count));
}

/** Translate the words of the body of the page: its texts, and the names that screen readers read. */
export function translateBody() {
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const { parentElement: parent, textContent } = texts.currentNode,
      text = textContent?.trim();
    if (text && parent?.tagName !== "SCRIPT")
      texts.currentNode.textContent = String(textContent).replace(text, t(text));
  }
  for (const name of ["aria-label", "title"]) {
    for (const each of document.querySelectorAll(`[${name}]`))
      each.setAttribute(name, t(each.getAttribute(name) ?? ""));
  }
}
