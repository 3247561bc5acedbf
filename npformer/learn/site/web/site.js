// @ts-check
// What the pages of the site do: light or dark, folded exercises that are linked, and keys for what scrolls.

const THEME = "npformer-theme";

/**
 * Return the stored choice of the reader: "light", "dark", or "" for that of the system.
 * @returns {string}
 */
function storedTheme() {
  try {
    return localStorage.getItem(THEME) ?? "";
  } catch {
    return ""; // some browsers store nothing for files
  }
}

/**
 * Show the page in light or dark colours.
 * @param {string} theme
 */
function showTheme(theme) {
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

/**
 * Store the choice of the reader for all pages.
 * @param {string} theme
 */
function storeTheme(theme) {
  try {
    if (theme) localStorage.setItem(THEME, theme);
    else localStorage.removeItem(THEME);
  } catch {
    // the choice then holds for this page only
  }
}

/** Unfold the element to which the address leads. */
function unfoldTarget() {
  const target = document.querySelector(":target"); // an address may be no text, such as #%
  if (target instanceof HTMLDetailsElement) target.open = true;
}

/** Let the keyboard reach every part that scrolls, and only those. */
function reachScrollers() {
  for (const part of document.querySelectorAll("pre, .scroll, math[display=block]")) {
    if (part.scrollWidth > part.clientWidth) part.setAttribute("tabindex", "0");
    else part.removeAttribute("tabindex");
  }
}

/** Show the present lesson in the list of the course, which scrolls by itself on a wide page. */
function showPresentLesson() {
  const course = document.querySelector(".course"),
    present = /** @type {HTMLElement | null} */ (document.querySelector(".course [aria-current]"));
  if (!course || !present || course.scrollHeight <= course.clientHeight) return;
  course.scrollTop = present.getBoundingClientRect().top - course.getBoundingClientRect().top - 120;
}

showTheme(storedTheme()); // before anything is drawn
document.addEventListener("DOMContentLoaded", () => {
  const choice = /** @type {HTMLSelectElement} */ (document.getElementById("theme"));
  choice.value = storedTheme();
  choice.addEventListener("change", () => {
    showTheme(choice.value);
    storeTheme(choice.value);
  });
  unfoldTarget();
  showPresentLesson();
  reachScrollers();
  addEventListener("hashchange", unfoldTarget);
  addEventListener("resize", reachScrollers);
  document.addEventListener("toggle", reachScrollers, true); // what was folded has no size
});
