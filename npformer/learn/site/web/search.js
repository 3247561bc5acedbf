// The page of the search: the form, the list of results, and the keys.
"use strict";

const WAIT = 150; // milliseconds after a key, before the search runs
const MOST = 20; // results

/**
 * Return an element of the page.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 */
function element(id, kind) {
  const found = document.getElementById(id);
  if (!(found instanceof kind)) throw new Error(`the page has no ${id}`);
  return found;
}

/**
 * @param {Result} result
 * @param {string} section   its name in the language of the page
 */
function itemOf(result, section) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = result.path + (result.id ? `#${result.id}` : "");
  link.textContent = result.title;
  const place = document.createElement("span");
  place.className = "place";
  const heading = result.heading && !result.title.includes(result.heading) ? ` › ${result.heading}` : "";
  place.textContent = `${section}${heading}`;
  const snippet = document.createElement("p");
  for (const [text, hit] of result.snippet) {
    const piece = document.createElement(hit ? "mark" : "span");
    piece.textContent = text;
    snippet.append(piece);
  }
  item.append(link, place, snippet);
  return item;
}

/**
 * Return the sentence that is read aloud after a search.
 * @param {string} question
 * @param {number} count   of the results
 * @param {DOMStringMap} sentences
 */
function statusOf(question, count, sentences) {
  if (!question.trim()) return "";
  const { none, one, many, best } = sentences;
  const sentence = count === MOST ? best : [none, one][count] ?? many;
  return (sentence ?? "").replace("{count}", String(count)).replace("{question}", () => question);
}

function start() {
  const input = element("search-query", HTMLInputElement);
  const list = element("search-results", HTMLOListElement);
  const status = element("search-status", HTMLElement);
  const index = /** @type {Index} */ (SEARCH_INDEX),
    searcher = new Searcher(index);
  let timer = 0;

  function show() {
    const results = input.value.trim() ? searcher.search(input.value, MOST) : [];
    list.replaceChildren(...results.map((result) => itemOf(result, index.names[result.section])));
    status.textContent = statusOf(input.value, results.length, list.dataset);
    remember(input.value);
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = window.setTimeout(show, WAIT);
  });
  input.form?.addEventListener("submit", (event) => {
    event.preventDefault();
    clearTimeout(timer);
    show();
  });
  document.addEventListener("keydown", (event) => move(event, input, list));
  input.value = new URLSearchParams(location.search).get("q") ?? "";
  show();
  if (!input.value) input.focus();
}

/**
 * Write the question into the address, so that it can be kept and shared.
 * @param {string} question
 */
function remember(question) {
  try {
    const address = question.trim() ? `?q=${encodeURIComponent(question)}` : location.pathname;
    history.replaceState(null, "", address);
  } catch {
    // some browsers do not change the address of a page that is opened from a folder
  }
}

/**
 * Move from result to result with the arrow keys. The arrow up leads from the first result to the input.
 * @param {KeyboardEvent} event
 * @param {HTMLInputElement} input
 * @param {HTMLOListElement} list
 */
function move(event, input, list) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (step === undefined || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  /** @type {HTMLElement[]} */
  const stops = [input, ...list.querySelectorAll("a")];
  const now = stops.findIndex((stop) => stop === document.activeElement);
  if (now === -1) return;
  event.preventDefault();
  stops[Math.min(Math.max(now + step, 0), stops.length - 1)].focus();
}

start();
