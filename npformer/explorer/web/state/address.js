// @ts-check
// The state of the page in its address, so that a link shows the same view.
import { checkedEdits } from "./checked_edits.js";
import { editsApart, takeOver, takenFrom } from "./comparison.js";
import { chooseSentence, chosenSentence } from "./recorded.js";
import { ReaderError } from "./reader_error.js";
import { repeatTraining, trainingText } from "./training_log.js";
import { Translation } from "./translation.js";
import { t } from "../words/text.js";

/** The views, which are sections of the page. */
export const VIEWS = ["overview", "steps", "attention", "lens", "compare", "changes", "slope", "training"];

/**
 * Return whether a view can show anything on this page: a recorded page computes nothing.
 * @type {(session: Session, view: string) => boolean}
 */
export function isThere({ isLive, head, tape }, view) {
  if (view === "attention") return [...tape.names.keys()].some((name) => name.endsWith(".attention.weights"));
  if (view === "lens" && head.predictions) return true;
  return ["overview", "steps"].includes(view) || (isLive && VIEWS.includes(view));
}

/** The names in an address. Another one, such as that of an element, says nothing about the state. */
const ADDRESS_NAMES = ["source", "target", "ids", "training", "edits", "view", "direction", "step", "index"];

/**
 * What single views write into explorer.memory.shared, and the only view whose link has it (null: all links).
 * @type {Record<string, string | null>}
 */
const SHARED = {
  map: null,
  find: "attention",
  lens: "lens",
  slope: "slope",
  compare: "compare",
  mask: "changes",
  open: "steps",
};

/** Return the part of the address behind "#". @type {(explorer: Explorer) => string} */
export function addressOf(explorer) {
  const { session, view, direction, moment, index } = explorer;
  const parts = new URLSearchParams();
  if (session.isLive) {
    parts.set("source", session.texts.source);
    if (!session.isOwnOutput) parts.set("target", session.texts.target);
    // the text of a language model says which tokens it has
    const isChanged = JSON.stringify(session.ids) !== session.firstIds;
    if (isChanged && session.task instanceof Translation) parts.set("ids", idsText(session));
    if (trainingText(session)) parts.set("training", trainingText(session));
    // an activation that was taken over is computed again from where it is from, unless training changed that
    const from = takenFrom(session),
      edits = session.log.length ? session.edits : editsApart(session);
    if (Object.keys(edits).length) parts.set("edits", JSON.stringify(edits));
    if (from) parts.set("taken", from);
  } else if (chosenSentence(session) > 0) parts.set("saved", String(chosenSentence(session)));
  parts.set("view", view);
  parts.set("direction", direction);
  parts.set("step", moment.step.path);
  if (moment.which) parts.set("input", String(moment.which));
  parts.set("index", String(index));
  if (explorer.isPinned) parts.set("pinned", "1");
  if (explorer.isLarge) parts.set("large", "1");
  for (const [name, owner] of Object.entries(SHARED)) {
    const text = explorer.memory.shared?.[name];
    if (text && (owner === null || owner === view)) parts.set(name, text);
  }
  return parts.toString();
}

