// @ts-check
// What the changes of a reader are compared with, in the address of the page.
import { copyParameters } from "../engine/optimizers.js";
import { checkedEdits } from "./checked_edits.js";
import { repeatTraining, trainingText } from "./training_log.js";

/** @typedef {import("./session.js").Session} Session */

/**
 * Return the state before the changes as JSON: its tokens if they are not the present ones, its changes and
 * its training steps. Return "" if it is that of the sentence without any change.
 * @param {Session} session
 */
export function baselineText({ baseline, ids: present }) {
  const { ids, edits } = JSON.parse(baseline.state),
    training = trainingText(baseline);
  const parts = {
    ...(JSON.stringify(ids) === JSON.stringify(present) ? {} : { ids }),
    ...(Object.keys(edits).length ? { edits } : {}),
    ...(training ? { training } : {}),
  };
  return Object.keys(parts).length ? JSON.stringify(parts) : "";
}

/**
 * Compute the state that baselineText wrote, and compare with it. Afterwards, the session is as it was, and
 * its model is untrained.
 * @type {(session: Session, text: string) => void}
 */
export function readBaseline(session, text) {
  const { model, task, ids, edits } = session;
  if (!text || !model) return;
  const parts = JSON.parse(text),
    start = copyParameters(model.parameters);
  const checked = (/** @type {any} */ state) => ({
    ids: task?.fits(state?.ids) ? state.ids : ids,
    edits: checkedEdits(session, state?.edits),
  });
  try {
    Object.assign(session, checked(parts));
    if (parts?.training) repeatTraining(session, parts.training, checked);
    session.run();
    session.setBaseline();
  } finally {
    Object.assign(session, { ids, edits });
    session.restart(start);
    session.generate();
  }
}
