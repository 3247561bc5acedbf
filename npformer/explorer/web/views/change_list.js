// @ts-check
// The list of the changes, each with a button that removes it.
import { button, element, replaceContent } from "../drawing/page_elements.js";
import { sublayersOf } from "./attention_maps.js";
import { numberText } from "../drawing/number_texts.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */

/** What a change says of its entries, by its kind. @type {Record<string, (list: any[]) => string>} */
const TEXTS = {
  heads: (list) => `head ${list.join(", ")} off`,
  masks: (list) => `${list.length} cells of the mask set`,
  values: (list) => list.map(([index, value]) => `entry ${index} = ${numberText(value)}`).join(", "),
  dropout: (list) => `${list.length} entries dropped`,
};

export class ChangeList {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.root = element("div", { tabIndex: -1 });
  }

  render() {
    const { session } = this.explorer,
      { edits } = session;
    const titles = new Map(sublayersOf(this.explorer).map((each) => [each.name, titleOf(each)]));
    const items = Object.entries(TEXTS).flatMap(([kind, text]) =>
      Object.entries(edits[kind] ?? {}).map(([path, list]) =>
        this.item(`${titles.get(path) ?? path}: ${text(/** @type {any[]} */ (list))} `, path, () =>
          session.setEdits(/** @type {any} */ (kind), path, null),
        ),
      ),
    );
    if (edits.settings)
      items.push(
        this.item(
          `Activation: ${session.activation} in place of ${session.config.activation} `,
          "activation",
          () => session.setActivation(session.config.activation),
        ),
      );
    replaceContent(
      this.root,
      items.length ? element("ul", {}, ...items) : element("p", { textContent: "Nothing is changed." }),
      element("div", { className: "controls" }, ...this.buttons(items.length)),
    );
  }

  /**
   * @param {string} text
   * @param {string} name   of what is changed
   * @param {() => void} remove
   */
  item(text, name, remove) {
    const act = () => {
      remove();
      this.removed();
    };
    return element("li", {}, text, button("Remove", act, { "aria-label": `Remove the change of ${name}` }));
  }

  /** Recompute, and move the focus from the button, which is gone, to the list. */
  removed() {
    this.explorer.recompute();
    this.root.focus({ preventScroll: true });
  }

  /** @param {number} count   of the changes */
  buttons(count) {
    const { explorer } = this,
      { session } = explorer;
    const remove = () => {
      session.edits = {};
      this.removed();
    };
    const compare = () => {
      session.setBaseline();
      explorer.changed();
    };
    return [
      button("Remove all changes", remove, { disabled: !count }),
      button("Compare with the present state", compare),
    ];
  }
}

/** @param {import("./attention_maps.js").Sublayer} sublayer */
export function titleOf({ kind, layer }) {
  return `${kind}, layer ${layer}`;
}
