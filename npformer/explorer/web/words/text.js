// @ts-check
// The words of the page. The modules write them in English, as t("English text"), and the page carries their
// translations by their English texts, a catalogue. Its address may choose a language, as in ?language=en.

const LANGUAGE = /[?&]language=([\w-]+)/.exec(location.search)?.[1] ?? document.documentElement.lang,
  messages = document.getElementById("messages");
/** @type {Record<string, string>} */
const CATALOGUE = JSON.parse((LANGUAGE !== "en" && messages?.textContent) || "{}");
const SPACE = /(?<=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef]) (?=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef])/g;

/**
 * Return a text in the language of the page. Names in braces are replaced by values:
 * t("{count} tokens", { count: 3 }) is "3 tokens".
 * @param {string} english
 * @param {Record<string, any>} values
 */
export function t(english, values = {}) {
  const said = (/** @type {string} */ text) =>
    text.replace(/\{(\w+)\}/g, (braces, name) => (name in values ? String(values[name]) : braces));
  // spaces enclose values, which are mostly Latin
  return english in CATALOGUE ? said(CATALOGUE[english]).replace(SPACE, "") : said(english);
}

/**
 * Return a text with a count: that of one, or that of many.
 * @type {(count: number, one: string, many: string) => string}
 */
export function counted(count, one, many) {
  return (count === 1 ? one : many).replace("{count}", String(count));
}

/** Translate the words of the page: its title and its texts, and the names that screen readers read. */
export function translatePage() {
  document.title = document.title.replace("npformer explorer", t("npformer explorer"));
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

/** Show the link to the other language, unless the page has no catalogue or, in a notebook, no address. */
export function offerLanguage() {
  const link = /** @type {any} */ (document.getElementById("language")),
    [own, other] = LANGUAGE === "en" ? ["en", messages?.lang ?? "en"] : [messages?.lang ?? "en", "en"];
  document.documentElement.lang = own;
  link.lang = other;
  link.href = `?language=${other}`;
  link.textContent = new Intl.DisplayNames(other, { type: "language" }).of(other.slice(0, 2));
  link.hidden = location.protocol === "about:" || messages?.textContent === "{}";
}
