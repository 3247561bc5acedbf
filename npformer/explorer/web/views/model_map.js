// @ts-check
// The model as in Figure 1 of Vaswani et al. 2017: encoder left, decoder right, from the bottom to the top.
// Each block leads to its first step, and the blocks on the path of the present step are highlighted.
import { byId } from "../drawing/page_elements.js";
import { blockKind, blockName, blockOf, blockTitle } from "../state/sentences.js";
import { isComputed, pathOf, resultOf } from "../state/timeline.js";
import { t } from "../words/text.js";

/**
 * A block of the map, with its place.
 * @typedef {{block: string, column: number, x: number, y: number, width: number, height: number}} Box
 */

const SVG = "http://www.w3.org/2000/svg";
const COLUMN = 132,
  BOX = 104,
  GAP = 7;

/**
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {Node[]} children
 */
function svgElement(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/** @param {string} block */
function isThin(block) {
  return ["add", "norm"].includes(blockKind(block));
}

/**
 * Place all blocks, in the order of the forward pass.
 * @param {string[]} blocks
 * @returns {{boxes: Box[], width: number, height: number}}
 */
export function placeBlocks(blocks) {
  const isEncoder = (/** @type {string} */ block) => /^(source|encoder)/.test(block);
  const hasBoth = blocks.some(isEncoder) && blocks.some((block) => block.startsWith("decoder"));
  const columns = hasBoth
    ? [blocks.filter(isEncoder), blocks.filter((block) => !isEncoder(block))]
    : [blocks];
  const heightOf = (/** @type {string} */ block) => (isThin(block) ? 17 : 34);
  const heights = columns.map((list) => list.reduce((sum, block) => sum + heightOf(block) + GAP, 0));
  const height = Math.max(...heights) + 30;
  const boxes = columns.flatMap((list, column) => {
    let y = height - 18;
    return list.map((block) => {
      y -= heightOf(block);
      const box = { block, column, x: column * COLUMN + 18, y, width: BOX, height: heightOf(block) };
      y -= GAP;
      return box;
    });
  });
  return { boxes, width: columns.length * COLUMN + 6, height };
}

export class ModelMap {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    /** @type {Map<string, SVGElement>} */
    this.groups = new Map();
    /** @type {string} */
    this.drawn = "";
    explorer.marked = () => this.highlight();
    byId("map").addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.onKey(event));
  }

  render() {
    const computed = this.explorer.tape.steps.filter(isComputed),
      blocks = [...new Set(computed.map(({ path }) => blockOf(path)))];
    if (blocks.join() !== this.drawn) this.draw(blocks);
    this.highlight();
  }

  /** @param {string[]} blocks */
  draw(blocks) {
    this.drawn = blocks.join();
    const { boxes, width, height } = placeBlocks(blocks);
    const svg = svgElement("svg", {
      viewBox: `0 0 ${width} ${height}`,
      role: "group",
      "aria-label": t("The model"),
    });
    svg.style.width = `${width}px`; // not smaller than it is drawn, so that its labels can be read
    boxes.forEach((box, i) => {
      const below = boxes[i - 1]?.column === box.column ? boxes[i - 1] : null;
      const x = box.x + BOX / 2,
        from = below ? below.y : box.y + box.height + GAP;
      svg.append(svgElement("path", { d: `M${x} ${from}V${box.y + box.height}`, class: "arrow" }));
      if (blockKind(box.block) === "add") svg.append(this.around(boxes, i));
    });
    svg.append(...memoryArrows(boxes));
    for (const box of boxes) svg.append(this.box(box));
    byId("map").replaceChildren(svg);
  }

  /**
   * Draw the residual connection around a sublayer.
   * @param {Box[]} boxes
   * @param {number} i   the number of the block "add"
   */
  around(boxes, i) {
    const add = boxes[i];
    const norms = ["norm", "preprocess"].map((norm) => add.block.replace(/add(\d)$/, `${norm}$1`));
    const first = norms.includes(boxes[i - 2]?.block) ? boxes[i - 2] : boxes[i - 1];
    const start = first.y + first.height + GAP / 2,
      end = add.y + add.height / 2,
      left = add.x - 9;
    return svgElement("path", { d: `M${add.x + BOX / 2} ${start}H${left}V${end}H${add.x}`, class: "arrow" });
  }

  /**
   * Scroll the map, which may be longer than the window, so that a block is in view.
   * @param {SVGElement | undefined} group
   */
  scrollTo(group) {
    const nav = byId("map-box").parentElement;
    if (!group || nav.scrollHeight <= nav.clientHeight) return;
    const [box, frame] = [group, nav].map((each) => each.getBoundingClientRect());
    if (box.top < frame.top || box.bottom > frame.bottom)
      nav.scrollTop += box.top - frame.top - frame.height / 2;
  }

  /** @param {Box} box */
  box({ block, x, y, width, height }) {
    const lines = splitName(blockName(block));
    const texts = lines.map((line, i) => {
      const text = svgElement("text", {
        x: x + width / 2,
        y: y + height / 2 + (i - (lines.length - 1) / 2) * 12,
      });
      text.textContent = i < lines.length - 1 ? `${line} ` : line; // one text for those who read it aloud
      return text;
    });
    const kind = block.replace(/\.\d+/g, "").split(".").pop() ?? "";
    const group = svgElement(
      "g",
      {
        role: "button",
        tabindex: -1,
        "data-block": block,
        "aria-label": blockTitle(block, this.explorer.tape),
        class: `block ${isThin(block) ? "thin" : ""} ${kind}`,
      },
      svgElement("rect", { x, y, width, height, rx: 5 }),
      ...texts,
    );
    group.addEventListener("click", () => this.choose(block));
    this.groups.set(block, group);
    return group;
  }

  /** @param {string} block */
  choose(block) {
    this.explorer.view = "steps";
    this.explorer.goToBlock(block);
    this.explorer.changed();
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const blocks = [...this.groups.keys()],
      at = blocks.indexOf(/** @type {any} */ (event.target).dataset?.block);
    const by = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[event.key];
    if (event.key === "Enter" || event.key === " ") this.choose(blocks[at]);
    else if (by) this.groups.get(blocks[(at + by + blocks.length) % blocks.length])?.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /**
   * Highlight the present block, and all blocks on whose output it depends or, backward, that depend on it.
   */
  highlight() {
    const { explorer } = this,
      { tape, moment, direction, markedStep: step } = explorer;
    const present = blockOf(step.path),
      from = step === moment.step ? resultOf(moment, direction) : step;
    const path = new Set([...pathOf(tape, from, direction)].map((other) => blockOf(other.path)));
    const moved = explorer.view === "training" ? explorer.memory.moved : null;
    for (const [block, group] of this.groups) {
      group.classList.toggle("on-path", path.has(block));
      group.classList.toggle("present", block === present);
      group.classList.toggle("moved", moved?.has(block) ?? false);
      group.classList.toggle("backward", direction === "backward");
      group.setAttribute("aria-pressed", String(block === present));
      group.setAttribute("tabindex", block === present ? "0" : "-1");
    }
    this.scrollTo(this.groups.get(present));
  }
}

/** @param {Box[]} boxes */
function memoryArrows(boxes) {
  const top = boxes.filter(({ column }) => column === 0).pop();
  return boxes
    .filter(({ block }) => /cross$/.test(block))
    .map((box) => {
      const y = box.y + box.height / 2,
        x = (top?.x ?? 0) + BOX,
        middle = x + 5;
      return svgElement("path", {
        d: `M${(top?.x ?? 0) + BOX / 2} ${top?.y}V${(top?.y ?? 0) - 6}H${middle}V${y}H${box.x}`,
        class: "arrow",
      });
    });
}

/**
 * Return a long name in two lines.
 * @param {string} name
 */
export function splitName(name) {
  if (name.length <= 15) return [name];
  const at = name.includes(" ") ? name.indexOf(" ") : name.indexOf("-");
  return [name.slice(0, at + 1).trim(), name.slice(at + 1).trim()];
}
