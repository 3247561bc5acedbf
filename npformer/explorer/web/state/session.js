// @ts-check
// The session: the model, the sentence and the changes of the reader, and what the model computes from them.
import { Adam, GradientDescent, copyParameters, parameterGradients } from "../engine/optimizers.js";
import { rowOf } from "../engine/tape.js";
import { recordedPasses, recordedTape } from "./recorded.js";
import { readNumbers, scriptText, splitNumbers } from "./page_data.js";
import { ReaderError } from "./reader_error.js";
import { Continuation } from "./continuation.js";
import { Translation } from "./translation.js";
import { t } from "../words/text.js";

const MOST_UNDO = 20;

export class Session {
  constructor() {
    this.head = JSON.parse(scriptText("head"));
    const numbers = readNumbers();
    /** @type {any} */
    this.edits = {};
    /** @type {Translation | Continuation | null} what the model reads and writes, on a live page */
    this.task = null;
    /** @type {import("../engine/pass.js").Ids | null} */
    this.ids = null;
    this.texts = { source: this.head.example?.source ?? "", target: this.head.example?.target ?? "" };
    this.isOwnOutput = true;
    this.output = this.texts.target; // of the model: the translation, or the continuation of the text
    /** @type {{head: any, numbers: Float32Array}[]} one for each sentence, on a recorded page */
    this.passes = [];
    /** @type {{name: string, optimizer: any} | null} */
    this.optimizer = null;
    /** @type {any} the tokens before the first training step; null where a link made it */
    this.untaught = null;
    /** @type {any[]} */
    this.past = [];
    /** @type {any} the parameters before all training steps, and what they predicted */
    this.origin = null;
    /** @type {{name: "gradient descent" | "adam", lr: number, state: string}[]} all training steps */
    this.log = [];
    if (this.head.kind === "live") {
      const { parameters, positions } = splitNumbers(this.head, numbers);
      const Task = this.head.architecture === "gpt" ? Continuation : Translation;
      this.task = new Task(this.head, parameters, positions);
      const { ids, texts, output } = this.task.example;
      Object.assign(this, { ids, texts, output });
      this.tape = this.task.model.run(ids, this.edits);
    } else {
      this.passes = recordedPasses(this.head, numbers);
      this.tape = recordedTape(this.head, this.passes[0].numbers);
    }
    this.firstTape = this.tape;
    this.before = this.summary();
    this.tapeBefore = this.tape;
    this.firstIds = JSON.stringify(this.ids);
  }

  get isLive() {
    return this.task !== null;
  }

  get model() {
    return this.task?.model ?? null;
  }

  /** The loss, or NaN on a page without one. */
  get loss() {
    return this.tape.names.get("loss")?.data[0] ?? NaN;
  }

  /** How much label smoothing the loss has, such as "label smoothing 0.1", or "" if it has none. */
  get smoothing() {
    const smoothing = this.tape.names.get("loss.losses")?.note.smoothing;
    return smoothing ? t("label smoothing {smoothing}", { smoothing: +smoothing.toPrecision(4) }) : "";
  }

  /** The loss without label smoothing: the mean of -log p(target), or NaN on a page without targets. */
  get crossEntropy() {
    const losses = this.tape.names.get("loss.losses"),
      { real, tokens } = this.tape.names.get("loss")?.note ?? {};
    if (!losses || !real) return NaN;
    const surprises = losses.note.targets.map((/** @type {number} */ target, /** @type {number} */ i) =>
      real[i] ? -rowOf(losses.inputs[0], i)[target] : 0,
    );
    return surprises.reduce((/** @type {number} */ sum, /** @type {number} */ x) => sum + x, 0) / tokens;
  }

  /** The tokens and the changes as JSON: what a training step depends on besides the parameters. */
  get state() {
    return JSON.stringify({ ids: this.ids, edits: this.edits });
  }

  /** @returns {any} */
  get config() {
    return this.head.config ?? {};
  }

  /** The tokens and their texts. */
  get example() {
    const { ids, texts, isOwnOutput } = this;
    return { ids, texts, isOwnOutput };
  }

  /** Compute everything again. */
  run() {
    if (!this.model || !this.ids) return;
    this.tape = this.model.run(this.ids, this.edits);
  }

  /** What the views of changes compare: the loss and the probabilities (T, V) of the tokens. */
  summary() {
    const logProbs = this.tape.names.get("loss.log_probs");
    return {
      loss: this.loss,
      crossEntropy: this.crossEntropy,
      probabilities: logProbs ? logProbs.data.map(Math.exp) : new Float64Array(0),
      width: logProbs?.shape[1] ?? 0,
      output: this.output,
    };
  }

  /** Translate the sentence, or continue the text, with the changed model. */
  generate() {
    if (this.task && this.ids) this.output = this.task.outputOf(this.ids, this.edits);
    return this.output;
  }

  /**
   * Set or remove the change of one item of a list of changes.
   * @param {"heads" | "masks" | "values" | "dropout"} kind
   * @param {string} path
   * @param {any[] | null} list   the new list, or null for none
   */
  setEdits(kind, path, list) {
    const lists = { ...this.edits[kind] };
    if (list?.length) lists[path] = list;
    else delete lists[path];
    const edits = { ...this.edits, [kind]: lists };
    if (!Object.keys(lists).length) delete edits[kind];
    this.edits = edits;
  }

