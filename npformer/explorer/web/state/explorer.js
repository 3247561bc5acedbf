// @ts-check
// What the page shows: the view, the direction, the step, the number. All views read it, and redraw when it
// changes.
import { axisKeys, unravel } from "./axes.js";
import { Session } from "./session.js";
import { resultOf, timelineOf } from "./timeline.js";
import { blockOf } from "./sentences.js";

/**
 * @typedef {"overview" | "steps" | "attention" | "lens" | "compare" | "changes" | "slope" |
 *   "training"} ViewName
 */

export class Explorer {
  constructor() {
    this.session = new Session();
    /** @type {ViewName} */
    this.view = "overview";
    /** @type {"forward" | "backward"} */
    this.direction = "forward";
    /** @type {Moment[]} */
    this.timeline = [];
    this.position = 0;
    this.index = 0; // of the chosen number in the array of the moment
    this.isPinned = false;
    /** @type {Record<string, number>} the places of the pinned token, by what its axes count */
    this.carried = {};
    this.isLeaving = false; // whether the reader goes to another place, from which Back leads to this one
    this.isLarge = false; // the presentation size
    /** @type {(() => void)[]} */
    this.listeners = [];
    /** @type {Record<string, any>} what single views remember */
    this.memory = {};
    this.timer = 0;
    /** @type {Record<string, string>} the arrays that the views other than that of the steps show */
    this.marks = {};
    this.marked = () => {}; // what follows when another array is marked
    this.refresh();
    const { n_layers: layers } = this.session.config;
    this.goTo(`decoder.${layers - 1}.cross.attention.scores`) || this.goTo("scores") || this.goToPosition(0);
  }

  get tape() {
    return this.session.tape;
  }

  get moment() {
    return this.timeline[this.position];
  }

  /** The array that the moment is about. */
  get result() {
    return resultOf(this.moment, this.direction);
  }

  /** Values, or gradients in the backward pass. */
  get numbers() {
    return this.direction === "forward" ? this.result.data : this.result.grad;
  }

  /** The head of the chosen number; 0 in arrays without heads. */
  get head() {
    const { shape, data } = this.result;
    return shape.length === 3 ? Math.floor(this.index / (data.length / shape[0])) : 0;
  }

  /** @param {ViewName} view */
  show(view) {
    this.isLeaving = true;
    this.view = view;
    this.changed();
  }

  /** @param {() => void} listener */
  listen(listener) {
    this.listeners.push(listener);
  }

  /** Write what a view shows into the address. @type {(name: string, text: string) => void} */
  remember(name, text) {
    this.memory.shared = { ...this.memory.shared, [name]: text };
    this.memory.saveAddress?.();
  }

  /**
   * Remember which array the present view shows, for the map of the model.
   * @param {string} path
   */
  mark(path) {
    if (this.marks[this.view] === path) return;
    this.marks[this.view] = path;
    this.marked();
  }

  /** The step that the map marks: that of the view, or the moment in the view of the steps. */
  get markedStep() {
    return this.tape.names.get(this.marks[this.view]) ?? this.moment.step;
  }

  changed() {
    for (const listener of this.listeners) listener();
  }

  /** Find the same moment on a tape that was computed anew. */
  refresh() {
    const old = this.timeline.length ? this.moment : null,
      shape = old ? this.result.shape : [];
    this.timeline = timelineOf(this.tape, this.direction);
    if (!old) return;
    const same = this.timeline.findIndex(
      ({ step, which }) => step.path === old.step.path && which === old.which,
    );
    this.position = same >= 0 ? same : Math.min(this.position, this.timeline.length - 1);
    if (shape.join() === this.result.shape.join()) return;
    if (same >= 0) this.carry(shape); // the index is one of the old shape
    this.chooseLargest();
  }

  /**
   * Go to the first moment of a kind of line or of a path.
   * @param {string} name
   */
  goTo(name) {
    const byPath = this.tape.names.get(name);
    const found = this.timeline.findIndex((moment) => {
      return byPath ? resultOf(moment, this.direction) === byPath : moment.step.line === name;
    });
    if (found >= 0) this.goToPosition(found);
    return found >= 0;
  }

