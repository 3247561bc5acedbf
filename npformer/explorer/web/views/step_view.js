// @ts-check
// The view of a step: its line of code, its arrays as grids, and the arithmetic of the chosen number.
import { button, byId, choice, replaceContent, say, tell } from "../drawing/page_elements.js";
import { Picture } from "../drawing/picture.js";
import { codeLines, linesOf } from "./code_view.js";
import { allTerms, arithmetic, arithmeticSentence, explanationOf, numberName } from "./arithmetic_view.js";
import { beatsOf, drawBeats, stageOf } from "../drawing/beats.js";
import { drawGrid, partsOf } from "../drawing/draw_grids.js";
import { cellOf, gridSize, numbersOf, placeOf } from "../drawing/slices.js";
import { numberText } from "../drawing/number_texts.js";
import { layoutStep } from "../drawing/step_layout.js";
import { blockOf, blockTitle, sentenceOf } from "../state/sentences.js";
import { currentTheme } from "../drawing/colors.js";
import { rowNormsOf, rowNormsSentence } from "./row_norms.js";
import { legendOf, tableOf } from "./grid_texts.js";
import { drawPointed } from "./pointed.js";
import { stepActions } from "./step_actions.js";
import { lessonName } from "./site_links.js";
import { StepChoice } from "./step_choice.js";
import { t } from "../words/text.js";

const UNFOLDED = ["every-term", "tables"]; // parts of the page that are unfolded on demand
const BEAT = 900; // the milliseconds of a beat
const KEYS = t(
  "Arrow keys choose a number. Enter pins it: it stays chosen while a pointer moves, and its token and " +
    "head from step to step.",
);

