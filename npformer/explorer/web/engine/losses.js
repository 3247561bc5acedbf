// @ts-check
// The cross-entropy with label smoothing: the mean of -Σ_v q_v log p_v over the tokens that are not padding.
import { exponentials } from "./attention.js";

/**
 * Compute the loss of logits (T, V). The target distribution q is smoothing / V at every token of the
 * vocabulary, plus 1 - smoothing at the target. The package computes the gradient of the logits in one step,
 *
 *     dlogits = (exp(log_probs) - q) / tokens
 *
 * which is the gradient of log_softmax below for dlog_probs = -q / tokens, since q adds up to 1.
 * @param {Tape} tape
 * @param {Step} logits
 * @param {number[]} targets
 * @param {number} smoothing
 * @param {number} padId   the id of padding, which does not count
 */
export function crossEntropy(tape, logits, targets, smoothing, padId) {
  const logProbs = logSoftmax(tape, "loss.log_probs", logits);
  const real = targets.map((id) => id !== padId);
  const within = targets.map((id, t) => (real[t] ? id : 0)); // padId may lie outside the vocabulary
  const losses = tokenLosses(tape, "loss.losses", logProbs, within, smoothing);
  return meanLoss(tape, "loss", losses, real);
}

/** x (T, V) -> y (T, V), y_v = x_v - log Σ_u exp(x_u) @type {(tape: Tape, path: string, x: Step) => Step} */
function logSoftmax(tape, path, x) {
  const width = x.shape[1];
  // y = x - peak - log(exp(x - peak).sum(-1))
  const y = new Float64Array(x.data.length);
  for (let row = 0; row < y.length; row += width) {
    const { peak, total } = exponentials(x.data.subarray(row, row + width));
    for (let j = row; j < row + width; j++) y[j] = x.data[j] - peak - Math.log(total);
  }
  const step = tape.record("log_softmax", path, x.shape, y, [x]);
  step.back = () => {
    for (let row = 0; row < y.length; row += width) {
      // dx = dy - exp(y) * dy.sum(-1)
      let sum = 0;
      for (let j = row; j < row + width; j++) sum += step.grad[j];
      for (let j = row; j < row + width; j++) x.grad[j] += step.grad[j] - Math.exp(y[j]) * sum;
    }
  };
  return step;
}

/**
 * logProbs (T, V), targets (T,) -> losses (T,), the cross-entropy of each position
 * @type {(tape: Tape, path: string, logProbs: Step, targets: number[], smoothing: number) => Step}
 */
function tokenLosses(tape, path, logProbs, targets, smoothing) {
  const [length, vocabulary] = logProbs.shape;
  const losses = new Float64Array(length);
  for (let t = 0; t < length; t++) {
    const row = logProbs.data.subarray(t * vocabulary, (t + 1) * vocabulary);
    const mean = row.reduce((a, b) => a + b, 0) / vocabulary;
    // losses = -(1 - smoothing) * at_target - smoothing * log_probs.mean(-1)
    losses[t] = -(1 - smoothing) * row[targets[t]] - smoothing * mean;
  }
  const step = tape.record("losses", path, [length], losses, [logProbs], { targets, smoothing });
  step.back = () => {
    step.grad.forEach((dloss, t) => {
      // dlog_probs = -q * dloss
      for (let v = 0; v < vocabulary; v++) {
        logProbs.grad[t * vocabulary + v] -= (smoothing / vocabulary) * dloss;
      }
      logProbs.grad[t * vocabulary + targets[t]] -= (1 - smoothing) * dloss;
    });
  };
  return step;
}

/**
 * losses (T,) -> loss (), the mean over the positions that are not padding
 * @param {Tape} tape
 * @param {string} path
 * @param {Step} losses
 * @param {boolean[]} real   false at padding
 */
function meanLoss(tape, path, losses, real) {
  const tokens = Math.max(1, real.filter(Boolean).length);
  // loss = xp.where(is_real, losses, 0).sum() / tokens
  const loss = losses.data.reduce((sum, value, t) => sum + (real[t] ? value : 0), 0) / tokens;
  const step = tape.record("cross_entropy", path, [], Float64Array.of(loss), [losses], { real, tokens });
  step.back = () => {
    // dlosses = real * dloss / tokens
    losses.grad.forEach((_, t) => { losses.grad[t] += real[t] ? step.grad[0] / tokens : 0; });
  };
  return step;
}
