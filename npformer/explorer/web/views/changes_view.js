// @ts-check
// What if: heads off, another mask, other tokens, other values, dropout; and what follows, before and after.
import { button, byId, choice, element, replaceContent } from "../drawing/page_elements.js";
import { sublayersOf } from "./attention_maps.js";
import { MaskEditor } from "./mask_editor.js";
import { comparison } from "./probability_table.js";
import { dropoutPlaces } from "./dropout_places.js";
import { entryForm } from "./entry_form.js";
import { ChangeList, titleOf } from "./change_list.js";
import { similarActivations } from "../engine/activations.js";
import { renderTokens } from "./token_inputs.js";
import { numberText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */

export class ChangesView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.root = byId("changes");
    if (!explorer.session.isLive) return;
    const part = (
      /** @type {string} */ title,
      /** @type {string} */ text,
      /** @type {Node[]} */ ...children
    ) =>
      element(
        "section",
        { "aria-label": title },
        element("h3", { textContent: title }),
        element("p", { textContent: text }),
        ...children,
      );
    this.heads = element("div");
    this.masks = element("div", { className: "controls" });
    this.tokens = element("div");
    this.dropout = element("div", { className: "controls" });
    this.activation = element("div", { className: "controls" });
    this.list = new ChangeList(explorer);
    this.result = element("div", { "aria-live": "polite" });
    this.line = button("", () => this.showResult(), { className: "loss-line" });
    this.mask = new MaskEditor(explorer, () => this.sublayer);
    this.entry = entryForm(explorer, "value-of", t("Set this value"), (step, index, value) =>
      this.setValue(step.path, index, value),
    );
    this.root.append(
      element(
        "div",
        { className: "beside" },
        element(
          "div",
          {},
          part(t("Heads"), t("Switch a head off: its output becomes 0."), this.heads),
          part(t("Activation"), t("Replace the activation of all feed-forward networks."), this.activation),
          part(t("Tokens"), t("Replace a token by another of the vocabulary."), this.tokens),
          part(
            t("A value"),
            t("Set any entry of any array. The chosen number of the step is proposed."),
            this.entry.root,
          ),
          part(t("Dropout"), t("Drop entries at random, as in training."), this.dropout),
          part(
            t("Mask"),
            t("Blue cells are allowed: the query (row) may attend to the key (column)."),
            this.masks,
            this.mask.root,
          ),
        ),
        element(
          "div",
          { className: "result" },
          element("h3", { textContent: t("Before and after") }),
          this.list.root,
          this.result,
        ),
      ),
      this.line,
    );
  }

  get sublayer() {
    const sublayers = sublayersOf(this.explorer);
    return (
      sublayers.find(({ name }) => name === this.explorer.memory.shared?.mask) ??
      sublayers[sublayers.length - 1]
    );
  }

  render() {
    if (!this.explorer.session.isLive) return;
    this.renderHeads();
    this.renderActivation();
    renderTokens(this.explorer, this.tokens);
    this.renderDropout();
    this.renderMask();
    this.list?.render();
    this.entry?.render();
    this.renderLine();
    replaceContent(this.result, comparison(this.explorer, this.explorer.session.before));
  }

  /** Write the line that stays in view where the comparison does not. */
  renderLine() {
    const { before, loss, output } = this.explorer.session,
      values = { before: numberText(before.loss), loss: numberText(loss) };
    this.line.textContent =
      output === before.output
        ? t("Loss {before} → {loss}, the same output", values)
        : t("Loss {before} → {loss}, another output", values);
  }

  showResult() {
    this.result.scrollIntoView({ block: "nearest" });
  }

  renderHeads() {
    const { explorer } = this,
      { session } = explorer;
    const rows = sublayersOf(explorer).map((sublayer) => {
      const { name } = sublayer,
        off = session.edits.heads?.[name] ?? [],
        title = titleOf(sublayer);
      const buttons = Array.from({ length: session.config.n_heads }, (_, head) => {
        const isOff = off.includes(head);
        return button(
          String(head),
          () => {
            session.setEdits(
              "heads",
              name,
              isOff ? off.filter((/** @type {number} */ one) => one !== head) : [...off, head],
            );
            explorer.recompute();
          },
          {
            "aria-pressed": !isOff,
            "aria-label": t("{title}, head {head}", { title, head }),
            title: isOff ? t("off") : t("on"),
          },
        );
      });
      return element(
        "div",
        { className: "row" },
        element("span", { textContent: title }),
        element("span", { className: "choice" }, ...buttons),
      );
    });
    replaceContent(this.heads, ...rows);
  }

  renderActivation() {
    const { explorer } = this,
      { session } = explorer,
      { activation: own } = session.config;
    const names = similarActivations(own).map(
      (name) =>
        /** @type {[string, string]} */ ([name, name === own ? t("{name} (the model's)", { name }) : name]),
    );
    replaceContent(
      this.activation,
      choice(t("activation"), names, session.activation, (name) => {
        session.setActivation(name);
        explorer.recompute();
      }),
    );
  }

  renderDropout() {
    const { explorer } = this,
      { session } = explorer;
    const buttons = dropoutPlaces(explorer).map(({ path, length, p, name }) => {
      const isOn = Boolean(session.edits.dropout?.[path]);
      return button(
        name,
        () => {
          const dropped = isOn
            ? null
            : Array.from({ length }, (_, i) => i).filter(() => Math.random() < (p || 0.1));
          session.setEdits("dropout", path, dropped);
          explorer.recompute();
        },
        { "aria-pressed": isOn, title: `p = ${p || 0.1}` },
      );
    });
    replaceContent(
      this.dropout,
      element(
        "details",
        { open: this.dropout.querySelector("details")?.open ?? false },
        element("summary", { textContent: t("Choose where") }),
        element("div", { className: "choice" }, ...buttons),
      ),
    );
  }

  renderMask() {
    const names = sublayersOf(this.explorer).map(
      ({ name, kind, layer }) => /** @type {[string, string]} */ ([name, `${kind} ${layer}`]),
    );
    replaceContent(
      this.masks,
      choice(t("attention with this mask"), names, this.sublayer.name, (name) => {
        this.explorer.memory.shared = { ...this.explorer.memory.shared, mask: name };
        this.explorer.changed();
      }),
    );
    this.explorer.mark(this.sublayer.weights.path);
    this.mask?.render();
  }

  /**
   * @param {string} path
   * @param {number} index
   * @param {number} value
   */
  setValue(path, index, value) {
    const { session } = this.explorer;
    const others = (session.edits.values?.[path] ?? []).filter((/** @type {number[]} */ [i]) => i !== index);
    session.setEdits("values", path, [...others, [index, value]]);
    this.explorer.recompute();
    if (matchMedia("(max-width: 1000px)").matches) this.showResult();
  }
}
