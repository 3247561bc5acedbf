// @ts-check
// The list of the changes, each with a button that removes it.
import { button, element, replaceContent } from "../drawing/page_elements.js";
import { sublayersOf } from "./attention_maps.js";
import { numberText } from "../drawing/number_texts.js";
import { counted, t } from "../words/text.js";

const MOST_LISTED = 4; // values of an array

/** What a change says of its entries, by its kind. @type {Record<string, (list: any[]) => string>} */
const TEXTS = {
  heads: (list) => t("head {list} off", { list: list.join(t(", ")) }),
  masks: (list) =>
    counted(list.length, t("{count} cell of the mask set"), t("{count} cells of the mask set")),
  values: (list) => {
    if (/** @type {any} */ (list).from) return t("taken from another sentence");
    if (list.length > MOST_LISTED) return t("{count} entries set", { count: list.length });
    return list
      .map(([index, value]) => t("entry {index} = {value}", { index, value: numberText(value) }))
      .join(t(", "));
  },
  dropout: (list) => counted(list.length, t("{count} entry dropped"), t("{count} entries dropped")),
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
    const titles = new Map(sublayersOf(this.explorer).map(({ name, title }) => [name, title]));
    const items = Object.entries(TEXTS).flatMap(([kind, text]) =>
      Object.entries(edits[kind] ?? {}).map(([path, list]) =>
        this.item(`${titles.get(path) ?? path}${t(": ")}${text(/** @type {any[]} */ (list))} `, path, () =>
          session.setEdits(/** @type {any} */ (kind), path, null),
        ),
      ),
    );
    if (edits.settings)
      items.push(
        this.item(
          t("Activation: {activation} instead of {own} ", {
            activation: session.activation,
            own: session.config.activation,
          }),
          "activation",
          () => session.setActivation(session.config.activation),
        ),
      );
    const removeAll = () => this.act(() => (session.edits = {}));
    replaceContent(
      this.root,
      items.length ? element("ul", {}, ...items) : element("p", { textContent: t("Nothing is changed.") }),
      button(t("Remove all changes"), removeAll, { disabled: !items.length }),
    );
  }

  /**
   * @param {string} text
   * @param {string} name   of what is changed
   * @param {() => void} remove
   */
  item(text, name, remove) {
    const act = () => this.act(remove),
      label = t("Remove the change of {name}", { name });
    return element("li", {}, text, button(t("Remove"), act, { "aria-label": label }));
  }

  /** Recompute, and move the focus from the button, which is gone, to the list. @param {() => void} remove */
  act(remove) {
    remove();
    this.explorer.recompute();
    this.root.focus({ preventScroll: true });
  }
}
