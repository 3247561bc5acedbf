// @ts-check
// The head of the page: the text, what the model makes of it, the loss, and the form in which another text is
// typed.
import { button, byId, choice, element, replaceContent } from "../drawing/page_elements.js";
import { isThere } from "../state/address.js";
import { chooseSentence, chosenSentence } from "../state/recorded.js";
import { ReaderError } from "../state/reader_error.js";
import { numberText } from "../drawing/number_texts.js";
import { counted, t } from "../words/text.js";

const DIRECTIONS = /** @type {["forward" | "backward", string][]} */ ([
  ["forward", t("forward")],
  ["backward", t("backward")],
]);

const LETTER = "[\\p{L}\\p{N}\\p{M}]";
const EDGE = `(?:(?<!${LETTER})|(?!${LETTER}))`; // of a token: no letters on both sides

export class SentenceView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.filled = /** @type {any} */ (null); // the texts in the form
    this.isTargetEdited = false; // whether the reader has typed a translation since the last computation
    byId("target-input").addEventListener("input", () => {
      this.isTargetEdited = true;
    });
    const form = byId("sentence-form");
    const { session } = explorer;
    form.addEventListener("submit", (/** @type {Event} */ event) => {
      event.preventDefault();
      this.submit((source) => session.setSentence(source, this.givenTarget(source)));
    });
    byId("own").addEventListener("click", () => this.submit((source) => session.setSentence(source)));
    byId("changed").addEventListener("click", () =>
      explorer.show(session.countEdits() ? "changes" : "training"),
    );
    byId("open-form").addEventListener("click", () => this.toggle(form.hidden));
    document.addEventListener("pointerdown", (/** @type {any} */ { target }) => {
      if (!byId("loss-box").contains(target)) byId("loss-box").open = false; // it covers other things
    });
    for (const side of ["source", "target"]) {
      /** @type {string[]} */
      const options = (session.head[`${side}_words`] ?? []).slice(session.task?.specials);
      options.sort(new Intl.Collator().compare);
      byId(`${side}-words`).replaceChildren(...options.map((value) => element("option", { value })));
    }
    const saved = byId("saved"), sentences = session.head.sentences ?? [];
    saved.append(...sentences.map((/** @type {string} */ text) => element("option", {}, text)));
    saved.hidden = sentences.length < 2;
    saved.addEventListener("change", () => this.submit(() => chooseSentence(session, saved.selectedIndex)));
    if (session.task) this.name(session.task.words);
  }

  /**
   * Write how the page names what the model reads and writes.
   * @param {Record<"input" | "output" | "leadsTo" | "change" | "own", string>} words
   */
  name({ input, output, leadsTo, change, own }) {
    const labels = { "source-label": input, "target-label": output };
    const texts = { ...labels, "leads-to": leadsTo, "open-form": change, own };
    for (const [id, text] of Object.entries(texts)) byId(id).textContent = text;
    byId("sentence-form").setAttribute("aria-label", input);
    // a text has no other side
    byId("target-field").hidden = byId("own").hidden = !this.explorer.session.ids?.source.length;
  }

  /**
   * Return the translation that the reader gives: one typed now, or that of the same sentence before.
   * A new sentence is translated anew.
   * @param {string} source
   * @returns {string | null}
   */
  givenTarget(source) {
    const { isOwnOutput, texts } = this.explorer.session;
    return this.isTargetEdited || (!isOwnOutput && source.trim() === texts.source)
      ? byId("target-input").value
      : null;
  }

  /** Write the present texts into the form, once after each change of them. */
  fill() {
    const { task, texts } = this.explorer.session;
    if (texts === this.filled) return;
    this.filled = texts;
    this.isTargetEdited = false;
    if (task) byId("source-input").value = task.shown(texts.source);
    byId("target-input").value = texts.target ?? "";
  }

  /** @param {boolean} isOpen */
  toggle(isOpen) {
    byId("sentence-form").hidden = !isOpen;
    byId("open-form").setAttribute("aria-expanded", String(isOpen));
    byId(isOpen ? "source-input" : "open-form").focus();
  }

  /** @param {(source: string) => void} compute */
  submit(compute) {
    const { explorer } = this,
      { session } = explorer,
      { task } = session;
    const source = task?.typed(byId("source-input").value) ?? "";
    try {
      compute(source);
      explorer.refresh();
      explorer.carry();
      explorer.chooseLargest();
      this.tell(task?.about("source", session.texts.source) ?? null);
      explorer.changed();
    } catch (error) {
      if (!(error instanceof ReaderError)) throw error;
      this.tell(error);
    }
  }

  /** @param {ReaderError | null} said */
  tell(said) {
    const offers = (said?.suggestions ?? []).flatMap(({ word, known }) =>
      known.map((other) => {
        const properties = other ? { "aria-label": t("Replace {word} by {other}", { word, other }) } : {},
          text = other || t("leave out “{word}”", { word });
        return button(text, () => this.replaceWord(word, other), properties);
      }),
    );
    const question = offers.length ? t(" Did you mean: ") : "";
    byId("message").replaceChildren(said?.message ?? "", question, ...offers);
  }

  /** @type {(word: string, other: string) => void} */
  replaceWord(word, other) {
    const escaped = word.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&").replaceAll("'", "['’ʼ]");
    for (const id of ["source-input", "target-input"]) {
      const input = byId(id);
      input.value = input.value.replace(new RegExp(EDGE + escaped + EDGE, "giu"), () => other);
    }
    byId("source-input").focus();
    byId("message").textContent = other
      ? t("Replaced by “{other}”. Press Enter to compute.", { other })
      : t("Left out. Press Enter to compute.");
  }

  render() {
    const { explorer } = this,
      { session, direction } = explorer,
      changes = session.countEdits();
    this.fill();
    const shown = (/** @type {string} */ text) => session.task?.shown(text) ?? text;
    byId("source-text").textContent = shown(session.texts.source);
    byId("target-text").textContent = session.isLive ? shown(session.output) : session.texts.target;
    byId("loss").textContent = Number.isFinite(session.loss) ? numberText(session.loss) : "–";
    byId("smoothing").textContent = session.smoothing
      ? t("It has {smoothing}, which never lets it become 0; without it, it is {crossEntropy}.", {
          smoothing: session.smoothing,
          crossEntropy: numberText(session.crossEntropy),
        })
      : "";
    byId("saved").selectedIndex = chosenSentence(session);
    byId("translated").hidden = !byId("target-text").textContent;
    byId("loss-box").hidden = !Number.isFinite(session.loss);
    byId("open-form").hidden = !session.isLive;
    byId("changed").textContent = [
      changes ? counted(changes, t("{count} change"), t("{count} changes")) : "",
      session.log.length
        ? counted(session.log.length, t("{count} training step"), t("{count} training steps"))
        : "",
    ]
      .filter(Boolean)
      .join(t(", "));
    byId("changed").hidden = !byId("changed").textContent;
    const used = session.texts.target && session.isLive && session.texts.target !== session.output;
    byId("reference").textContent = used
      ? t(" (the decoder reads “{target}”, and the loss is its loss)", { target: session.texts.target })
      : "";
    byId("direction").classList.toggle("away", !["overview", "steps"].includes(explorer.view));
    replaceContent(
      byId("direction"),
      choice(t("direction"), DIRECTIONS, direction, (chosen) => explorer.setDirection(chosen)),
    );
    const views = /** @type {[any, string][]} */ ([
      ["overview", t("The model")],
      ["steps", t("Steps")],
      ["attention", t("Attention")],
      ["lens", t("Predictions")],
      ["compare", t("Compare")],
      ["changes", t("What if")],
      ["slope", t("Check a gradient")],
      ["training", t("Teach it")],
    ]).filter(([view]) => isThere(session, view));
    replaceContent(
      byId("views"),
      choice(t("view"), views, explorer.view, (view) => explorer.show(view)),
    );
  }
}
