// @ts-check
// The keys that work everywhere on the page.
import { byId } from "../drawing/page_elements.js";

/**
 * @param {Explorer} explorer
 * @param {{draw: () => void}} write   writes a token
 * @param {{shrink: () => void}} overview
 */
export function listenToKeys(explorer, write, overview) {
  // a button that was clicked keeps the focus, but the next press of Space means the next step
  let wasPointer = false;
  addEventListener("pointerdown", () => (wasPointer = true), true);
  addEventListener("keydown", (event) => {
    if (event.key === "Tab") wasPointer = false;
    const target = /** @type {HTMLElement} */ (event.target);
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName);
    const isControl = /^(BUTTON|SUMMARY|A)$/.test(target.tagName) || target.getAttribute("role") === "button";
    const isOpen = document.querySelector("dialog[open]") !== null;
    if (event.key === "Escape" && !isOpen) leave(explorer, overview);
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey || isOpen) return;
    if (event.key === " " && (!isControl || wasPointer)) {
      event.preventDefault();
      if (isControl) target.blur();
      if (explorer.view === "overview") {
        if (explorer.session.isLive) write.draw();
        return;
      }
      explorer.view = "steps";
      explorer.move(event.shiftKey ? -1 : 1);
    } else if (event.key === "b" || event.key === "f") {
      explorer.setDirection(event.key === "b" ? "backward" : "forward");
    } else if (event.key === "p" || event.key === "l") {
      byId(event.key === "p" ? "large" : "copy-link").click();
    }
  });
}

/**
 * Leave the projector view, or close what is open; a block that grew out of the model shrinks back into it.
 * @type {(explorer: Explorer, overview: {shrink: () => void}) => void}
 */
function leave(explorer, overview) {
  if (explorer.isLarge) byId("large").click();
  else if (byId("loss-box").open) byId("loss-box").open = false;
  else if (!byId("sentence-form").hidden) byId("open-form").click();
  else if (explorer.view !== "steps") return;
  else if (explorer.memory.grown) overview.shrink();
  else if (explorer.isPinned) {
    explorer.isPinned = false;
    explorer.changed();
  }
}
