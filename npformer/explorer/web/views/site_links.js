// @ts-check
// Links to the site that contains the page: its lessons, and the page that introduces the explorer.
import { element } from "../drawing/page_elements.js";

/**
 * Return the name of a lesson, which is a link where the page belongs to a site with this lesson.
 * @param {Explorer} explorer
 * @param {string} file   the file of the lesson, such as "05_1_scaled_dot_product_attention.py"
 * @returns {HTMLElement | string}
 */
export function lessonName(explorer, file) {
  const address = explorer.session.head.site?.lessons[file],
    name = file.replace(/\.py$/, "");
  return address ? outward(address, name) : name;
}

/**
 * Make the name of the program in the head of the page a link to the site, if there is one.
 * @param {Explorer} explorer
 */
export function linkHome(explorer) {
  const home = explorer.session.head.site?.home,
    brand = document.querySelector(".brand");
  if (home && brand) brand.replaceChildren(outward(home, "npformer"));
}

/**
 * Make a link that leaves the explorer, also out of a frame.
 * @type {(address: string, text: string) => any}
 */
function outward(address, text) {
  return element("a", { href: address, target: "_top", textContent: text });
}
