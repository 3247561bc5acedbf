// @ts-check
// Small helpers with which the views make and find elements of the page.
import { t } from "../words/text.js";

const SETTLED = 500; // ms after which a reader stays with a choice

/**
 * Return the element with an id.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Make an element. The properties are those of the element; "aria-..." and "data-..." become attributes, and
 * "styles" is an object of styles, since the page's policy forbids style attributes in its markup.
 * @param {string} tag
 * @param {Record<string, any>} properties
 * @param {(Node | string)[]} children
 * @returns {any}
 */
export function element(tag, properties = {}, ...children) {
  const made = /** @type {any} */ (document.createElement(tag));
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined) continue;
    if (name === "styles") Object.assign(made.style, value);
    else if (/^(aria-|data-|role$|for$|list$)/.test(name)) made.setAttribute(name, String(value));
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

/**
 * Open the dialog, with a button that closes it.
 * @param {string} title   also its name for screen readers
 * @param {Node[]} children
 */
export function openDialog(title, ...children) {
  const dialog = byId("dialog"),
    close = button(t("Close"), () => dialog.close(), { className: "plain" });
  dialog.setAttribute("aria-label", title);
  dialog.replaceChildren(element("h2", {}, title), ...children, close);
  dialog.showModal();
  return dialog;
}

/** Say in a corner of the page what happened; screen readers read it. @param {string} text */
export function say(text) {
  byId("said").replaceChildren(element("span", {}, text)); // a new one, which fades after some seconds
}

/**
 * Write a text into a region of the page that screen readers read: of texts that follow each other quickly,
 * as when a key goes through a list, only the last one.
 * @type {(region: any, text: string) => void}
 */
export function tell(region, text) {
  if (region.textContent === text) return;
  Object.assign(region, { ariaLive: "off", textContent: text });
  setTimeout(() => {
    if (region.textContent === text) Object.assign(region, { ariaLive: "polite", textContent: text });
  }, SETTLED);
}

/**
 * Make a button.
 * @param {string} text
 * @param {() => void} onclick
 * @param {Record<string, any>} properties
 */
export function button(text, onclick, properties = {}) {
  return element("button", { type: "button", textContent: text, onclick, ...properties });
}

/**
 * Make a field in which the reader writes, and the browser nothing.
 * @param {Record<string, any>} properties
 */
export function textInput(properties) {
  return element("input", { autocomplete: "off", spellcheck: false, ...properties });
}

/**
 * Make a name that leads to what it names, or the name alone where nothing is known to lead to.
 * @param {string} name
 * @param {(() => void) | null | undefined} follow
 * @param {string} title   what the reader will see
 */
export function follower(name, follow, title) {
  return follow ? button(name, follow, { className: "follow", title }) : element("span", {}, name);
}

/**
 * Make a bar that begins in the middle: to the right for a number above 0, to the left below.
 * @param {number} part   of half the width
 */
export function signedBar(part) {
  const styles = { width: `${50 * Math.min(1, Math.abs(part))}%`, [part < 0 ? "right" : "left"]: "50%" },
    className = part < 0 ? "negative" : "positive";
  return element("span", { className: "bar" }, element("i", { className, styles }));
}

/**
 * Make a group of buttons of which one is chosen.
 * @template T
 * @param {string} label
 * @param {[T, string][]} choices   pairs of a value and its text
 * @param {T} chosen
 * @param {(value: T) => void} choose
 */
export function choice(label, choices, chosen, choose) {
  const buttons = choices.map(([value, text]) =>
    button(text, () => choose(value), { "aria-pressed": value === chosen, "data-choice": String(value) }),
  );
  return element("div", { className: "choice", role: "group", "aria-label": label }, ...buttons);
}

/**
 * Make a table. The first cell of each row is its header.
 * @param {string[]} head   the names of the columns; none for a table without them
 * @param {(Node | string)[][]} rows
 * @param {{caption?: string, className?: string}} options
 */
export function table(head, rows, { caption = "", className = "" } = {}) {
  const headCell = (/** @type {string} */ textContent) =>
    textContent ? element("th", { textContent, scope: "col" }) : element("td");
  const cell = (/** @type {Node | string} */ content, /** @type {number} */ i) =>
    i ? element("td", {}, content) : element("th", { scope: "row" }, content);
  return element(
    "table",
    { className },
    ...(caption ? [element("caption", { textContent: caption })] : []),
    ...(head.length ? [element("thead", {}, element("tr", {}, ...head.map(headCell)))] : []),
    element("tbody", {}, ...rows.map((cells) => element("tr", {}, ...cells.map(cell)))),
  );
}

