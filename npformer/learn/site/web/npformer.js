// The keyboard reaches what scrolls, and those who listen to a page hear what its parts are.
"use strict";

function mend() {
  for (const part of document.querySelectorAll("pre, math[display=block], .table-wrapper")) {
    if (!(part instanceof HTMLElement || part instanceof MathMLElement)) continue;
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
  for (const part of document.querySelectorAll(".sig dl, .sig dl > dd")) part.setAttribute("role", "none");
}

document.addEventListener("DOMContentLoaded", mend);
document.addEventListener("toggle", mend, true); // an unfolded part
window.addEventListener("resize", mend);