export class StepView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.choice = new StepChoice(explorer);
    /** @type {Layout} */
    this.layout = { width: 0, height: 0, placed: [], corner: null, isNarrow: false };
    /** @type {ReturnType<typeof explanationOf>} */
    this.explanation = null;
    this.stage = Infinity; // of the beats in which the number is made
    this.frame = 0; // of the animation that goes on
    /** @type {import("./pointed.js").Pointed | null} */
    this.pointed = null;
    this.before = { position: -1, direction: "" };
    this.times = /** @type {number[]} */ ([]); // of the drawn frames, in ms
    this.picture = new Picture({
      id: "step",
      layout: (width) => (this.layout = layoutStep(this.explorer, width)),
      draw: (surface, theme) => this.drawGrids(surface, theme),
      over: (surface, theme) => this.drawBeats(surface, theme),
      point: (x, y, kind) => this.point(x, y, kind),
      move: (row, column) => this.moveChosen(row, column),
      enter: () => this.togglePin(),
      keys: KEYS,
    });
    byId("stage").prepend(this.picture.root);
    this.picture.canvas.addEventListener("pointerleave", () => this.outline(null));
    const arrows = /** @type {[string, string, number, number][]} */ ([
      ["←", t("left"), 0, -1],
      ["↑", t("up"), -1, 0],
      ["↓", t("down"), 1, 0],
      ["→", t("right"), 0, 1],
    ]);
    byId("pad").append(
      button("«", () => this.explorer.move(-1), { "aria-label": t("Step back") }),
      ...arrows.map(([text, name, i, j]) =>
        button(text, () => this.moveChosen(i, j), { "aria-label": t("Number to the {name}", { name }) }),
      ),
      button("»", () => this.explorer.move(1), { "aria-label": t("Next step") }),
    );
    const open = (explorer.memory.shared?.open ?? "").split(".");
    for (const id of UNFOLDED) {
      byId(id).open = open.includes(id);
      byId(id).addEventListener("toggle", () => this.onToggle());
    }
  }

  render() {
    const { explorer } = this,
      { moment, direction, timeline, position } = explorer;
    const title = blockTitle(blockOf(moment.step.path), explorer.tape),
      block = `${title[0].toUpperCase()}${title.slice(1)}`,
      place = { block, number: position + 1, count: timeline.length };
    byId("crumbs").textContent = t("{block} · step {number} of {count}", place);
    byId("array-name").textContent = explorer.result.path;
    this.outline(null);
    replaceContent(byId("code"), ...codeLines(explorer, (pointed) => this.outline(pointed)));
    const lines = linesOf(explorer),
      lesson = direction === "backward" ? (lines.gradient_lesson ?? lines.lesson) : lines.lesson;
    byId("step-sentence").textContent = sentenceOf(moment.step.line, direction);
    byId("lesson").replaceChildren(...(lesson ? [t("Lesson: "), lessonName(explorer, lesson)] : []));
    this.renderHeads();
    replaceContent(byId("actions"), ...stepActions(explorer));
    this.choice.render();
    const { before } = this;
    this.before = { position, direction };
    if (before.position !== position || before.direction !== direction) this.showStage(Infinity);
    const isNext = before.position === position - 1 && before.direction === direction;
    if (isNext && !matchMedia("(prefers-reduced-motion: reduce)").matches) this.play();
    this.renderNumber();
    this.renderBeats();
    const result = this.layout.placed.find(({ isResult }) => isResult)?.slice;
    const norms = result ? rowNormsOf(explorer, result) : null;
    const { followed } = explorer.memory,
      told = followed?.step === explorer.result ? `${followed.text} ` : "";
    byId("row-norms").textContent = told + (norms ? rowNormsSentence(norms) : "");
  }

  /**
   * Outline what is pointed at, in the picture, and its block in the map.
   * @param {import("./pointed.js").Pointed | null} pointed
   */
  outline(pointed) {
    const { explorer } = this,
      path = pointed?.step.path ?? "";
    if (!pointed && !this.pointed) return;
    this.pointed = pointed;
    this.picture.drawOver();
    if ((explorer.marks.steps ?? "") === path) return;
    explorer.marks.steps = path;
    explorer.marked();
  }

  /** Show how the number is made, beat by beat. */
  play() {
    const beats = beatsOf(this.explorer);
    let last = performance.now();
    this.showStage(0);
    const next = (/** @type {number} */ now) => {
      const start = performance.now(), beat = Math.floor(this.stage);
      this.stage += (now - last) / BEAT;
      last = now;
      if (this.stage >= beats.length || this.explorer.view !== "steps") this.showStage(Infinity);
      else this.frame = requestAnimationFrame(next);
      this.picture.drawOver();
      if (Math.floor(this.stage) !== beat) this.renderBeats();
      this.times.push(performance.now() - start);
    };
    this.frame = requestAnimationFrame(next);
  }

  /** @param {number} stage   at which the picture stands still */
  showStage(stage) {
    cancelAnimationFrame(this.frame);
    this.stage = stage;
  }

  /** The beats as buttons: each of them shows its stage. */
  renderBeats() {
    const beats = this.explanation ? beatsOf(this.explorer) : [],
      isStill = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const show = (/** @type {number} */ beat) => {
      const stage = stageOf(beats, beat);
      this.showStage(this.stage === stage ? Infinity : stage);
      this.picture.drawOver();
      this.renderBeats();
    };
    const pairs = beats.map((name, i) => /** @type {[number, string]} */ ([i, name])),
      now = Math.ceil(this.stage) - 1;
    replaceContent(
      byId("beats"),
      button(t("Watch"), () => this.play(), { hidden: isStill || !beats.length }),
      ...(pairs.length > 1 ? [choice(t("how the number is made"), pairs, now, show)] : []),
    );
  }

  /** Render what depends on the chosen number. */
  renderNumber() {
    this.explanation = explanationOf(this.explorer);
    const sentence = arithmeticSentence(this.explorer, this.explanation);
    const about = byId("step-sentence").textContent;
    this.picture.draw(t("{about} {keys} {sentence}", { about, keys: KEYS, sentence }));
    const box = byId("arithmetic"),
      { corner } = this.layout,
      { zoom } = this.picture;
    box.className = corner ? "in-corner" : "";
    Object.assign(box.style, {
      left: `${this.picture.canvas.offsetLeft}px`,
      width: corner ? `${corner.width * zoom}px` : "",
      maxHeight: corner ? `${corner.height * zoom}px` : "",
    });
    replaceContent(box, ...arithmetic(this.explorer, this.explanation));
    // a box that scrolls must be reached by the keyboard
    if (corner && box.scrollHeight > box.clientHeight) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
    tell(byId("spoken"), sentence);
    const theme = currentTheme();
    byId("legends").replaceChildren(...this.layout.placed.map((placed) => legendOf(placed, theme)));
    this.renderUnfolded();
  }

  /** @type {import("../drawing/surfaces.js").Drawing} */
  drawGrids(surface, theme) {
    const { explanation, layout, explorer } = this,
      parts = explanation ? partsOf(explanation) : { values: new Map(), gradients: new Map() };
    for (const placed of layout.placed) drawGrid(surface, theme, placed, parts, explorer.index);
  }

  /** @type {import("../drawing/surfaces.js").Drawing} */
  drawBeats(surface, theme) {
    const { explanation, explorer, stage, layout, pointed } = this;
    drawPointed(surface, layout.placed, { step: explorer.result, index: explorer.index });
    if (pointed) drawPointed(surface, layout.placed, pointed);
    if (!explanation) return;
    const state = { explanation, index: explorer.index, beats: beatsOf(explorer), stage };
    drawBeats(surface, theme, layout, state);
  }

  renderHeads() {
    const { explorer } = this,
      { shape, data } = explorer.result;
    const heads = shape.length === 3 ? Array.from({ length: shape[0] }, (_, h) => h) : [];
    const choose = (/** @type {number} */ head) => {
      const length = data.length / shape[0];
      explorer.index = head * length + (explorer.index % length);
      explorer.changed();
    };
    const pairs = heads.map((h) => /** @type {[number, string]} */ ([h, String(h)]));
    replaceContent(
      byId("heads"),
      ...(heads.length ? [t("head "), choice(t("head"), pairs, explorer.head, choose)] : []),
    );
  }

  /** Write what is unfolded: all terms, and the arrays as tables, for screen readers and for copying. */
  renderUnfolded() {
    const { explorer, explanation, layout } = this;
    const fill = (/** @type {string} */ id, /** @type {() => Node[]} */ make) => {
      if (byId(id).open) byId(id).querySelector("div").replaceChildren(...make());
    };
    fill("every-term", () => (explanation ? allTerms(explorer, explanation) : []));
    fill("tables", () => layout.placed.map(({ slice }) => tableOf(slice)));
  }

  /** Fill what was unfolded, and write into the address what is. */
  onToggle() {
    this.renderUnfolded();
    this.explorer.remember("open", UNFOLDED.filter((id) => byId(id).open).join("."));
  }

  /** @type {(x: number, y: number, kind: "move" | "tap" | "click") => void} */
  point(x, y, kind) {
    const { explorer, picture: { canvas } } = this;
    for (const placed of this.layout.placed) {
      const [rows, columns] = gridSize(placed.slice);
      const i = Math.floor((y - placed.y) / placed.cellHeight),
        j = Math.floor((x - placed.x) / placed.cellWidth);
      if (i < 0 || j < 0 || i >= rows || j >= columns) continue;
      const index = placeOf(placed.slice, i, j);
      if (!placed.isResult) {
        const { step: result, isGradient } = placed.slice,
          direction = isGradient ? "backward" : "forward",
          name = numberName(explorer, { result, index, direction });
        canvas.title = `${name}${t(": ")}${numberText(numbersOf(placed.slice)[index])}`;
        this.outline({ step: result, index });
        if (kind === "click" && !explorer.follow(result, index, direction)) say(canvas.title);
        return;
      }
      canvas.title = ""; // the arithmetic says it
      this.outline(null);
      if (kind === "move" && (explorer.isPinned || index === explorer.index)) return;
      if (kind === "click") explorer.isPinned = !(explorer.isPinned && index === explorer.index);
      explorer.index = index;
      this.renderNumber();
      explorer.memory.saveAddress?.();
      return;
    }
  }

  togglePin() {
    this.explorer.isPinned = !this.explorer.isPinned;
    this.renderNumber();
  }

  /** @type {(row: number, column: number) => void} */
  moveChosen(row, column) {
    const placed = this.layout.placed.find(({ isResult }) => isResult);
    if (!placed) return;
    const [rows, columns] = gridSize(placed.slice);
    const [i, j] = cellOf(placed.slice, this.explorer.index) ?? [0, 0];
    this.explorer.index = placeOf(placed.slice, (i + row + rows) % rows, (j + column + columns) % columns);
    this.renderNumber();
    this.explorer.memory.saveAddress?.();
  }
}