/** @type {Record<string, [number, number]>} the rows and the columns by which a key goes on */
export const ARROWS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

/** Make the buttons of a table one stop of the key Tab; arrow keys go between them. @param {any} region */
function walkTable(region) {
  const cells = [...region.querySelectorAll("td > button")],
    first = cells.find((cell) => cell.matches(".important")) ?? cells[0];
  if (!first) return;
  const stop = (/** @type {EventTarget | null} */ at) => {
    for (const cell of cells) cell.tabIndex = cell === at ? 0 : -1;
  };
  stop(first);
  region.tabIndex = -1;
  region.ariaLabel += t(": arrow keys go from cell to cell");
  region.addEventListener("focusin", (/** @type {FocusEvent} */ event) => stop(event.target));
  region.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const [down, right] = ARROWS[event.key] ?? [],
      cell = /** @type {any} */ (event.target).closest("td");
    if (down === undefined || !cell) return;
    event.preventDefault();
    const row = cell.closest("table").rows[cell.parentElement.rowIndex + down];
    row?.cells[cell.cellIndex + right]?.querySelector("button")?.focus();
  });
}

/** Where the reader left each region that scrolls, by its label. @type {Map<string, number>} */
const LEFT = new Map();

/**
 * Make a region that is scrolled sideways by a finger, the arrow keys or the buttons at its edges,
 * which show that there is more. The names of the rows of a table stay. At first, what has the class
 * "important" is in view; later, what the reader scrolled to.
 * @param {string} label
 * @param {Node[]} children
 */
export function scroller(label, ...children) {
  const properties = { className: "scroller", tabIndex: 0, role: "region", "aria-label": label },
    region = element("div", properties, ...children);
  walkTable(region);
  const edge = (/** @type {string} */ text, /** @type {number} */ sign) =>
    button(text, () => region.scrollBy({ left: 0.7 * sign * region.clientWidth }), {
      tabIndex: -1, // the keyboard has the arrow keys
      className: `edge ${sign < 0 ? "to-left" : "to-right"}`,
      "aria-hidden": true,
    });
  const frame = element("div", { className: "wide-table" }, edge("‹", -1), region, edge("›", 1));
  const look = () => {
    frame.classList.toggle("more-left", region.scrollLeft > 1);
    frame.classList.toggle("more-right", region.scrollLeft + region.clientWidth < region.scrollWidth - 1);
  };
  const begin = () => {
    const important = region.querySelector(".important");
    const beyond = important?.getBoundingClientRect().right - region.getBoundingClientRect().right + 40;
    region.scrollLeft = LEFT.get(label) ?? region.scrollLeft + Math.max(0, beyond || 0);
    look();
  };
  region.addEventListener("scroll", () => {
    LEFT.set(label, region.scrollLeft);
    look();
  });
  new ResizeObserver(begin).observe(region); // at first when it is drawn
  return frame;
}

/**
 * Replace the content of an element without losing the keyboard's focus: the focused element is found again
 * by its text or label.
 * @param {HTMLElement} parent
 * @param {(Node | string)[]} children
 */
export function replaceContent(parent, ...children) {
  const focused = parent.contains(document.activeElement)
    ? /** @type {any} */ (document.activeElement)
    : null;
  const key = focused && focused !== parent ? keyOf(focused) : null;
  const start = focused?.selectionStart;
  parent.replaceChildren(...children);
  if (!key) return;
  const again = [...parent.querySelectorAll("button, input, select, summary, [tabindex]")].find(
    (e) => keyOf(e) === key,
  );
  if (!again) return;
  /** @type {any} */ (again).focus({ preventScroll: true });
  if (typeof start === "number" && "setSelectionRange" in again)
    /** @type {any} */ (again).setSelectionRange(start, start);
}

/** @param {Element} e */
function keyOf(e) {
  if (e.id) return e.id;
  return `${e.tagName} ${e.getAttribute("aria-label") ?? ""} ${e.textContent}`;
}
