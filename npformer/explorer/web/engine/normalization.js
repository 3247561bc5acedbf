// @ts-check
// Layer normalization: y = gain (x - mean) / sqrt(variance + eps) + bias, over the entries of each row. RMS
// normalization leaves out the mean and the bias: y = gain x / sqrt(mean(x²) + eps).

/**
 * Normalize each row: x (T, D), gain (D,), bias (D,) or none -> y (T, D). The package computes dx in one
 * line,
 *
 *     dx = rstd * (dxhat - dxhat.mean(-1) - xhat * (dxhat * xhat).mean(-1))
 *
 * Here mean and rstd are arrays of their own, so that their gradients can be seen. The three terms of the
 * line are the gradients that x gets from xhat, from mean and from rstd.
 * @type {(tape: Tape, path: string, x: Step, gain: Step, bias: Step | undefined, eps: number) => Step}
 */
export function layerNorm(tape, path, x, gain, bias, eps) {
  const mean = rowMeans(tape, `${path}.mean`, x);
  const rstd = reciprocalDeviation(tape, `${path}.rstd`, x, mean, eps);
  const xhat = normalize(tape, `${path}.xhat`, x, mean, rstd);
  return scaleAndShift(tape, `${path}.y`, xhat, gain, bias, bias ? "layer_norm_scale" : "layer_norm_gain");
}

/**
 * Divide each row by its root mean square: x (T, D), gain (D,) -> y (T, D). The package computes dx in one
 * line,
 *
 *     dx = rrms * (dxhat - xhat * (dxhat * xhat).mean(-1))
 *
 * Its two terms are the gradients that x gets from xhat and from rrms.
 * @type {(tape: Tape, path: string, x: Step, gain: Step, eps: number) => Step}
 */
export function rmsNorm(tape, path, x, gain, eps) {
  const rrms = reciprocalRootMeanSquare(tape, `${path}.rrms`, x, eps);
  const xhat = scaleRows(tape, `${path}.xhat`, x, rrms);
  return scaleAndShift(tape, `${path}.y`, xhat, gain, undefined, "rms_norm_scale");
}

/** x (T, D) -> mean (T, 1) @type {(tape: Tape, path: string, x: Step) => Step} */
function rowMeans(tape, path, x) {
  const [rows, width] = x.shape;
  const mean = new Float64Array(rows);
  for (let t = 0; t < rows; t++) {
    // mean = x.mean(-1)
    for (let i = t * width; i < (t + 1) * width; i++) mean[t] += x.data[i] / width;
  }
  const step = tape.record("mean", path, [rows, 1], mean, [x], {}, "layer_norm_statistics");
  step.back = () => {
    for (let t = 0; t < rows; t++) {
      // dx = dmean / D
      for (let i = t * width; i < (t + 1) * width; i++) x.grad[i] += step.grad[t] / width;
    }
  };
  return step;
}

/**
 * One over the standard deviation: x (T, D), mean (T, 1) -> rstd (T, 1)
 * @type {(tape: Tape, path: string, x: Step, mean: Step, eps: number) => Step}
 */
function reciprocalDeviation(tape, path, x, mean, eps) {
  const [rows, width] = x.shape;
  const variance = new Float64Array(rows), rstd = new Float64Array(rows);
  for (let t = 0; t < rows; t++) {
    // variance = ((x - mean) ** 2).mean(-1), rstd = 1 / sqrt(variance + eps)
    for (let i = t * width; i < (t + 1) * width; i++) variance[t] += (x.data[i] - mean.data[t]) ** 2 / width;
    rstd[t] = 1 / Math.sqrt(variance[t] + eps);
  }
  const note = { eps, variance };
  const step = tape.record("rstd", path, [rows, 1], rstd, [x, mean], note, "layer_norm_statistics");
  step.back = () => {
    for (let t = 0; t < rows; t++) {
      // dvariance = -drstd * rstd**3 / 2
      const dvariance = (-step.grad[t] * rstd[t] ** 3) / 2;
      for (let i = t * width; i < (t + 1) * width; i++) {
        // dx = dvariance * 2 (x - mean) / D. The mean gets the opposite, which adds up to 0
        const dx = (dvariance * 2 * (x.data[i] - mean.data[t])) / width;
        x.grad[i] += dx;
        mean.grad[t] -= dx;
      }
    }
  };
  return step;
}

/**
 * x (T, D), mean (T, 1), rstd (T, 1) -> xhat (T, D), with mean 0 and variance 1 along each row
 * @type {(tape: Tape, path: string, x: Step, mean: Step, rstd: Step) => Step}
 */
