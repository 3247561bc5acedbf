// @ts-check
// Writing with the model: the tokens so far, and bars of the most probable next ones, of which the reader
// takes one or lets the model draw one.
import { button, byId, element, replaceContent } from "../drawing/page_elements.js";
import { percent, visibleText } from "../drawing/number_texts.js";
import { Writer } from "../state/writer.js";
import { t } from "../words/text.js";

const BARS = 8;

export class WriteView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.writer = new Writer(explorer.session);
    this.root = byId("write");
    this.root.hidden = !explorer.session.isLive;
    if (this.root.hidden) return;
    this.listen();
  }

  /** Read the sliders, which change how tokens are drawn; at their last values, nothing is cut. */
  listen() {
    for (const input of this.root.querySelectorAll("input")) {
      const read = () => {
        const isOff = input.name !== "temperature" && input.value === input.max;
        Object.assign(this.writer.sampling, { [input.name]: isOff ? null : Number(input.value) });
        replaceContent(input.nextElementSibling, isOff ? t("off") : input.value);
      };
      read();
      input.addEventListener("input", () => {
        read();
        this.renderBars();
      });
    }
  }

  render() {
    if (this.root.hidden) return;
    this.writer.update();
    const { writer } = this,
      { session } = this.explorer;
    const name = (/** @type {number} */ id) => visibleText(session.head.target_words[id]);
    replaceContent(
      byId("written"),
      element("b", { textContent: `${session.task?.words.soFar}${t(": ")}` }),
      ...writer.tokens.map((id, i) =>
        button(name(id), () => this.act(() => writer.keep(i)), {
          className: "token",
          title: t("Go back to the tokens before"),
        }),
      ),
      writer.isDone ? "" : element("span", { className: "next" }, t("… which token is next?")),
    );
    replaceContent(
      byId("write-buttons"),
      button(t("Draw the next token at random"), () => this.act(() => writer.draw()), {
        className: "main",
        disabled: writer.isDone,
        title: t("Space"),
      }),
      button(t("Write to the end"), () => this.act(() => writer.drawAll()), { disabled: writer.isDone }),
      button(t("Begin again"), () => this.act(() => writer.restart())),
      button(t("Show this text in the model"), () => this.use(), {
        disabled: writer.tokens.length < writer.writing.least,
      }),
    );
    this.renderBars();
  }

  /** Draw the most probable next tokens with their probabilities. */
  renderBars() {
    const { writer } = this,
      { probabilities: p, logits } = writer,
      { target_words: words } = this.explorer.session.head;
    const order = [...p.keys()].sort((a, b) => p[b] - p[a] || logits[b] - logits[a]), // the cut ones last
      best = writer.isDone ? [] : order.slice(0, BARS);
    const bars = best.map((id, rank) => {
      const properties = { id: `next-token-${rank}`, className: "next-token", disabled: p[id] === 0 },
        made = button("", () => this.act(() => writer.take(id)), properties);
      const bar = element("i", { className: "positive", styles: { height: `${100 * p[id]}%` } }),
        texts = [element("b", {}, visibleText(words[id])), " ", element("small", {}, percent(p[id]))];
      made.append(element("span", { className: "column" }, bar), ...texts);
      return made;
    });
    replaceContent(byId("next-tokens"), ...(bars.length ? bars : [t("The text has ended.")]));
  }

  /** @param {() => void} change */
  act(change) {
    change();
    this.render();
  }

  /** Draw a token, as the key Space does. */
  draw() {
    this.act(() => this.writer.draw());
  }

  use() {
    const { explorer, writer } = this;
    writer.use();
    explorer.renew();
  }
}
