// @ts-check
// The arithmetic of the chosen number: its largest terms, their sum, and all terms on demand.
import { element, follower, signedBar, table } from "../drawing/page_elements.js";
import { sumOf, terms } from "../arithmetic/terms.js";
import { isExplained, whyUnexplained } from "../state/recorded.js";
import { numberText } from "../drawing/number_texts.js";
import { placeText, unravel } from "../state/axes.js";
import { resultOf } from "../state/timeline.js";
import { counted, t } from "../words/text.js";

const SHOWN = 5;

/**
 * Return the terms of the chosen number, or null where a recorded page does not know them.
 * @type {(explorer: Explorer) => Explanation | null}
 */
export function explanationOf(explorer) {
  const { tape, result, index, direction } = explorer;
  return isExplained(tape, result, direction) ? terms(tape, result, index, direction) : null;
}

/**
 * Return the name of the chosen number, or of another one: "scores, query “était”, key “tired”".
 * @type {(explorer: Explorer, of?: Pick<Explorer, "result" | "index" | "direction">) => string}
 */
export function numberName(explorer, { result, index, direction } = explorer) {
  const place = placeText(explorer.session, result, index),
    name = shortPath(explorer, result.path);
  const of = direction === "forward" ? "" : t("Gradient of the loss with respect to ");
  return `${of}${name}${place && t(", ") + place}`;
}

/** What the linear layers before the heads compute, by their number. */
const PROJECTIONS = [
  [t("query, key and value")],
  [t("query"), t("key and value")],
  [t("query"), t("key"), t("value")],
];

/**
 * Return the last part of a path, with the one before where it says more: "query projection, y".
 * @type {(explorer: Explorer, path: string) => string}
 */
export function shortPath({ tape }, path) {
  const [, layer, place, name] = path.match(/^(.*)\.projections\.([0-2])\.(\w+)$/) ?? [];
  if (name) {
    const has = (/** @type {number} */ i) =>
      tape.steps.some((step) => step.path.startsWith(`${layer}.projections.${i}.`));
    return t("{of} projection, {name}", { of: PROJECTIONS[[2, 1, 0].find(has) ?? 2][Number(place)], name });
  }
  const parts = path.split("."),
    last = parts.pop() ?? path;
  return /^(y|x|product|weight|bias|sum|gain|mean|rstd|xhat|table)$/.test(last)
    ? [...parts.slice(-2), last].filter(Boolean).join(".")
    : last;
}

/**
 * Return the whole arithmetic as one sentence, for screen readers.
 * @type {(explorer: Explorer, explanation: Explanation | null) => string}
 */
export function arithmeticSentence(explorer, explanation) {
  const value = numberText(explorer.numbers[explorer.index]);
  if (!explanation) return t("{name} is {value}.", { name: numberName(explorer), value });
  const count = explanation.terms.length,
    times = explanation.scale.value === 1 ? "" : t("{scale} times ", { scale: scaleText(explanation) });
  const sum = times + counted(count, t("the sum of {count} term"), t("the sum of {count} terms"));
  const values = { name: numberName(explorer), value, sum, equation: equation(explanation) },
    told = t("{name} is {value}, {sum}: {equation}", values);
  return [told, innerText(explanation)].filter(Boolean).join(t(". "));
}

/**
 * Return the sum on which a factor depends: "The sum of the exponentials …: 1.000 + 0.234 + … ≈ 3.270".
 * @param {Explanation} explanation
 */
function innerText({ inner }) {
  return inner ? `${inner.name}${t(": ")}${sumText(inner.terms)} ≈ ${numberText(sumOf(inner.terms))}` : "";
}

/**
 * Return the first products and the sum: "0.41 · −1.20 + 0.07 · 0.93 + … ≈ −0.38".
 * @param {Explanation} explanation
 */
function equation({ terms: list, scale, number }) {
  const inside = sumText(list);
  return `${scale.value === 1 ? inside : `(${inside}) · ${numberText(scale.value)}`} ≈ ${numberText(number)}`;
}

/** @param {Term[]} list */
function sumText(list) {
  const products = sorted(list)
    .slice(0, 3)
    .map(productText)
    .map((text) => (/^−.* · /.test(text) ? `(${text})` : text));
  return (products.join(" + ") || "0") + (list.length > 3 ? " + …" : "");
}

/**
 * Return the factor of the sum with its formula: "0.204 = 1/√24".
 * @param {Explanation} explanation
 */
function scaleText({ scale: { value, name } }) {
  return name ? `${numberText(value)} = ${name}` : numberText(value);
}

/** @param {Term} term */
function productText({ factors }) {
  const texts = factors.map(({ value, divisor }, i) =>
    divisor ? ` / ${numberText(divisor)}` : (i ? " · " : "") + numberText(value),
  );
  return texts.join("");
}

