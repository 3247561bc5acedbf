// @ts-check
// What if: heads off, another mask, other tokens, other values; and what follows, before and after.
import { button, byId, choice, element, replaceContent, tell } from "../drawing/page_elements.js";
import { namesOf, sublayersOf } from "./attention_maps.js";
import { MaskEditor } from "./mask_editor.js";
import { comparison } from "./probability_table.js";
import { entryForm } from "./entry_form.js";
import { ChangeList } from "./change_list.js";
import { similarActivations } from "../engine/activations.js";
import { Exchange } from "./exchange.js";
import { numberText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

export class ChangesView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.list = new ChangeList(explorer);
    this.result = byId("what-result");
    this.mask = new MaskEditor(explorer, () => this.sublayer);
    this.entry = entryForm(explorer, "value-of", t("Set this value"), (step, index, value) =>
      this.setValue(step.path, index, value),
    );
    const exchange = (/** @type {"source" | "target"} */ side) =>
      new Exchange(explorer, side, (place, id) => {
        explorer.session.setToken(side, place, id);
        explorer.recompute();
      });
    this.exchanges = this.tokens.map(([side]) => exchange(side));
    byId("what-tokens").append(...this.exchanges.map(({ root }) => root));
    this.result.before(this.list.root);
    byId("what-masks").after(this.mask.root);
    byId("what-value").append(this.entry.root);
  }

  get sublayer() {
    const sublayers = sublayersOf(this.explorer);
    return (
      sublayers.find(({ name }) => name === this.explorer.memory.shared?.mask) ??
      sublayers[sublayers.length - 1]
    );
  }

  /** The tokens that may be replaced, of each side. */
  get tokens() {
    const { task, ids } = this.explorer.session;
    return (ids && task?.tokens(ids)) ?? [];
  }

  render() {
    this.renderHeads();
    this.renderActivation();
    const { head } = this.explorer.session;
    this.tokens.forEach(([side, ids], i) =>
      this.exchanges[i].show(ids.map((id) => head[`${side}_words`][id])),
    );
    this.renderMask();
    this.list.render();
    this.entry.render();
    const { before, loss, output } = this.explorer.session,
      values = { before: numberText(before.loss), loss: numberText(loss) };
    const told =
      output === before.output
        ? t("Loss {before} → {loss}, the same output", values)
        : t("Loss {before} → {loss}, another output", values);
    tell(byId("what-told"), told);
    replaceContent(this.result, comparison(this.explorer, this.explorer.session.before));
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
    replaceContent(byId("what-heads"), ...rows);
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
      byId("what-activation"),
      choice(t("activation"), names, session.activation, (name) => {
        session.setActivation(name);
        explorer.recompute();
      }),
    );
  }

  renderMask() {
    const names = namesOf(sublayersOf(this.explorer));
    replaceContent(
      byId("what-masks"),
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
    if (matchMedia("(max-width: 1000px)").matches) this.result.parentElement.scrollIntoView();
  }
}
