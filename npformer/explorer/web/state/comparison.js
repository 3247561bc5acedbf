// @ts-check
// Two texts compared: the second one that the page proposes, and the effects of its activations.
import { bestExchange } from "../engine/exchange.js";
import { comparedScore, patchingOf } from "../engine/patching.js";
import { ReaderError } from "./reader_error.js";
import { t } from "../words/text.js";

/** Return the text with its last word exchanged for another of the same kind. @param {Session} session */
export function otherText({ model, task, ids, tape, head }) {
  if (!model || !task || !ids) return "";
  const [[side, tokens]] = task.tokens(ids),
    words = head[`${side}_words`],
    isWord = (/** @type {number} */ id) => id >= task.specials && /[\p{L}\p{N}]/u.test(words[id]);
  const place = Math.max(0, tokens.findLastIndex(isWord)),
    withOther = (/** @type {number} */ id) => (isWord(id) ? task.withToken(ids, side, place, id) : null);
  const id = bestExchange(model, tape, ids, place, (other) => withOther(other)?.ids ?? null);
  return task.withToken(ids, side, place, id).texts.source;
}

/**
 * Compute the effects of the activations of another text, and what they are effects on.
 * @param {Session} session
 * @param {string} text
 * @param {import("../engine/patching.js").Activation} what
 */
export function patching(session, text, what) {
  const { model, task, ids } = session,
    edits = editsApart(session);
  if (!model || !task || !ids) return null;
  const both = /** @type {[typeof ids, typeof ids]} */ ([ids, task.otherIds(ids, text)]);
  if (JSON.stringify(both[0]) === JSON.stringify(both[1]))
    throw new ReaderError(t("Both sentences are the same: exchange a word of the second one."));
  const compared = comparedScore(model, edits, both);
  return { compared, ...patchingOf(model, edits, both, compared, what) };
}

/** Return where the activation is from that was taken over, or "". @type {(session: Session) => string} */
export function takenFrom({ edits: { values = {} } }) {
  return Object.values(values).find(({ from }) => from)?.from ?? "";
}

/** Return the changes without an activation that was taken over. @param {Session} session */
export function editsApart({ edits: { values, ...others } }) {
  const own = Object.entries(values ?? {}).filter(([, list]) => !(/** @type {any} */ (list).from));
  return own.length ? { ...others, values: Object.fromEntries(own) } : others;
}

/**
 * Read where an activation is from: its kind, its array, its place there and the other text.
 * @param {string} from   "heads|decoder.1.cross.merged|1|the dog is wide"
 */
export function readFrom(from) {
  const [what, path, place, ...text] = from.split("|");
  return { what: /** @type {any} */ (what), path, place: Number(place), text: text.join("|") };
}

/** Take over the activation that a link names. @type {(session: Session, from: string) => void} */
export function takeOver(session, from) {
  const { what, path, place, text } = readFrom(from),
    site = patching(session, text, what)?.sites.find(({ step }) => step.path === path),
    entries = session.edits.values?.[path] ?? site?.patches[place]?.entries; // a link may have them
  if (entries) session.setEdits("values", path, Object.assign(entries, { from }));
}

/**
 * Return how large the effects are at the other tokens of the array with the largest effect, and whether this
 * means that the decoder reads the encoder there directly.
 * @type {(found: {sites: {step: any, patches: {exact: number}[]}[]}, path: string, place: number) =>
 *   {most: number, isDirect: boolean}}
 */
export function othersOf({ sites }, path, place) {
  const { patches } = /** @type {typeof sites[0]} */ (sites.find(({ step }) => step.path === path)),
    most = Math.max(...patches.map(({ exact }, i) => (i === place ? 0 : Math.abs(exact)))),
    isLast = sites.findLast(({ step }) => /^encoder\.\d+\.(add|norm)/.test(step.path))?.step.path === path;
  return { most, isDirect: isLast && most < 0.05 * Math.abs(patches[place].exact) };
}