  /** Switch a head of an attention off, or on again. @type {(sublayer: string, head: number) => void} */
  switchHead(sublayer, head) {
    const off = this.headsOff(sublayer),
      others = off.filter((one) => one !== head);
    this.setEdits("heads", sublayer, others.length < off.length ? others : [...off, head]);
  }

  /** @type {(sublayer: string) => number[]} */
  headsOff(sublayer) {
    return this.edits.heads?.[sublayer] ?? [];
  }

  /** The activation of the feed-forward networks, as it is now. @returns {string} */
  get activation() {
    return this.edits.settings?.activation ?? this.config.activation;
  }

  /** @param {string} name   the activation of all feed-forward networks */
  setActivation(name) {
    const { settings, ...others } = this.edits;
    this.edits =
      name === this.config.activation ? others : { ...others, settings: { ...settings, activation: name } };
  }

  /**
   * Use another text. Changes of cells, tokens and entries belong to the old one and are removed; heads stay
   * off, and another activation stays.
   * @param {string} source
   * @param {string | null} target   a translation, or null for the model's own
   */
  setSentence(source, target = null) {
    this.change(t("Another sentence"), (task, edits) => task.read(source, target, edits));
  }

  /**
   * @param {string} what
   * @param {(task: Translation | Continuation, edits: any) => import("./translation.js").Example} read
   */
  change(what, read) {
    this.needsModel(what);
    this.untaught = null;
    const { heads, settings } = this.edits,
      edits = { ...(heads ? { heads } : {}), ...(settings ? { settings } : {}) };
    const { ids, texts, output, isOwn } = read(/** @type {any} */ (this.task), edits);
    Object.assign(this, { edits, ids, texts, output, isOwnOutput: isOwn });
    this.run();
    this.setBaseline();
  }

  /** Replace a token by another. @type {(side: "source" | "target", position: number, id: number) => void} */
  setToken(side, position, id) {
    if (!this.task || !this.ids) return;
    Object.assign(this, this.task.withToken(this.ids, side, position, id));
    this.run();
  }

  /** Remember the present state as the one before the next changes. */
  setBaseline() {
    this.generate(); // the page translates later than it computes the numbers
    this.before = this.summary();
    this.tapeBefore = this.tape;
  }

  /**
   * Return the loss with some further values, without gradients.
   * @type {(path: string, index: number, value: number) => any}
   */
  lossWith(path, index, value) {
    const others = (this.edits.values?.[path] ?? []).filter((/** @type {number[]} */ [i]) => i !== index);
    const edits = { ...this.edits, values: { ...this.edits.values, [path]: [...others, [index, value]] } };
    return /** @type {any} */ (this.model).lossOf(this.ids, edits);
  }

  /**
   * Make one step of an optimizer, and return the parameters before it.
   * @param {number} lr
   * @param {"gradient descent" | "adam"} name
   */
  optimize(lr, name) {
    this.needsModel(t("A step of an optimizer"));
    const model = /** @type {import("../engine/pass.js").Model} */ (this.model);
    const before = copyParameters(model.parameters);
    this.past.push({
      parameters: before,
      optimizer: this.optimizer && { ...this.optimizer, optimizer: this.optimizer.optimizer.copy() },
      summary: this.summary(),
    });
    if (!this.log.length) {
      [this.origin] = this.past;
      this.untaught ??= this.example;
    }
    if (this.past.length > MOST_UNDO) this.past.shift();
    this.log.push({ name, lr, state: this.state });
    if (this.optimizer?.name !== name) {
      this.optimizer = { name, optimizer: name === "adam" ? new Adam() : new GradientDescent() };
    }
    this.optimizer.optimizer.update(model.parameters, parameterGradients(this.tape), lr);
    this.run();
    return before;
  }

  /** Undo the last step of an optimizer. */
  undo() {
    const last = this.past.pop();
    if (!last || !this.model) return;
    this.model.parameters = last.parameters;
    this.optimizer = last.optimizer;
    this.log.pop();
    this.run();
  }

  /**
   * Forget all training steps.
   * @param {import("../engine/optimizers.js").Parameters} parameters   those before the first step
   */
  restart(parameters) {
    if (this.model) this.model.parameters = parameters;
    Object.assign(this, { past: [], log: [], optimizer: null, origin: null });
    this.run();
  }

  /** Make a translation the target, and remember the one that there was. @param {string} target */
  aim(target) {
    const untaught = this.untaught ?? this.example;
    this.setSentence(this.texts.source, target);
    this.untaught = untaught;
  }

  /** Forget all training steps, and the target that was taught. */
  forget() {
    if (this.origin) this.restart(this.origin.parameters);
    if (this.untaught) Object.assign(this, this.untaught, { untaught: null });
    else this.setSentence(this.texts.source);
    this.run();
    this.setBaseline();
  }

  /** @param {string} what */
  needsModel(what) {
    if (!this.isLive)
      throw new ReaderError(
        t("{what} must be computed, and this page only shows recorded arrays.", { what }),
      );
  }

  /** The number of changes by which the model differs from the one on the page. */
  countEdits() {
    const { heads = {}, ...others } = this.edits; // an array, a mask or a setting is one change
    return [...Object.values(heads).flat(), ...Object.values(others).flatMap(Object.keys)].length;
  }
}
