// @ts-check
// Why the gradient of a row is large: how large that of each row is, from which predictions it comes, and
// through which blocks.
import { byId, element, follower, replaceContent, shareBar, titled } from "../drawing/page_elements.js";
import { gradientsByPosition } from "../engine/position_losses.js";
import { behindSums, sendersOf, shareOf } from "../arithmetic/row_sources.js";
import { isExplained } from "../state/recorded.js";
import { blockOf, blockTitle } from "../state/sentences.js";
import { tokensOf } from "../state/axes.js";
import { numberText, visibleText } from "../drawing/number_texts.js";
import { rowName, rowNormsOf, rowNormsSentence } from "./row_norms.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */
/** @typedef {import("../engine/tape.js").Step} Step */
/** @typedef {{label: string, share: number, text?: string, loss?: number, act?: () => void}} Share */

const MOST_SHARES = 6;
const LEAST_SHARE = 0.01; // in the answer: the list has all shares

export class GradientSources {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    /** @type {import("./row_norms.js").RowNorms | null} */
    this.rowNorms = null;
    this.known = {}; // the tape, the array and the row of the content
    byId("why").addEventListener("toggle", () => this.fill());
  }

  /** @param {import("../drawing/slices.js").Slice | undefined} slice   the grid of the result */
  render(slice) {
    this.rowNorms = slice ? rowNormsOf(this.explorer, slice) : null;
    byId("row-norms").textContent = this.rowNorms ? rowNormsSentence(this.rowNorms) : "";
    this.renderRow();
  }

  /** The row that is explained: that of the pinned number, or the largest one. */
  get row() {
    const { rowNorms, explorer } = this;
    if (!rowNorms) return -1;
    const { rows, slice, norms } = rowNorms,
      pinned = Math.floor((explorer.index - slice.start) / slice.stride);
    return explorer.isPinned && rows.includes(pinned) && norms[pinned] > 0 ? pinned : rows[0];
  }

  renderRow() {
    const { rowNorms, row } = this,
      isShown = rowNorms !== null && rowNorms.norms[row] > 0;
    byId("why").hidden = !isShown;
    if (!isShown) return;
    const name = rowName(rowNorms.slice, row);
    byId("why").querySelector("summary").textContent =
      row === rowNorms.rows[0]
        ? t("Why is the gradient of {name} the largest?", { name })
        : t("Where the gradient of {name} comes from", { name });
    this.fill();
  }

  /** Write the answer, if it is unfolded. */
  fill() {
    const { rowNorms, row, explorer } = this,
      { tape } = explorer;
    if (!byId("why").open || !rowNorms || row < 0) return;
    const { step, start, stride } = rowNorms.slice,
      known = { tape, step, place: start + row * stride };
    if (Object.entries(known).every(([name, value]) => /** @type {any} */ (this.known)[name] === value))
      return;
    this.known = known;
    const predictions = this.predictions(step, known.place, stride),
      blocks = this.blocks(step, known.place, stride);
    const lists = /** @type {[string, Share[]][]} */ ([
      [t("From which predictions it comes"), predictions],
      [t("Through which blocks it comes"), blocks],
      [t("The L2 norm of each row"), this.norms()],
    ]);
    const shown = lists.filter(([, list]) => list.length).map(([title, list]) => sharesList(title, list));
    replaceContent(
      byId("why").querySelector("div"),
      element("p", {}, answer(rowName(rowNorms.slice, row), predictions, blocks, explorer.session.loss)),
      element("div", { className: "reasons" }, ...shown),
    );
  }

  /**
   * Return how much of the gradient of a row comes from the loss of each position.
   * @param {Step} step
   * @param {number} start
   * @param {number} width
   * @returns {Share[]}
   */
  predictions({ path, grad }, start, width) {
    const { session } = this.explorer,
      { model, ids } = session;
    if (!model || !ids) return [];
    const whole = grad.subarray(start, start + width);
    const read = tokensOf(session, "target"),
      predicted = tokensOf(session, "predicted");
    const losses = this.explorer.tape.names.get("loss.losses")?.data;
    const shares = gradientsByPosition(model, ids, session.edits, path).map((part, place) => ({
      label: t("“{predicted}” after “{read}”", {
        predicted: visibleText(predicted[place]),
        read: visibleText(read[place]),
      }),
      share: shareOf(part.subarray(start, start + width), whole),
      loss: losses?.[place],
    }));
    return sortedShares(shares.filter(({ share }) => share !== 0));
  }

  /**
   * Return how much of the gradient of a row comes through each block that uses the row's array.
   * @param {Step} step
   * @param {number} start
   * @param {number} width
   * @returns {Share[]}
   */
  blocks(step, start, width) {
    const { explorer } = this,
      { tape } = explorer,
      from = behindSums(tape, step);
    if (!isExplained(tape, from, "backward")) return [];
    /** @type {Map<string, Share>} */
    const shares = new Map();
    for (const { step: sender, share } of sendersOf(tape, from, start, width)) {
      const block = sender ? blockOf(sender.path) : "",
        known = shares.get(block);
      if (known) known.share += share;
      else
        shares.set(block, {
          label: blockLabel(sender, tape),
          share,
          act: sender
            ? () => explorer.follow(sender, Math.min(explorer.index, sender.data.length - 1))
            : undefined,
        });
    }
    return sortedShares([...shares.values()]);
  }

  /** @returns {Share[]} */
  norms() {
    const { slice, rows, norms } = /** @type {import("./row_norms.js").RowNorms} */ (this.rowNorms);
    return rows.map((row) => ({
      label: rowName(slice, row),
      share: norms[row] / norms[rows[0]],
      text: numberText(norms[row]),
    }));
  }
}

