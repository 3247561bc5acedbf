// @ts-check
// The controls of the view of attention: what the maps show, which map is large, which heads the lines show.
import { byId, button, choice, element, replaceContent } from "../drawing/page_elements.js";
import { HEAD_COLORS } from "../drawing/colors.js";
import { QUANTITIES, namesOf } from "./attention_maps.js";
import { t } from "../words/text.js";

export class AttentionControls {
  /** @param {AttentionView} view */
  constructor(view) {
    this.view = view;
    this.root = byId("attention-controls");
    this.heads = byId("lines-controls");
  }

  render() {
    const { view } = this,
      { sublayers, chosen, sublayer, head } = view,
      isOff = view.isOff(sublayer, head);
    const pairs = this.allHeads.map((h) => /** @type {[number, string]} */ ([h, String(h)]));
    replaceContent(
      this.root,
      choice(t("quantity"), QUANTITIES, view.quantity, (quantity) => this.set({ quantity })),
      choice(t("attention"), namesOf(sublayers), sublayer, (name) => this.set({ sublayer: name })),
      element(
        "span",
        {},
        t("head "),
        choice(t("head of the map"), pairs, head, (h) => this.set({ head: h, lineHeads: [] })),
      ),
      button(t("Show how this number was computed"), () => view.follow()),
      button(isOff ? t("Switch this head on") : t("Switch this head off"), () => this.switchHead(), {
        id: "switch-head",
        hidden: !view.explorer.session.isLive,
      }),
    );
    const isAll = view.lineHeads.length === chosen.weights.shape[0];
    replaceContent(
      this.heads,
      element(
        "div",
        { className: "choice head-colors", role: "group", "aria-label": t("Heads of the lines") },
        t("heads "),
        ...this.allHeads.map((h) => this.lineButton(h)),
      ),
      button(t("All heads"), () => this.set({ lineHeads: isAll ? [] : this.allHeads }), {
        "aria-pressed": isAll,
        id: "all-heads",
      }),
    );
  }

  /** The numbers of all heads of the chosen attention. */
  get allHeads() {
    return Array.from({ length: this.view.chosen.weights.shape[0] }, (_, h) => h);
  }

  /** @param {number} head */
  lineButton(head) {
    const { view } = this,
      shown = view.shownHeads,
      isShown = shown.includes(head);
    const others = shown.filter((h) => h !== head);
    return button(
      String(head),
      () => this.set({ lineHeads: isShown ? others : [...others, head].sort((a, b) => a - b) }),
      {
        "aria-pressed": isShown,
        "aria-label": t("Lines of head {head}", { head }),
        styles: { borderBottom: `4px solid ${HEAD_COLORS[head % HEAD_COLORS.length]}` },
      },
    );
  }

  /**
   * Change what the view shows.
   * @param {Record<string, any>} change
   */
  set(change) {
    Object.assign(this.view, change);
    this.view.explorer.changed();
  }

  switchHead() {
    const { sublayer, head, explorer } = this.view;
    explorer.session.switchHead(sublayer, head);
    explorer.recompute();
    byId("switch-head").focus({ preventScroll: true }); // its text has changed
  }
}
