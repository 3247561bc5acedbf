// The keyboard reaches what scrolls.
"use strict";

function mend() {
  for (const part of document.querySelectorAll("pre, math[display=block], .table-wrapper")) {
    if (!(part instanceof HTMLElement || part instanceof MathMLElement)) continue;
    if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
    else part.removeAttribute("tabindex");
  }
}

document.addEventListener("DOMContentLoaded", mend);
document.addEventListener("toggle", mend, true); // an unfolded part
window.addEventListener("resize", mend);
