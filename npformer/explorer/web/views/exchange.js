// @ts-check
// Two fields in which the reader exchanges a token: one has the tokens, and one proposes the words that the
// model knows.
import { byId, element, textInput } from "../drawing/page_elements.js";
import { t } from "../words/text.js";

export class Exchange {
  /**
   * @param {Explorer} explorer
   * @param {"source" | "target"} side
   * @param {(place: number, id: number) => void} exchange   puts a word in the place of a token
   */
  constructor(explorer, side, exchange) {
    this.explorer = explorer;
    this.side = side;
    this.place = element("select");
    this.word = textInput({ size: 12, list: `${side}-words` });
    this.word.addEventListener("change", () => {
      const id = this.readWord();
      if (id < 0) return;
      this.word.value = "";
      exchange(this.place.selectedIndex, id);
    });
    const { task, ids } = explorer.session,
      of = task?.words[side === "source" || !ids?.source.length ? "input" : "output"];
    this.root = element(
      "p",
      { className: "controls" },
      element("label", {}, t("{of}: exchange ", { of }), this.place),
      element("label", {}, t("for a word that the model knows: "), this.word),
    );
  }

  /** Return the id of the typed word, or -1 and a message if the model does not know it. */
  readWord() {
    const { task } = this.explorer.session,
      typed = this.word.value,
      found = task?.tokenId(this.side, typed) ?? -1,
      near = found < 0 ? (task?.similar(this.side, typed) ?? []).filter(Boolean) : [];
    const advice = near.length ? t(": try {near}.", { near: near.join(t(", ")) }) : t(".");
    byId("message").textContent =
      found < 0 ? t("The model does not know “{typed}”", { typed }) + advice : "";
    return found;
  }

  /** Show the tokens; of as many as before, the same one stays chosen. @param {string[]} tokens */
  show(tokens) {
    const { place } = this,
      last = tokens.findLastIndex((token) => /^[^<]*[\p{L}\p{N}]/u.test(token)),
      chosen = place.length === tokens.length ? place.selectedIndex : last;
    place.replaceChildren(...tokens.map((token, value) => element("option", { value, textContent: token })));
    place.selectedIndex = chosen;
  }
}