/** Return whether an address says anything about the state of the page. @type {(hash: string) => boolean} */
export function isAddress(hash) {
  const parts = new URLSearchParams(hash.replace(/^#/, ""));
  return ADDRESS_NAMES.some((name) => parts.has(name));
}

/**
 * Show what an address says. Parts that do not fit the page are ignored.
 * @type {(explorer: Explorer, hash: string) => void}
 */
export function readAddress(explorer, hash) {
  if (!isAddress(hash)) return;
  const parts = new URLSearchParams(hash.replace(/^#/, "")),
    { session } = explorer;
  try {
    if (session.isLive) readSession(session, parts);
    else if (parts.has("saved")) chooseSentence(session, Number(parts.get("saved")));
  } catch (error) {
    if (!(error instanceof ReaderError || error instanceof SyntaxError)) throw error;
    explorer.memory.message = t("The link could not be read whole: {message}", { message: error.message });
  }
  explorer.refresh();
  showPlace(explorer, parts);
  explorer.isLarge = parts.get("large") === "1";
  explorer.memory.shared = Object.fromEntries(
    Object.keys(SHARED).flatMap((name) => (parts.has(name) ? [[name, parts.get(name)]] : [])),
  );
}

/**
 * Show the view, the step and the number of an address, with the sentence and the changes as they are.
 * @type {(explorer: Explorer, parts: URLSearchParams) => void}
 */
export function showPlace(explorer, parts) {
  const { session } = explorer,
    view = parts.get("view") ?? "";
  explorer.isPinned = false;
  explorer.view = /** @type {any} */ (isThere(session, view) ? view : "steps");
  explorer.setDirection(parts.get("direction") === "backward" ? "backward" : "forward");
  const which = Number(parts.get("input") ?? 0);
  const step = explorer.tape.names.get(parts.get("step") ?? "");
  const position = explorer.timeline.findIndex((moment) => moment.step === step && moment.which === which);
  if (position >= 0) explorer.goToPosition(position);
  const index = Number(parts.get("index") ?? -1);
  if (Number.isInteger(index) && index >= 0 && index < explorer.result.data.length) explorer.index = index;
  explorer.isPinned = parts.get("pinned") === "1";
}

/**
 * Compute what an address says: the sentences, the training steps and the changes, in this order.
 * @type {(session: Session, parts: URLSearchParams) => void}
 */
function readSession(session, parts) {
  const source = parts.get("source"),
    target = parts.get("target"),
    { task } = session,
    ids = task instanceof Translation ? readIds(task, parts.get("ids") ?? "") : null;
  if (task instanceof Translation && ids) useIds(session, task, ids, source, target);
  else if (source !== null && (source !== session.texts.source || target !== null))
    session.setSentence(source, target);
  const edits = parts.get("edits"),
    training = parts.get("training"),
    from = parts.get("taken");
  if (!edits && !training && !from) return;
  try {
    if (edits) session.edits = checkedEdits(session, JSON.parse(edits));
    if (training) {
      repeatTraining(session, training, (state) => ({
        ids: task?.fits(state?.ids) ? state.ids : session.ids,
        edits: checkedEdits(session, state?.edits),
      }));
      session.untaught = null;
    }
    if (from) takeOver(session, from);
  } finally {
    session.run(); // also what comes before a part that cannot be read
    session.generate();
  }
}

/**
 * Return the ids of all tokens: "source.4.5.3_targetIn.2.7_targetOut.7.3".
 * @param {Session} session
 */
function idsText({ ids }) {
  const lists = Object.entries(ids ?? {});
  return lists.map(([name, list]) => [name, ...list].join(".")).join("_");
}

/**
 * Return the ids that idsText wrote, or null if they do not fit the page.
 * @type {(task: Translation, text: string) => { [k: string]: number[]; } | null}
 */
function readIds(task, text) {
  const lists = text.split("_").map((list) => list.split("."));
  const ids = Object.fromEntries(lists.map(([name, ...numbers]) => [name, numbers.map(Number)]));
  return task.fits(ids) ? ids : null;
}

/**
 * Use tokens that no text may give: a reader has replaced some of them, or the model predicted them.
 * @param {Session} session
 * @param {Translation} task
 * @param {any} ids
 * @param {string | null} source   the text that the reader typed, if the tokens are still its own
 * @param {string | null} target
 */
function useIds(session, task, ids, source, target) {
  session.ids = ids;
  session.isOwnOutput = target === null;
  session.texts = {
    source: textFor(task, source, ids.source, "source"),
    target: textFor(task, target, ids.targetOut, "target"),
  };
  session.run();
  session.setBaseline();
}

/**
 * Return a text if it has these tokens, and otherwise the text of the tokens.
 * @type {(task: Translation, text: string | null, ids: number[], side: "source" | "target") => string}
 */
function textFor(task, text, ids, side) {
  try {
    if (text !== null && task.idsOf(text, side).join() === ids.join()) return text;
  } catch (error) {
    if (!(error instanceof ReaderError)) throw error;
  }
  return task.textOf(ids, side);
}
