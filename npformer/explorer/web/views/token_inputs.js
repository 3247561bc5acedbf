// @ts-check
// The tokens of the sentence as fields, in which each can be replaced by another of the vocabulary.
import { byId, element, replaceContent, textInput } from "../drawing/page_elements.js";
import { t } from "../words/text.js";

/** @typedef {import("../state/explorer.js").Explorer} Explorer */

/**
 * Show the tokens as fields. While the tokens stay the same, the fields stay too if the focus is in one of
 * them: the reader may be typing there when the model's output, which follows a change after a moment, is
 * drawn.
 * @type {(explorer: Explorer, parent: HTMLElement) => void}
 */
export function renderTokens(explorer, parent) {
  const shown = JSON.stringify(explorer.session.ids);
  if (shown === parent.dataset.shown && parent.contains(document.activeElement)) return;
  parent.dataset.shown = shown;
  replaceContent(parent, ...tokenInputs(explorer));
}

/**
 * Make a row of fields for each side.
 * @param {Explorer} explorer
 */
function tokenInputs(explorer) {
  const { ids, task } = explorer.session;
  if (!ids) return [];
  const sides = task?.tokens(ids) ?? [];
  return sides.map(([name, list]) =>
    element("div", { className: "tokens" }, ...list.map((id, t) => tokenInput(explorer, name, t, id))),
  );
}

/** @type {(explorer: Explorer, side: "source" | "target", position: number, id: number) => any} */
function tokenInput(explorer, side, position, id) {
  const { session } = explorer,
    words = session.head[`${side}_words`];
  const of = session.ids?.source.length ? `${side} ` : "";
  const input = textInput({
    value: words[id],
    size: Math.max(3, words[id].length),
    list: `${side}-words`,
    "aria-label": t("{of}token {position}", { of, position: position + 1 }),
  });
  input.addEventListener("change", () => {
    const found = session.task?.tokenId(side, input.value) ?? -1;
    if (found < 0) {
      const near = (session.task?.similar(side, input.value) ?? []).filter(Boolean);
      const advice = near.length ? t(": try {near}.", { near: near.join(t(", ")) }) : t(".");
      byId("message").textContent =
        t("The model does not know “{typed}”", { typed: input.value }) + advice;
      return;
    }
    byId("message").textContent = "";
    session.setToken(side, position, found);
    explorer.recompute();
  });
  return input;
}
