// @ts-check
// The line of code of a step, with its names tinted like the grids, and the source text of its function.
import { element, openDialog } from "../drawing/page_elements.js";
import { TINTS, gradientLine, tintedPieces } from "../drawing/identifiers.js";
import { answering } from "./pointed.js";
import { lessonName } from "./site_links.js";
import { t } from "../words/text.js";

/** The place of the forward line of an operation that is not the last. @type {Record<string, number>} */
const FORWARD_LINES = { mean: 0, rrms: 1 };

/** Return the description of a step's lines. @param {Explorer} explorer */
export function linesOf(explorer) {
  const lines = explorer.session.head.lines ?? {};
  return lines[explorer.moment.step.line] ?? lines.layer ?? { code: "", gradient: [] };
}

/**
 * Return the lines of code that the step shows, with the number of the present one.
 * @param {Explorer} explorer
 * @returns {{lines: string[], now: number}}
 */
export function shownLines(explorer) {
  const lines = linesOf(explorer),
    { step, which } = explorer.moment;
  if (explorer.direction === "forward") {
    const list = (lines.code ?? "").split("\n").filter(Boolean);
    return { lines: list, now: FORWARD_LINES[step.op] ?? list.length - 1 };
  }
  const list = lines.gradient ?? [];
  return { lines: list, now: gradientLine(step.line, which, list.length) };
}

/**
 * Make the lines of code of the moment. In the backward pass, the forward line stands above.
 * @param {Explorer} explorer
 * @param {(pointed: import("./pointed.js").Pointed | null) => void} outline   what a name in the present line
 *   does that is pointed at
 */
export function codeLines(explorer, outline) {
  const { direction, moment } = explorer,
    { line: key } = moment.step,
    { lines, now } = shownLines(explorer);
  const answer = (/** @type {Role} */ role, isGradient = false) =>
    answering(explorer, role, isGradient, outline);
  const made = lines.map((line, i) =>
    i === now ? tintedLine(line, key, direction, "now", answer) : tintedLine(line, key, direction, ""),
  );
  if (direction === "backward") {
    const forward = (linesOf(explorer).code ?? "").split("\n").pop() ?? "";
    made.unshift(tintedLine(forward, key, "forward", "forward-line"));
  }
  return made;
}

/**
 * @type {(line: string, key: string, direction: "forward" | "backward", className: string,
 *   answer?: (role: Role, isGradient?: boolean) => any) => any}
 */
function tintedLine(line, key, direction, className, answer) {
  const pieces = tintedPieces(line, key, direction).map(({ text, role, isGradient }) =>
    role === null
      ? text
      : element("b", { className: TINTS[role], textContent: text, ...answer?.(role, isGradient) }),
  );
  return element("code", { className: `line ${className}` }, ...pieces);
}

/**
 * Open the dialog with the source text of the step's function.
 * @param {Explorer} explorer
 */
export function showSource(explorer) {
  const lines = linesOf(explorer),
    isBackward = explorer.direction === "backward";
  const prefix = isBackward && lines.gradient_source ? "gradient_" : "";
  const [source, file, name, lesson] = ["source", "file", "function", "lesson"].map(
    (key) => lines[prefix + key] ?? lines[key] ?? "",
  );
  const first = lines[`${prefix}line`] ?? 0;
  const marked = shownLines(explorer).lines.map((line) => line.trim());
  const rows = source.split("\n").map((/** @type {string} */ line) =>
    element("span", {
      className: marked.includes(line.trim()) ? "source marked" : "source",
      textContent: `${line}\n`,
    }),
  );
  const where = t("{file}, {name}, line {first}", { file, name, first });
  const derived = lesson ? [t("The lesson "), lessonName(explorer, lesson), t(" derives it.")] : [],
    region = { tabIndex: 0, "aria-label": t("Source text of {name}", { name }), role: "region" };
  const dialog = openDialog(where, element("p", {}, ...derived), element("pre", region, ...rows));
  dialog.querySelector(".marked")?.scrollIntoView({ block: "center" });
}
