// @ts-check
// Patching: which activation carries the difference between the text and another one. It is computed when the
// reader asks for it.
import { button, choice, element, replaceContent } from "../drawing/page_elements.js";
import { scroller, table, textInput } from "../drawing/page_elements.js";
import { currentTheme, paletteOf, shadeOf } from "../drawing/colors.js";
import { cellText, numberText, visibleText } from "../drawing/number_texts.js";
import { sideOf, tokensOf } from "../state/axes.js";
import { blockOf, blockTitle, layerName } from "../state/sentences.js";
import { ReaderError } from "../state/reader_error.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */
/** @typedef {import("../engine/patching.js").Activation} Activation */
/** @typedef {NonNullable<ReturnType<import("../state/session.js").Session["patching"]>>} Found */

/** A patch with the names of its array and of its place. */
/** @typedef {import("../engine/patching.js").Patch & {path: string, row: string, column: string}} Named */

const KINDS = /** @type {[Activation, string][]} */ ([
  ["layers", t("vectors after layers")],
  ["attention", t("outputs of attention")],
  ["feed-forward", t("outputs of feed-forward networks")],
  ["heads", t("outputs of heads")],
]);
const EFFECTS = /** @type {["exact" | "firstOrder", string][]} */ ([
  ["exact", t("exact effect")],
  ["firstOrder", t("estimate from the gradient")],
]);

export class PatchView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    /** @type {Activation} */
    this.what = "layers";
    /** @type {Found | null} */
    this.found = null;
    this.known = ""; // the tokens and the training steps for which it was found
    /** @type {Named | null} */
    this.chosen = null;
    this.text = textInput({ id: "patch-text", className: "wide" });
    const onsubmit = (/** @type {Event} */ event) => {
      event.preventDefault();
      this.compute();
    };
    const form = element(
      "form",
      { className: "controls", onsubmit },
      element("label", {}, t("another text "), this.text),
      element("button", { className: "main" }, t("Compare the two")),
    );
    this.kinds = element("div", { className: "controls" });
    this.told = element("p", { id: "patch-told", "aria-live": "polite" });
    this.effects = element("div");
    this.root = element("div", {}, form, this.kinds, this.told, this.effects);
  }

  get state() {
    const { ids, log } = this.explorer.session;
    return JSON.stringify([ids, log.length]);
  }

  render() {
    const { task, texts } = this.explorer.session;
    if (!this.text.value) this.text.value = task?.shown(texts.source) ?? "";
    if (this.state !== this.known) this.found = this.chosen = null;
    const choose = (/** @type {Activation} */ what) => {
      this.what = what;
      if (this.found) this.compute();
      else this.render();
    };
    replaceContent(this.kinds, choice(t("what is taken over"), KINDS, this.what, choose));
    replaceContent(this.effects, ...(this.found ? this.grids(this.found) : []));
    this.tell();
  }

  /** Compute the effects of all activations of the other text. */
  compute() {
    this.found = this.chosen = null;
    this.known = this.state;
    try {
      this.found = this.explorer.session.patching(this.text.value, this.what);
      this.render();
    } catch (error) {
      if (!(error instanceof ReaderError)) throw error;
      this.render();
      this.told.textContent = error.message;
    }
  }

  /** Say what the score is for both texts, and what the chosen patch does to it. */
  tell() {
    const { found, chosen } = this;
    this.told.textContent = t("Write a text of as many tokens that differs in one of them.");
    if (!found) return;
    const { session } = this.explorer,
      { position, token, versus } = found.compared;
    const logit = (/** @type {number} */ id) =>
      t("logit of “{token}”", { token: visibleText(session.head.target_words[id]) });
    const values = {
      read: visibleText(tokensOf(session, "target")[position]),
      what: versus === null ? logit(token) : `${logit(token)} − ${logit(versus)}`,
      score: numberText(found.score),
      other: numberText(found.otherScore),
    };
    const texts = t("After “{read}”, {what} is {score} for the text and {other} for the other one. ", values);
    if (!chosen) {
      this.told.textContent = texts + t("Choose a cell to see what its activation does.");
      return;
    }
    const effect = t(
      "With the other text's activation ({row}: {column}), it is {patched}: the effect is {exact}, and the " +
        "gradient alone estimates {estimate}. ",
      {
        ...chosen,
        patched: numberText(found.score + chosen.exact),
        exact: numberText(chosen.exact),
        estimate: numberText(chosen.firstOrder),
      },
    );
    replaceContent(this.told, texts, effect, button(t("Take this activation over"), () => this.take(chosen)));
  }

  /** Replace the activation by that of the other text. @type {(chosen: Named) => void} */
  take({ path, entries }) {
    this.explorer.session.setEdits("values", path, entries);
    this.explorer.recompute();
  }

  /** Make the grids of each stack: the exact effects, and beside them the estimates. @param {Found} found */
  grids({ sites }) {
    const rows = sites.map((site) => this.named(site)),
      stacks = new Set(rows.map(([{ path }]) => path.split(".")[0])),
      most = Math.max(...rows.flat().map(({ exact }) => Math.abs(exact))) || 1;
    return [...stacks].map((stack) => {
      const own = rows.filter(([{ path }]) => path.startsWith(`${stack}.`)).reverse();
      const grids = EFFECTS.map((effect) => this.grid(own, effect, most));
      return element("div", { className: "patches" }, ...grids);
    });
  }

  /** Name the patches of an array. @type {(site: Found["sites"][0]) => Named[]} */
  named({ step: { path }, patches }) {
    const { session, tape } = this.explorer,
      tokens = tokensOf(session, sideOf(path)),
      row = this.what === "layers" ? layerName(path) : blockTitle(blockOf(path), tape);
    return patches.map((patch, i) => {
      const column = this.what === "heads" ? t("head {head}", { head: i }) : visibleText(tokens[i]);
      return { ...patch, path, row, column };
    });
  }

  /**
   * @param {Named[][]} rows
   * @param {["exact" | "firstOrder", string]} effect   with its name
   * @param {number} most   the effect with the strongest colour
   */
  grid(rows, [which, caption], most) {
    const palette = paletteOf("value", currentTheme(), 0.6);
    const cell = (/** @type {Named} */ patch) =>
      button(Math.abs(patch[which]) < 0.005 ? "·" : cellText(patch[which]), () => this.choose(patch), {
        styles: shadeOf(palette, patch[which] / most),
        className: "lens-cell",
        "aria-label": `${patch.row}${t(", ")}${patch.column}${t(": ")}${numberText(patch[which])}`,
      });
    const head = ["", ...rows[0].map(({ column }) => column)],
      cells = rows.map((row) => [row[0].row, ...row.map(cell)]);
    return scroller(caption, table(head, cells, { className: "lens", caption }));
  }

  /** @param {Named} patch */
  choose(patch) {
    this.chosen = patch;
    this.tell();
  }
}