/** @type {(sender: Step | null, tape: import("../engine/tape.js").Tape) => string} */
function blockLabel(sender, tape) {
  if (!sender) return t("all other tokens of the vocabulary");
  const title = blockTitle(blockOf(sender.path), tape);
  return sender.line === "residual" ? t("{title}, the residual connection", { title }) : title;
}

/** @param {Share[]} shares */
function sortedShares(shares) {
  return shares.sort((a, b) => Math.abs(b.share) - Math.abs(a.share));
}

/** @param {number} share */
function percentText(share) {
  const digits = (100 * share).toFixed(0);
  return `${digits === "-0" ? 0 : digits.replace("-", "−")} %`;
}

/**
 * Return the answer in one sentence for each list.
 * @param {string} name   of the row
 * @param {Share[]} predictions
 * @param {Share[]} blocks
 * @param {number} loss   of the whole text
 */
function answer(name, predictions, blocks, loss) {
  const listed = (/** @type {Share[]} */ list) =>
    list.map(({ label, share }) => label + t(" ({name})", { name: percentText(share) })).join(t(", "));
  const [first] = predictions,
    [most] = blocks,
    largest = predictions.slice(0, 3).filter(({ share }, i) => !i || Math.abs(share) >= LEAST_SHARE);
  return [
    first
      ? t("Most of the gradient of {name} comes from the {count}: {listed}.", {
          name,
          count: largest.length > 1 ? t("losses of these predictions") : t("loss of this prediction"),
          listed: listed(largest),
        })
      : "",
    first?.loss !== undefined
      ? t("The loss of {label} is {loss}; the mean of all losses is {mean}.", {
          label: first.label,
          loss: numberText(first.loss),
          mean: numberText(loss),
        })
      : "",
    most
      ? t("{share} of it comes through {label}.", { share: percentText(most.share), label: most.label })
      : "",
    t("The shares of a list add up to 100 %; a negative one points against the whole."),
  ]
    .filter(Boolean)
    .join(" ");
}

/** @type {(title: string, list: Share[]) => any} */
function sharesList(title, list) {
  const rest = list.slice(MOST_SHARES),
    most = Math.max(...list.map(({ share }) => Math.abs(share)));
  const items = list.slice(0, MOST_SHARES).map(({ label, share, text, act }) => {
    const number = element("span", {}, text ?? percentText(share));
    return element("li", {}, follower(label, act, t("Go to its gradient")), shareBar(share / most), number);
  });
  if (rest.length) {
    const sum = rest.reduce((total, { share }) => total + share, 0),
      isSum = !rest[0].text,
      more = t("{count} more", { count: rest.length }) + (isSum ? t(" together") : "");
    const cells = [more, isSum ? percentText(sum) : ""].map((text) => element("span", {}, text));
    items.push(element("li", { className: "rest" }, ...cells));
  }
  return titled("div", title, element("ul", { className: "shares" }, ...items));
}
