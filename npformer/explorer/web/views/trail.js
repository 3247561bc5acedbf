// @ts-check
// The trail of what was followed. The browser's Back and Forward walk it, and the buttons of the page do,
// also where it has no history: in a frame, or in a file.
import { button, byId, element, replaceContent } from "../drawing/page_elements.js";
import { clip } from "../drawing/draw_grids.js";
import { placeText } from "../state/axes.js";
import { addressOf, showPlace } from "../state/address.js";
import { shortPath } from "./arithmetic_view.js";
import { t } from "../words/text.js";

const SHOWN_PLACES = 4;

export class Trail {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.load = performance.timeOrigin; // tells the entries of the history from those of an earlier page
    /** @type {{address: string, name: string}[]} */
    this.places = [];
    this.at = 0;
    this.hasHistory = true;
    addEventListener("popstate", ({ state }) => {
      if (state?.load === this.load) this.walk(state.at);
      else if (state) location.reload();
    });
  }

  /** Write the place into the address. If the reader has left another one, Back leads there. */
  save() {
    const { explorer, places } = this,
      address = addressOf(explorer);
    const isNew = explorer.isLeaving && places.length > 0 && places[this.at].address !== address;
    explorer.isLeaving = false;
    if (isNew) places.length = ++this.at;
    places[this.at] = { address, name: this.nameOfPlace() };
    try {
      const state = { load: this.load, at: this.at };
      history[isNew ? "pushState" : "replaceState"](state, "", `#${address}`);
    } catch {
      this.hasHistory = false; // the page has no address of its own
    }
  }

  nameOfPlace() {
    const { session, view, result, index, direction } = this.explorer;
    if (view !== "steps") return document.querySelector("#views [aria-pressed=true]")?.textContent ?? view;
    const name = `${shortPath(this.explorer, result.path)} ${placeText(session, result, index)}`;
    return direction === "backward" ? t("gradient of ") + name : name;
  }

  /** @param {number} at */
  walk(at) {
    this.at = at;
    showPlace(this.explorer, new URLSearchParams(this.places[at].address));
    this.explorer.changed();
  }

  render() {
    this.save();
    const first = Math.max(0, Math.min(this.at - 2, this.places.length - SHOWN_PLACES));
    byId("trail").hidden = this.places.length < 2;
    const places = this.places.slice(first, first + SHOWN_PLACES).map(({ name }, i) => {
      const at = first + i,
        go = () => (this.hasHistory ? history.go(at - this.at) : this.walk(at));
      return at === this.at
        ? element("b", { textContent: name, "aria-current": "true" })
        : button(clip(name, 60), go, { className: "follow" });
    });
    replaceContent(byId("trail"), t("Trail: "), ...places);
  }
}
