// @ts-check
// Two sentences compared, by activation patching: which activation of the second one, taken into the first,
// changes the prediction most.
import { button, byId, choice, element, replaceContent, scroller } from "../drawing/page_elements.js";
import { table, tell } from "../drawing/page_elements.js";
import { tableSaves } from "../drawing/saves.js";
import { currentTheme, paletteOf, shadeOf } from "../drawing/colors.js";
import { cellText, numberText, percent, visibleText } from "../drawing/number_texts.js";
import { sublayersOf } from "./attention_maps.js";
import { exchangedPairs, exchangedWords, sentenceField } from "./sentence_field.js";
import { argmax } from "../engine/tape.js";
import { sideOf, tokensOf } from "../state/axes.js";
import { editsApart, otherText, othersOf, patching, readFrom, takenFrom } from "../state/comparison.js";
import { blockName, blockOf, blockTitle, layerName, stackName } from "../state/sentences.js";
import { ReaderError } from "../state/reader_error.js";
import { t } from "../words/text.js";

/** @typedef {NonNullable<ReturnType<typeof patching>>} Found */

/**
 * A patch with its array and its place there.
 * @typedef {import("../engine/patching.js").Patch & {path: string, row: string, column: string,
 *   place: number}} Named
 */

const KINDS = /** @type {[Activation, string][]} */ ([
  ["heads", t("heads")],
  ["layers", t("layers")],
  ["attention", t("attention")],
  ["feed-forward", t("feed-forward networks")],
]);