  /**
   * Go to the first step of a block: forward, what it computes first; backward, the first gradient that one
   * of its own operations sends on.
   * @param {string} block
   */
  goToBlock(block) {
    const found = this.timeline.findIndex(({ step }) => blockOf(step.path) === block);
    this.isLeaving = true;
    if (found >= 0) this.goToPosition(found);
  }

  /** @param {number} position */
  goToPosition(position) {
    this.carry();
    this.position = Math.max(0, Math.min(this.timeline.length - 1, position));
    this.chooseLargest();
  }

  /**
   * Remember the token and the head of the chosen number. Those of a pinned number stay pinned from step to
   * step, also past arrays that have none; of a number that is not pinned, the head stays.
   * @param {number[]} shape   that of the array for which the number was chosen
   */
  carry(shape = this.result.shape) {
    const keys = axisKeys(this.session, this.result),
      places = unravel(shape, this.index);
    if (!this.isPinned) this.carried = {};
    keys.forEach((key, axis) => {
      if (key && (this.isPinned || key === "head")) this.carried[key] = places[axis];
    });
  }

  /** @param {number} by */
  move(by) {
    this.goToPosition(this.position + by);
    this.changed();
  }

  /**
   * Choose the number with the largest absolute value: at the places that are carried, and else of the first
   * head. A score that is masked changes nothing, and is not chosen.
   */
  chooseLargest() {
    const { session, numbers, result } = this,
      { shape, op, grad } = result,
      keys = axisKeys(session, result);
    const isMasked = (/** @type {number} */ i) => op === "scores" && grad[i] === 0;
    let places = [0];
    shape.forEach((length, axis) => {
      const place = this.carried[keys[axis]] ?? (keys[axis] === "head" ? 0 : length),
        range = place < length ? [place] : Array.from({ length }, (_, i) => i);
      places = places.flatMap((before) => range.map((i) => before * length + i));
    });
    let [best] = places;
    for (const i of places) {
      if (isMasked(i) && !isMasked(best)) continue;
      if (isMasked(best) && !isMasked(i)) best = i;
      if (Number.isFinite(numbers[i]) && !(Math.abs(numbers[i]) <= Math.abs(numbers[best]))) best = i;
    }
    this.index = best;
  }

  /**
   * Go to the same step in the other pass; if a number is pinned, to its gradient or its value.
   * @param {"forward" | "backward"} direction
   */
  setDirection(direction) {
    if (direction === this.direction) return;
    if (this.isPinned && this.follow(this.result, this.index, direction, this.view)) return;
    const { step } = this.moment;
    this.carry();
    this.direction = direction;
    this.timeline = timelineOf(this.tape, direction);
    this.position = Math.max(0, this.timeline.findIndex((moment) => moment.step === step));
    this.chooseLargest();
    this.changed();
  }

  /**
   * Go to the computation of another number: forward, of a value; backward, of a gradient.
   * @param {Step} step
   * @param {number} index
   * @param {"forward" | "backward"} direction
   * @param {ViewName} view
   */
  follow(step, index, direction = this.direction, view = "steps") {
    const timeline = timelineOf(this.tape, direction);
    const found = timeline.findIndex((moment) => resultOf(moment, direction) === step);
    if (found < 0) return false;
    this.isLeaving = true;
    this.direction = direction;
    this.timeline = timeline;
    this.position = found;
    this.index = index;
    this.isPinned = true;
    this.view = view;
    this.changed();
    return true;
  }

  /** Recompute after a change of the edits, and redraw. The model's output takes longer and follows. */
  recompute() {
    this.session.run();
    this.renew();
    this.generateLater();
  }

  /** Show a tape that was computed anew. */
  renew() {
    this.refresh();
    this.changed();
  }

  generateLater() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.timer = 0;
      this.session.generate();
      this.changed();
    }, 80);
  }
}