function normalize(tape, path, x, mean, rstd) {
  const [rows, width] = x.shape;
  const xhat = new Float64Array(rows * width);
  for (let t = 0; t < rows; t++) {
    // xhat = (x - mean) * rstd
    for (let i = t * width; i < (t + 1) * width; i++) xhat[i] = (x.data[i] - mean.data[t]) * rstd.data[t];
  }
  const inputs = [x, mean, rstd];
  const step = tape.record("normalize", path, x.shape, xhat, inputs, {}, "layer_norm_normalize");
  step.back = () => {
    for (let t = 0; t < rows; t++) {
      // dx = dxhat * rstd, dmean = -(dxhat * rstd).sum(-1), drstd = (dxhat * (x - mean)).sum(-1)
      for (let i = t * width; i < (t + 1) * width; i++) {
        const dxhat = step.grad[i];
        x.grad[i] += dxhat * rstd.data[t];
        mean.grad[t] -= dxhat * rstd.data[t];
        rstd.grad[t] += dxhat * (x.data[i] - mean.data[t]);
      }
    }
  };
  return step;
}

/**
 * One over the root mean square of each row: x (T, D) -> rrms (T, 1)
 * @type {(tape: Tape, path: string, x: Step, eps: number) => Step}
 */
function reciprocalRootMeanSquare(tape, path, x, eps) {
  const [rows, width] = x.shape;
  const rrms = new Float64Array(rows);
  for (let t = 0; t < rows; t++) {
    // mean_square = (x * x).mean(-1), rrms = 1 / sqrt(mean_square + eps)
    let meanSquare = 0;
    for (let i = t * width; i < (t + 1) * width; i++) meanSquare += x.data[i] ** 2 / width;
    rrms[t] = 1 / Math.sqrt(meanSquare + eps);
  }
  const step = tape.record("rrms", path, [rows, 1], rrms, [x], { eps }, "rms_norm");
  step.back = () => {
    for (let t = 0; t < rows; t++) {
      // dmean_square = -drrms * rrms**3 / 2, dx = dmean_square * 2 x / D
      const slope = (-step.grad[t] * rrms[t] ** 3) / width;
      for (let i = t * width; i < (t + 1) * width; i++) x.grad[i] += slope * x.data[i];
    }
  };
  return step;
}

/**
 * Multiply each row by a number: x (T, D), scale (T, 1) -> y (T, D)
 * @type {(tape: Tape, path: string, x: Step, scale: Step) => Step}
 */
function scaleRows(tape, path, x, scale) {
  const [rows, width] = x.shape;
  const y = new Float64Array(rows * width);
  for (let t = 0; t < rows; t++) {
    // y = x * scale
    for (let i = t * width; i < (t + 1) * width; i++) y[i] = x.data[i] * scale.data[t];
  }
  const step = tape.record("scale_rows", path, x.shape, y, [x, scale], {}, "rms_norm");
  step.back = () => {
    for (let t = 0; t < rows; t++) {
      // dx = dy * scale, dscale = (dy * x).sum(-1)
      for (let i = t * width; i < (t + 1) * width; i++) {
        x.grad[i] += step.grad[i] * scale.data[t];
        scale.grad[t] += step.grad[i] * x.data[i];
      }
    }
  };
  return step;
}

/**
 * xhat (T, D), gain (D,), bias (D,) or none -> y (T, D)
 * @type {(tape: Tape, path: string, xhat: Step, gain: Step, bias: Step | undefined, line: string) => Step}
 */
function scaleAndShift(tape, path, xhat, gain, bias, line) {
  const [rows, width] = xhat.shape;
  const y = new Float64Array(rows * width);
  for (let t = 0, i = 0; t < rows; t++) {
    // y = gain * xhat + bias
    for (let j = 0; j < width; j++, i++) y[i] = gain.data[j] * xhat.data[i] + (bias ? bias.data[j] : 0);
  }
  const inputs = bias ? [xhat, gain, bias] : [xhat, gain];
  const step = tape.record("scale_and_shift", path, xhat.shape, y, inputs, {}, line);
  step.back = () => {
    for (let t = 0, i = 0; t < rows; t++) {
      // dxhat = dy * gain, dgain = (dy * xhat).sum(0), dbias = dy.sum(0)
      for (let j = 0; j < width; j++, i++) {
        const dy = step.grad[i];
        xhat.grad[i] += dy * gain.data[j];
        gain.grad[j] += dy * xhat.data[i];
        if (bias) bias.grad[j] += dy;
      }
    }
  };
  return step;
}
