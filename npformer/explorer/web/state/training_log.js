// @ts-check
// The training steps of a reader in the address of the page: a link makes them again, one after the other.
import { ReaderError } from "./reader_error.js";
import { t } from "../words/text.js";

/** The largest number of training steps in a link: some seconds of work for the model of the tour. */
export const MOST_LINKED = 100;

/**
 * Return the training steps as JSON: for each group of equal steps the optimizer, the learning rate, their
 * number, and their tokens and changes if those are not the present ones. Return "" if there are too many.
 * @param {{log: Session["log"], state: string}} session   with the present tokens and changes
 */
export function trainingText({ log, state: present }) {
  if (!log.length || log.length > MOST_LINKED) return "";
  /** @type {any[][]} */
  const groups = [];
  log.forEach(({ name, lr, state }, i) => {
    const last = log[i - 1];
    if (last?.name === name && last.lr === lr && last.state === state) groups[groups.length - 1][2]++;
    else groups.push([name, lr, 1, ...(state === present ? [] : [JSON.parse(state)])]);
  });
  return JSON.stringify(groups);
}

/**
 * Make the training steps of a link. The tokens and changes of the session are the same afterwards.
 * @param {Session} session
 * @param {string} text   what trainingText returned
 * @param {(state: any) => {ids: any, edits: any}} checked   returns tokens and changes of a group, checked
 */
export function repeatTraining(session, text, checked) {
  const groups = JSON.parse(text);
  const isRight = (/** @type {any} */ group) =>
    Array.isArray(group) &&
    ["gradient descent", "adam"].includes(group[0]) &&
    Number.isFinite(group[1]) &&
    group[1] > 0 &&
    Number.isInteger(group[2]) &&
    group[2] > 0;
  if (!Array.isArray(groups) || !groups.every(isRight)) {
    throw new ReaderError(t("its training steps cannot be read."));
  }
  const count = groups.reduce((sum, group) => sum + group[2], 0);
  if (count > MOST_LINKED) {
    throw new ReaderError(
      t("it has {count} training steps, and a page repeats at most {most}; the model is untrained.", {
        count,
        most: MOST_LINKED,
      }),
    );
  }
  const { ids, edits } = session;
  for (const [name, lr, times, state] of groups) {
    Object.assign(session, state ? checked(state) : { ids, edits });
    session.run();
    for (let i = 0; i < times; i++) {
      if (session.log.length === count - 1) session.generate(); // the last step is compared with this output
      session.optimize(lr, name);
    }
  }
  Object.assign(session, { ids, edits });
  session.run();
}
