// @ts-check
// What if: heads off, another mask, other tokens, other values, dropout; and what follows, before and after.
import { button, byId, choice, element, replaceContent, titled } from "../drawing/page_elements.js";
import { namesOf, sublayersOf } from "./attention_maps.js";
import { MaskEditor } from "./mask_editor.js";
import { PatchView } from "./patch_view.js";
import { comparison } from "./probability_table.js";
import { dropoutPlaces } from "./dropout_places.js";
import { entryForm } from "./entry_form.js";
import { ChangeList } from "./change_list.js";
import { similarActivations } from "../engine/activations.js";
import { renderTokens } from "./token_inputs.js";
import { numberText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */

export class ChangesView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
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
    this.patch = new PatchView(explorer);
    const parts = /** @type {[string, string, ...Node[]][]} */ ([
      [t("Heads"), t("Switch a head off: its output becomes 0."), this.heads],
      [t("Activation"), t("Replace the activation of all feed-forward networks."), this.activation],
      [t("Tokens"), t("Replace a token by another of the vocabulary."), this.tokens],
      [
        t("A value"),
        t("Set any entry of any array. The chosen number of the step is proposed."),
        this.entry.root,
      ],
      [t("Dropout"), t("Drop entries at random, as in training."), this.dropout],
      [
        t("Mask"),
        t("Blue cells are allowed: the query (row) may attend to the key (column)."),
        this.masks,
        this.mask.root,
      ],
    ]);
    const patching = t(
      "Take one activation after the other from another text into this one: those that change the " +
        "prediction carry the difference.",
    );
    /** @type {(part: [string, string, ...Node[]]) => any} */
    const section = ([title, text, ...children]) => {
      const made = titled("section", title, element("p", {}, text), ...children);
      made.setAttribute("aria-label", title);
      return made;
    };
    const result = titled("div", t("Before and after"), this.list.root, this.result);
    result.className = "result";
    byId("changes").append(
      element("div", { className: "beside" }, element("div", {}, ...parts.map(section)), result),
      section([t("Patch"), patching, this.patch.root]),
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
    this.renderHeads();
    this.renderActivation();
    renderTokens(this.explorer, this.tokens);
    this.renderDropout();
    this.renderMask();
    this.list.render();
    this.entry.render();
    this.patch.render();
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
    const rows = sublayersOf(explorer).map(({ name, title }) => {
      const buttons = Array.from({ length: session.config.n_heads }, (_, head) => {
        const isOff = session.headsOff(name).includes(head);
        const act = () => {
          session.switchHead(name, head);
          explorer.recompute();
        };
        return button(String(head), act, {
          "aria-pressed": !isOff,
          "aria-label": t("{where}, head {head}", { where: title, head }),
          title: isOff ? t("off") : t("on"),
        });
      });
      const choices = element("span", { className: "choice" }, ...buttons);
      return element("div", { className: "row" }, element("span", {}, title), choices);
    });
    replaceContent(this.heads, ...rows);
  }

  renderActivation() {
    const { explorer } = this,
      { session } = explorer,
      { activation: own } = session.config;
    const names = similarActivations(own).map((name) => {
      const text = name === own ? t("{name} (the model's)", { name }) : name;
      return /** @type {[string, string]} */ ([name, text]);
    });
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
      const isOn = Boolean(session.edits.dropout?.[path]),
        drops = () => Math.random() < (p || 0.1);
      const act = () => {
        session.setEdits("dropout", path, isOn ? null : [...Array(length).keys()].filter(drops));
        explorer.recompute();
      };
      return button(name, act, { "aria-pressed": isOn, title: `p = ${p || 0.1}` });
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
    const names = namesOf(sublayersOf(this.explorer));
    replaceContent(
      this.masks,
      choice(t("attention with this mask"), names, this.sublayer.name, (name) => {
        this.explorer.remember("mask", name);
        this.explorer.changed();
      }),
    );
    this.explorer.mark(this.sublayer.weights.path);
    this.mask.render();
  }

  /** @type {(path: string, index: number, value: number) => void} */
  setValue(path, index, value) {
    const { session } = this.explorer;
    const others = (session.edits.values?.[path] ?? []).filter((/** @type {number[]} */ [i]) => i !== index);
    session.setEdits("values", path, [...others, [index, value]]);
    this.explorer.recompute();
    if (matchMedia("(max-width: 1000px)").matches) this.showResult();
  }
}