export class CompareView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    /** @type {Activation} */
    this.what = "heads";
    /** @type {Found | null} */
    this.found = null;
    this.known = ""; // what it was found for
    this.sentence = ""; // the tokens for which the second sentence was written
    /** @type {{path: string, place: number} | null} */
    this.chosen = null;
    this.told = ""; // what happened to an activation that was put into the sentence
    this.text = sentenceField(explorer, "compare-text", "source");
    this.text.addEventListener("input", () => {
      tell(byId("compare-found"), t("The second sentence has changed: press “Compare the two”."));
      this.known = "";
    });
    this.text.addEventListener("change", () => this.text.form.requestSubmit());
    byId("compare-form").addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      if (this.state !== this.known) this.choose(null);
    });
    this.restore();
  }

  /** Show what an address says, once. */
  restore() {
    const { memory, session } = this.explorer,
      from = memory.shared?.compare ?? takenFrom(session);
    if (!from) return;
    const { what, text, ...chosen } = readFrom(from);
    this.what = KINDS.find(([kind]) => kind === what)?.[0] ?? this.what;
    this.chosen = chosen;
    this.text.value = text;
    this.text.dispatchEvent(new Event("input"));
    this.sentence = this.tokens;
  }

  get tokens() {
    return JSON.stringify(this.explorer.session.ids);
  }

  get state() {
    const { session } = this.explorer;
    return [this.tokens, JSON.stringify(editsApart(session)), session.log.length, this.what].join(" ");
  }

  render() {
    const { session } = this.explorer;
    if (this.tokens !== this.sentence) {
      this.text.value = session.task?.shown(otherText(session)) ?? "";
      this.text.dispatchEvent(new Event("input"));
      this.sentence = this.tokens;
      this.chosen = null;
    }
    this.update();
  }

  /** Show the effects, and compute them where they are those of another text, kind or change. */
  update() {
    if (this.state === this.known) return this.show();
    this.known = this.state;
    this.found = null;
    tell(byId("compare-found"), "");
    try {
      this.found = patching(this.explorer.session, this.text.value, this.what);
    } catch (error) {
      if (!(error instanceof ReaderError)) throw error;
      tell(byId("compare-found"), error.message);
    }
    this.show();
  }

  show() {
    const { found } = this;
    const choose = (/** @type {Activation} */ what) => {
      this.what = what;
      this.choose(null);
    };
    replaceContent(byId("compare-kinds"), choice(t("what is taken over"), KINDS, this.what, choose));
    byId("compare-answer").hidden = byId("compare-tables").hidden = !found;
    if (!found) return;
    const rows = found.sites.flatMap((site) => this.named(site)),
      largest = rows.reduce((a, b) => (Math.abs(b.exact) > Math.abs(a.exact) ? b : a)),
      { path: own, place: at } = this.chosen ?? {},
      chosen = rows.find(({ path, place }) => path === own && place === at) ?? largest;
    this.chosen = { path: chosen.path, place: chosen.place };
    tell(byId("compare-found"), this.finding(found, largest));
    this.tell(found, chosen);
    this.explorer.remember("compare", this.from);
    this.explorer.mark(chosen.path);
    const most = Math.abs(largest.exact) || 1,
      texts = /** @type {const} */ ([byId("source-text").textContent, this.text.value]),
      name = ["compare", ...exchangedPairs(...texts).flat()].join("-"),
      sentence = () => `${texts.join(" / ")}${t(": ")}${byId("compare-found").textContent}`;
    const tables = [...new Set(rows.map(({ path }) => path.split(".")[0]))].map((stack) => {
      const [caption, made] = this.table(rows, stack, most, chosen),
        label = `${caption}${t(", ")}${KINDS.find(([kind]) => kind === this.what)?.[1]}`;
      return element(
        "div",
        { className: "picture" },
        scroller(label, made),
        tableSaves(`${name}-${stack}`, made, sentence),
      );
    });
    replaceContent(byId("compare-tables"), ...tables);
  }

  /** Where the chosen activation is from. */
  get from() {
    const { path, place } = /** @type {{path: string, place: number}} */ (this.chosen);
    return [this.what, path, place, this.text.value].join("|");
  }

  /**
   * Say what both texts lead to, and which activation carries most of it.
   * @type {(found: Found, largest: Named) => string}
   */
  finding(found, { row, column, exact, path, place: index }) {
    const { session } = this.explorer,
      { position, token, versus } = found.compared,
      word = (/** @type {number} */ id) => visibleText(session.head.target_words[id]),
      values = { read: visibleText(tokensOf(session, "target")[position]), own: word(token) };
    const exchanged = exchangedWords(session.task?.shown(session.texts.source) ?? "", this.text.value);
    const leads =
      versus === null
        ? t("After “{read}”, the model writes “{own}” in both cases. ", values)
        : t("After “{read}”, the model then writes “{other}” instead of “{own}”. ", {
            ...values,
            other: word(versus),
          });
    const place = `${row}${t(", ")}${column}`,
      effect = cellText(exact);
    const largest =
      versus !== null && exact < 0
        ? t("Largest effect: {place}: {effect}, towards “{other}”. ", { place, effect, other: word(versus) })
        : t("Largest effect: {place}: {effect}. ", { place, effect });
    const isHead = this.what === "heads",
      { most, isDirect } = othersOf(found, path, index),
      others = t("At the other tokens there, the effect is at most {most}.", { most: numberText(most) }),
      direct = t(" No other token carries the difference: the decoder reads “{column}” itself.", { column }),
      detail = isHead ? this.attended(path, index, position) : others + (isDirect ? direct : "");
    return exchanged + leads + largest + detail;
  }

  /**
   * Say to which token a head attends most where the predictions differ.
   * @type {(path: string, head: number, position: number) => string}
   */
  attended(path, head, position) {
    const sublayer = sublayersOf(this.explorer).find(({ name }) => path === `${name}.merged`);
    if (!sublayer || path.startsWith("encoder")) return "";
    const { weights, keys, rows } = sublayer,
      start = (head * rows.length + position) * keys.length,
      row = weights.data.subarray(start, start + keys.length),
      best = argmax(row);
    const values = { row: rows[position], key: visibleText(keys[best]), p: percent(row[best]) };
    return t("At “{row}”, this head attends most to “{key}”: {p}.", values);
  }

  /**
   * Say what the chosen activation does, and offer to take it over.
   * @type {(found: Found, chosen: Named) => void}
   */
  tell({ score, otherScore, compared: { token, versus } }, chosen) {
    const { session } = this.explorer,
      word = (/** @type {number} */ id) =>
        t("logit of “{token}”", { token: visibleText(session.head.target_words[id]) });
    const values = {
      ...chosen,
      what: versus === null ? word(token) : `${word(token)} − ${word(versus)}`,
      score: numberText(score),
      other: numberText(otherScore),
      patched: numberText(score + chosen.exact),
      estimate: numberText(chosen.firstOrder),
    };
    const isTaken = Boolean(session.edits.values?.[chosen.path]?.from);
    replaceContent(
      byId("compare-chosen"),
      element("b", {}, `${chosen.row}${t(", ")}${chosen.column}${t(": ")}`),
      t(
        "{what} is {score} for your sentence, {other} for the second one, and {patched} for yours with " +
          "this activation of the second one. The gradient alone estimates the change as {estimate}: it " +
          "follows a straight line from your sentence, and the model bends. ",
        values,
      ),
    );
    byId("compare-take").textContent = isTaken ? t("Take it out again") : t("Put it into my sentence");
    byId("compare-take").onclick = () => (isTaken ? this.takeBack() : this.take(chosen));
    tell(byId("compare-outcome"), isTaken ? `${session.before.output} → ${session.output}` : this.told);
  }

  /** Replace the activation by that of the other text. @type {(chosen: Named) => void} */
  take({ path, entries }) {
    const { session } = this.explorer;
    session.setEdits("values", path, Object.assign(entries, { from: this.from }));
    session.generate(); // so that the first translation that is announced is the new one
    this.explorer.recompute();
  }

  takeBack() {
    const { session } = this.explorer,
      path = this.chosen?.path ?? "",
      isTaken = Boolean(session.edits.values?.[path]?.from);
    this.told = isTaken ? t("Taken out: your sentence has its own activation again.") : "";
    if (!isTaken) return;
    session.setEdits("values", path, null);
    this.explorer.recompute();
  }

  /** Name the patches of an array. @type {(site: Found["sites"][0]) => Named[]} */
  named({ step: { path }, patches }) {
    const { session, tape } = this.explorer,
      tokens = tokensOf(session, sideOf(path)),
      row = this.what === "layers" ? layerName(path) : blockTitle(blockOf(path), tape);
    return patches.map((patch, place) => {
      const column = this.what === "heads" ? t("head {head}", { head: place }) : visibleText(tokens[place]);
      return { ...patch, path, row, column, place };
    });
  }

  /**
   * Make the table of a stack: a row for each token or head, and for each array its exact effects and their
   * estimates.
   * @param {Named[]} all
   * @param {string} stack
   * @param {number} most   the effect with the strongest colour
   * @param {Named} chosen
   * @returns {[string, HTMLTableElement]}
   */
  table(all, stack, most, chosen) {
    const own = all.filter(({ path }) => path.startsWith(`${stack}.`)),
      paths = [...new Set(own.map(({ path }) => path))],
      palette = paletteOf("value", currentTheme(), 0.45);
    const shown = (/** @type {number} */ effect) => (Math.abs(effect) < 0.005 ? "·" : cellText(effect));
    const cell = (/** @type {Named} */ patch) => {
      const made = button(`${shown(patch.exact)} `, () => this.choose(patch), {
        styles: shadeOf(palette, patch.exact / most),
        className: `lens-cell ${patch === chosen ? "important" : ""}`,
        "aria-pressed": patch === chosen,
      });
      if (made.textContent !== "· ") made.append(element("small", {}, `≈ ${shown(patch.firstOrder)}`));
      const note = made.childElementCount ? t(" (effect ≈ estimate)") : t(" (below 0.005)");
      made.ariaLabel = `${patch.row}${t(", ")}${patch.column}${t(": ")}${made.textContent}${note}`;
      return made;
    };
    const ofPath = (/** @type {string} */ path) => own.filter((patch) => patch.path === path),
      first = ofPath(paths[0]);
    const rows = first.map(({ column }, i) => [column, ...paths.map((path) => cell(ofPath(path)[i]))]),
      head = paths.map((path) => {
        const layer = t("layer {layer}", { layer: path.split(".")[1] });
        return this.what === "layers" ? layer : `${layer}${t(", ")}${blockName(blockOf(path))}`;
      }),
      caption = t("{stack}: effects (≈ estimates, · below 0.005)", { stack: stackName(stack) });
    return [caption, table(["", ...head], rows, { className: "lens", caption })];
  }

  /** Choose an activation, or that with the largest effect. @param {Named | null} patch */
  choose(patch) {
    this.takeBack();
    this.chosen = patch;
    this.update();
  }
}