/** @param {Term[]} list */
function sorted(list) {
  return [...list].sort((a, b) => Math.abs(b.value) - Math.abs(a.value));
}

/**
 * Make the explanation: the number, the equation and the largest terms, each of which leads to its own
 * computation.
 * @type {(explorer: Explorer, explanation: Explanation | null) => any[]}
 */
export function arithmetic(explorer, explanation) {
  const value = numberText(explorer.numbers[explorer.index]);
  const head = element(
    "p",
    { className: "number" },
    `${numberName(explorer)}${t(": ")}`,
    element("output", { textContent: value }),
    explorer.isPinned ? element("small", { textContent: t(" pinned until you click it again") }) : "",
  );
  if (!explanation) {
    const textContent = whyUnexplained(explorer.tape, explorer.result, explorer.direction);
    return [head, element("p", { textContent })];
  }
  const list = sorted(explanation.inner?.terms ?? explanation.terms),
    rest = list.slice(SHOWN);
  const most = Math.abs(list[0]?.value ?? 1) || 1;
  const items = list.slice(0, SHOWN).map((term) => termRow(explorer, term, most, list));
  if (rest.length) {
    const texts = [t("{count} more together", { count: rest.length }), numberText(sumOf(rest))],
      cells = texts.map((text) => element("span", {}, text));
    items.push(element("li", { className: "rest" }, ...cells));
  }
  const { terms: all, scale } = explanation,
    isPlain = all.length === 1 && all[0].factors.length === 1 && scale.value === 1,
    inner = innerText(explanation);
  return [
    head,
    element("p", { className: "equation", textContent: isPlain ? "" : equation(explanation) }),
    ...(inner ? [element("p", { className: "inner", textContent: inner })] : []),
    element("ul", { className: "terms" }, ...items),
  ];
}

/** @type {(explorer: Explorer, term: Term, most: number, all: Term[]) => any} */
function termRow(explorer, term, most, all) {
  const label = termLabel(explorer, term, all),
    named = follower(label, targetOf(explorer, term), t("Show how this number was computed"));
  const names = term.factors.map(({ name }) => name).filter(Boolean),
    product = element("span", { title: names.join(", ") }, productText(term)),
    value = element("span", {}, numberText(term.value));
  return element("li", {}, named, signedBar(term.value / most), product, value);
}

/**
 * Return the name of a term: what distinguishes it from the other terms. That is its place on the axes on
 * which the terms differ, and its array if they come from several.
 * @type {(explorer: Explorer, term: Term, all: Term[]) => string}
 */
function termLabel(explorer, { step, index, factors }, all) {
  const { session, direction, result } = explorer;
  if (!step) return factors[0].name;
  if (step === result && direction === "forward") return factors[0].name || t("given");
  const others = all.filter((other) => other.step === step).map((other) => unravel(step.shape, other.index));
  const differs = step.shape.map((_, axis) => others.some((places) => places[axis] !== others[0][axis]));
  const place = placeText(session, step, index, others.length > 1 ? differs : undefined);
  return others.length === all.length && place
    ? place
    : `${shortPath(explorer, step.path)}${place && t(", ") + place}`;
}

/**
 * Return the function that shows how the number of a term was computed, or null if nothing computed it.
 * @type {(explorer: Explorer, term: Term) => (() => boolean) | null}
 */
function targetOf(explorer, { step, index }) {
  if (!step || (step === explorer.result && explorer.direction === "forward")) return null;
  const isThere =
    explorer.direction === "forward"
      ? step.inputs.length > 0
      : explorer.timeline.some((moment) => resultOf(moment, "backward") === step);
  return isThere ? () => explorer.follow(step, index) : null;
}

/** Make the table of all terms. @type {(explorer: Explorer, explanation: Explanation) => any[]} */
export function allTerms(explorer, explanation) {
  const count = explanation.terms.length;
  const { scale, number } = explanation,
    values = { sum: numberText(explanation.sum), scale: scaleText(explanation), number };
  const result =
    scale.value === 1
      ? t("The sum is {number}.", values)
      : t("The sum is {sum}; times {scale}, it is {number}.", values);
  return [
    element("p", { textContent: t("All {count} terms in their order. {result}", { count, result }) }),
    termTable(explorer, explanation.terms),
    ...(explanation.inner
      ? [element("p", { textContent: innerText(explanation) }), termTable(explorer, explanation.inner.terms)]
      : []),
  ];
}

/** @type {(explorer: Explorer, list: Term[]) => any} */
function termTable(explorer, list) {
  const rows = list
    .slice(0, 600)
    .map((term) => [
      termLabel(explorer, term, list),
      term.factors.map((one) => numberText(one.value) + (one.name && t(" ({name})", one))).join(" · "),
      numberText(term.value),
    ]);
  return table([t("Term"), t("Factors"), t("Product")], rows);
}
