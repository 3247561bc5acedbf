// @ts-check
// The views of attention: all maps of all layers and heads, one of them large, and lines between the words.
import { byId, tell } from "../drawing/page_elements.js";
import { AttentionControls } from "./attention_controls.js";
import { AttentionGrid, paintMap } from "./attention_grid.js";
import { CellGrid } from "../drawing/cell_grid.js";
import { HeadFinder } from "./head_finder.js";
import { AttentionLines } from "./attention_lines.js";
import { NeuronView } from "./neuron_view.js";
import { addressOfMap, mapFromAddress } from "./attention_address.js";
import { mapOf, sublayersOf } from "./attention_maps.js";
import { numberText } from "../drawing/number_texts.js";
import { t } from "../words/text.js";

export class AttentionView {
  /** @param {Explorer} explorer */
  constructor(explorer) {
    this.explorer = explorer;
    this.sublayer = "";
    this.head = 0;
    this.quantity = "weights";
    /** @type {number[]} the heads of the lines between the words; none for the chosen head alone */
    this.lineHeads = [];
    this.cell = [0, 0]; // the query and the key of the chosen weight
    this.isPinned = false; // whether the pointer leaves the chosen weight as it is
    this.sentence = byId("attention-told");
    this.note = byId("attention-off");
    this.all = new AttentionGrid(this);
    this.one = new CellGrid({
      id: "attention-map",
      sizes: [7, 40],
      isWide: true,
      content: () => ({ rows: this.chosen.rows, columns: this.chosen.keys, cell: this.cell }),
      paint: (surface, theme, { x, y, width, height }) =>
        paintMap(surface, theme, this.map, x, y, width, height, width >= 30),
      choose: (row, column, kind) => this.pointCell(row, column, kind),
      enter: () => this.follow(),
    });
    this.lines = new AttentionLines(this);
    this.neurons = new NeuronView(this);
    this.finder = new HeadFinder(this);
    this.controls = new AttentionControls(this);
    byId("all-maps").append(this.all.picture.root);
    byId("one-map").append(this.one.picture.root);
    byId("attention").append(this.lines.picture.root, this.neurons.root);
  }

  get sublayers() {
    return sublayersOf(this.explorer);
  }

  get chosen() {
    const { sublayers } = this;
    return sublayers.find(({ name }) => name === this.sublayer) ?? sublayers[sublayers.length - 1];
  }

  /** The heads whose lines are drawn: those that the reader chose, or the head of the map. */
  get shownHeads() {
    const known = this.lineHeads.filter((head) => head < this.chosen.weights.shape[0]);
    return known.length ? known : [this.head];
  }

  /** @returns {AttentionMap} */
  get map() {
    return mapOf(this.sublayers, this.chosen, this.head, /** @type {any} */ (this.quantity));
  }

  render() {
    const { explorer } = this,
      shared = explorer.memory.shared;
    if (explorer.memory.isNewPin) {
      explorer.memory.isNewPin = false;
      this.finder.render();
      this.finder.choose(); // shows the head that attends most from the pinned token, and renders anew
      return;
    }
    if (!this.sublayer && !shared?.map) this.lineHeads = this.controls.allHeads;
    if (shared?.map && !this.sublayer) Object.assign(this, mapFromAddress(shared.map, this.sublayers));
    this.sublayer = this.chosen.name;
    this.head = Math.min(this.head, this.chosen.weights.shape[0] - 1);
    this.cell = [
      Math.min(this.cell[0], this.chosen.queries.length - 1),
      Math.min(this.cell[1], this.chosen.keys.length - 1),
    ];
    this.controls.render();
    this.finder.render();
    this.all.picture.draw(t("All attention maps. Arrow keys choose one."));
    this.renderCell();
  }

  /** @type {(sublayer: string, head: number) => boolean} */
  isOff(sublayer, head) {
    return this.explorer.session.headsOff(sublayer).includes(head);
  }

  /** Whether the chosen map is that of one head, and the head is switched off. */
  get isMapOff() {
    return ["weights", "gradients"].includes(this.quantity) && this.isOff(this.sublayer, this.head);
  }

  /**
   * Choose a weight with the pointer: a click pins it, and another click on it lets it go.
   * @param {number} t
   * @param {number} s
   * @param {string} kind   of the pointer's event
   */
  pointCell(t, s, kind) {
    const isSame = t === this.cell[0] && s === this.cell[1];
    if (kind === "move" && (this.isPinned || isSame)) return;
    if (kind === "click") this.isPinned = !(this.isPinned && isSame);
    this.cell = [t, s];
    this.renderCell();
  }

  /** Redraw what depends on the chosen weight, and write it into the address. */
  renderCell() {
    const { map } = this,
      [row, s] = this.cell,
      number = map.matrix[row * map.keys.length + s];
    const what = map.isGradient
      ? t("The gradient of the loss with respect to the weight")
      : t("The attention weight");
    const predicted = this.chosen.predicted[row],
      next = predicted ? t(", where the model has to predict “{predicted}”,", { predicted }) : "";
    const between = t("from “{query}”{next} to “{key}”", { query: map.queries[row], next, key: map.keys[s] });
    const values = { title: map.title, what, between, number: numberText(number) };
    tell(this.sentence, t("{title}: {what} {between} is {number}.", values));
    byId("attention-pinned").hidden = !this.isPinned;
    this.note.textContent = this.isMapOff
      ? t("This head is off: its output is 0, so the model does not use these weights.")
      : "";
    const { textContent: sentence } = this.sentence;
    this.lines.picture.draw(t("Lines from the queries, left, to the keys, right. {sentence}", { sentence }));
    this.one.picture.draw(
      t("Attention map. Arrow keys choose a weight, Enter shows its computation. {sentence}", { sentence }),
    );
    this.neurons.render();
    this.explorer.mark(this.chosen.weights.path);
    this.explorer.remember("map", addressOfMap(this));
  }

  /** Show another map, with the lines of its head alone. @type {(sublayer: string, head: number) => void} */
  chooseMap(sublayer, head) {
    Object.assign(this, { sublayer, head, lineHeads: [] });
    this.explorer.changed();
  }

  /** Go to the step that computed the chosen weight. */
  follow() {
    const { weights, keys, queries } = this.chosen,
      [t, s] = this.cell;
    const index = (this.head * queries.length + t) * keys.length + s;
    this.explorer.follow(weights, index, this.quantity === "gradients" ? "backward" : "forward");
  }
}
