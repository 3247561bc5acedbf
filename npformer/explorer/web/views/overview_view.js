// @ts-check
// The whole model at a glance: the sentence goes through it block by block, forward in the colours of values,
// and backward in those of gradients. A block grows into its steps.
import { button, byId, choice, element, replaceContent, tell } from "../drawing/page_elements.js";
import { HEAD_COLORS, scaleBar } from "../drawing/colors.js";
import { Picture } from "../drawing/picture.js";
import { visibleText } from "../drawing/number_texts.js";
import { columnAt, columnWidth, flowBlocks, placeFlow } from "./flow_layout.js";
import { sideOf } from "../state/axes.js";
import { drawFlowBlock, slantOf } from "./flow_picture.js";
import { overviewSentence } from "./overview_sentence.js";
import { t } from "../words/text.js";

/** Blocks in a second. */
const SPEEDS = /** @type {[number, string][]} */ ([
  [1, "½ ×"],
  [2, "1 ×"],
  [5, "2.5 ×"],
]);
const STILL = matchMedia("(prefers-reduced-motion: reduce)"); // whether the system asks for less motion
const GROWING = { duration: 260, easing: "ease-in-out" };

export class OverviewView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.id = "overview-picture";
    this.slides = true;
    this.keys = t("Up and down choose a block, left and right a token, Enter opens the block.");
    this.speed = 2;
    this.stage = Infinity; // the number of blocks that are computed, with a part of the next one
    this.frame = 0; // of the animation that goes on
    this.chosen = ""; // the block
    /** @type {number | null} */
    this.token = null;
    /** @type {ReturnType<typeof placeFlow>} */
    this.flow = { blocks: [], width: 0, height: 0, base: 0 };
    this.note = ""; // what follows from a click on a token
    this.times = /** @type {number[]} */ ([]); // of the drawn frames, in ms
    this.controls = byId("overview-controls");
    this.sentence = byId("overview-told");
    this.opening = this.sentence.textContent;
    this.isWelcome = false; // whether the page opened just now, and plays without being asked
    this.picture = new Picture(this);
    this.sentence.after(this.picture.root);
    byId("recorded").hidden = explorer.session.isLive;
  }

  /** The number of blocks. */
  get count() {
    return this.flow.blocks.length;
  }

  get isBackward() {
    return this.explorer.direction === "backward";
  }

  render() {
    if (!this.count) this.update();
    if (!this.flow.blocks.some(({ block }) => block === this.chosen)) this.chosen = "";
    const play = { id: "play", className: "main" }; // the same button for the keyboard's focus
    replaceContent(
      this.controls,
      this.frame
        ? button(t("Stop"), () => this.stop(), play)
        : button(t("Play"), () => (STILL.matches ? this.goOn(1) : this.play()), play),
      button("‹", () => this.goOn(-1), { "aria-label": t("One block less") }),
      button("›", () => this.goOn(1), { "aria-label": t("One block more") }),
      choice(t("speed"), SPEEDS, this.speed, (speed) => {
        this.speed = speed;
        this.render();
      }),
      ...this.legend(),
      button(t("Open the steps of this block"), () => this.enter(), { disabled: !this.chosen }),
    );
    this.update();
  }

  /** The colours of the numbers, and those of the heads, whose ribbons are as wide as the weights. */
  legend() {
    const count = this.isBackward
      ? 0
      : (this.flow.blocks.find(({ weights }) => weights)?.weights?.shape[0] ?? 0);
    const key = (/** @type {string} */ text, /** @type {string} */ background) =>
      element("span", { className: "head-key" }, element("i", { styles: { background } }), text);
    const heads = Array.from({ length: count }, (_, head) =>
      key(t("head {head}", { head }), HEAD_COLORS[head % HEAD_COLORS.length]),
    );
    return [key(t("negative to positive"), scaleBar(this.isBackward ? "gradient" : "value")), ...heads];
  }

  /**
   * @param {number} width
   * @param {number} room
   */
  layout(width, room) {
    return (this.flow = placeFlow(flowBlocks(this.explorer), width, room));
  }

  /** Draw the picture as far as the sentence has gone. */
  update() {
    const start = performance.now();
    const place = Math.min(this.count, Math.ceil(this.stage)) - 1,
      at = this.isBackward ? this.count - 1 - place : place;
    const isTold = this.stage < Infinity && !this.isWelcome,
      moving = isTold ? (this.flow.blocks[at]?.block ?? "") : this.chosen;
    const sentence = moving
      ? this.note + overviewSentence(this.explorer, this.flow.blocks, moving, this.token)
      : this.opening;
    tell(this.sentence, sentence);
    this.picture.draw(t("The model with its arrays. {sentence}", { sentence }));
    this.times.push(performance.now() - start);
  }

  /** @type {import("../drawing/surfaces.js").Drawing} */
  draw(surface, theme) {
    const { flow, token, isBackward } = this;
    flow.blocks.forEach((box, i) => {
      const before = isBackward ? this.count - 1 - i : i, // the number of blocks before this one
        part = Math.max(0, Math.min(1, this.stage - before));
      const state = {
        part,
        token: this.tokenOf(box, token),
        key: /source/.test(this.chosen) || /^encoder/.test(this.chosen) ? token : null,
        isBackward,
        isChosen: box.block === this.chosen,
      };
      drawFlowBlock(surface, theme, box, state, this.explorer.session);
    });
    const bottoms = flow.blocks.filter(
      (box, i) => flow.blocks.findIndex(({ column }) => column === box.column) === i,
    );
    for (const box of bottoms) {
      box.tokens.forEach((word, i) => {
        if (!word) return; // a row of a layer is no token
        const wide = columnWidth(box, box.tokens.length),
          { size, rotate: slant } = slantOf(wide),
          isTight = wide < 0.75 * size * word.length,
          align = /** @type {"right" | "center"} */ (isTight ? "right" : "center"),
          style = { size, color: theme.ink, bold: this.tokenOf(box, token) === i, align },
          rotate = isTight ? slant : 0;
        const x = columnAt(box, i, box.tokens.length);
        surface.text(x, flow.base + 10, visibleText(word), { ...style, rotate });
      });
    }
  }

  /**
   * The chosen token in a box, or null; -1 in the other column than that of the chosen block.
   * @param {{column: number}} box
   * @param {number | null} token
   */
  tokenOf(box, token) {
    const chosen = this.flow.blocks.find(({ block }) => block === this.chosen);
    return chosen && token !== null && box.column !== chosen.column ? -1 : token;
  }

  /** Play once when the page opens. A click or a key ends that, and the whole model is shown. */
  welcome() {
    const { top } = this.picture.canvas.getBoundingClientRect();
    if (STILL.matches || top + this.flow.base > innerHeight) return; // it would begin out of sight
    this.isWelcome = true;
    const end = () => {
      if (this.isWelcome) Object.assign(this, { isWelcome: false, stage: Infinity });
    };
    for (const kind of ["click", "keydown"]) addEventListener(kind, end, { capture: true, once: true });
    this.play();
  }

  play() {
    if (this.stage >= this.count) this.stage = 0;
    let last = performance.now();
    const next = (/** @type {number} */ now) => {
      this.stage += ((now - last) / 1000) * this.speed;
      last = now;
      if (this.stage >= this.count || this.explorer.view !== "overview") return this.stop();
      this.update();
      this.frame = requestAnimationFrame(next);
    };
    this.frame = requestAnimationFrame(next);
    this.render();
  }

  /** Stop where the sentence is; at the end, the whole model is shown. */
  stop() {
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    if (this.stage >= this.count) this.stage = Infinity;
    if (this.explorer.view === "overview") this.render();
  }

  /** @param {number} by   blocks */
  goOn(by) {
    const now = this.stage === Infinity ? (by > 0 ? 0 : this.count) : this.stage;
    this.stage = Math.max(0, by > 0 ? Math.floor(now) + 1 : Math.ceil(now) - 1);
    this.stop();
  }

  /** @type {(x: number, y: number, kind: string) => void} */
  point(x, y, kind) {
    const { blocks, base } = this.flow;
    const isIn = (/** @type {import("./flow_layout.js").FlowBlock} */ box) =>
      x >= box.x &&
      x < box.x + box.width &&
      (y > base ? !/\d/.test(box.block) : y >= box.y && y < box.y + box.height);
    const box = blocks.find(isIn);
    if (!box || (this.frame && this.stage < Infinity)) return;
    const count = box.tokens.length,
      token = Math.min(count - 1, Math.max(0, Math.floor((x - box.left - 6) / columnWidth(box, count))));
    if (kind === "click" && y < base) {
      this.open(box.block);
      return;
    }
    if (kind === "move" && box.block === this.chosen && token === this.token) return;
    Object.assign(this, { chosen: box.block, token, note: "" });
    if (kind !== "move" && box.tokens[token]) this.pin(box, token);
    this.render();
  }

  /**
   * Pin a token: the steps show its numbers, and Attention the head that attends most from it.
   * @type {(box: FlowBlock, token: number) => void}
   */
  pin({ output, tokens }, token) {
    const { explorer } = this,
      side = sideOf(output.path).replace("predicted", "target"); // of a prediction, the token that is read
    explorer.isPinned = false;
    explorer.goTo(output.path);
    Object.assign(explorer, { carried: { [side]: token }, isPinned: true });
    explorer.chooseLargest();
    explorer.memory.isNewPin = true;
    explorer.remember("find", `${side}.${token}_`);
    this.note = t("“{token}” is pinned: Steps and Attention open at it. ", {
      token: visibleText(tokens[token]),
    });
  }

  /** @type {(down: number, right: number) => void} */
  move(down, right) {
    const { blocks } = this.flow,
      at = blocks.findIndex(({ block }) => block === this.chosen);
    const box = blocks[at < 0 ? 0 : (at - down + blocks.length) % blocks.length],
      count = box.tokens.length;
    if (right) this.token = this.token === null ? 0 : (this.token + right + count) % count;
    this.token = this.token === null ? null : Math.min(this.token, count - 1);
    this.chosen = box.block;
    if (this.token !== null && box.tokens[this.token]) this.pin(box, this.token);
    this.note = "";
    this.render();
  }

  enter() {
    this.open(this.chosen);
  }

  /**
   * Let a block grow into its steps.
   * @param {string} name
   */
  async open(name) {
    const { explorer } = this;
    this.stop();
    await this.grow(name, false);
    explorer.view = "steps";
    explorer.goToBlock(name);
    explorer.memory.grown = name;
    explorer.changed();
  }

  /** Let the steps shrink into the block from which they grew. */
  shrink() {
    const { explorer } = this;
    explorer.show("overview");
    this.grow(explorer.memory.grown, true);
    explorer.memory.grown = "";
  }

  /**
   * Move a frame between a block and the whole view.
   * @param {string} name
   * @param {boolean} isBack
   */
  async grow(name, isBack) {
    const box = this.flow.blocks.find(({ block }) => block === name);
    if (!box || STILL.matches) return;
    const { left, top } = this.picture.canvas.getBoundingClientRect(),
      { zoom } = this.picture,
      main = byId("main").getBoundingClientRect();
    const rect = (/** @type {number[]} */ list) =>
      Object.fromEntries(["left", "top", "width", "height"].map((name, i) => [name, `${list[i]}px`]));
    const small = rect([left + box.x * zoom, top + box.y * zoom, box.width * zoom, box.height * zoom]),
      large = rect([main.left, Math.max(0, main.top), main.width, innerHeight]);
    const frame = element("div", { className: "growing" });
    document.body.append(frame);
    await frame.animate(isBack ? [large, small] : [small, large], GROWING).finished;
    frame.remove();
  }
}
