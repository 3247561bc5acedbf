// @ts-check
// Gradient descent and Adam: the updates that change the parameters by their gradients.

/** @typedef {Map<string, {shape: number[], data: Float64Array}>} Parameters */
/** @typedef {Map<string, Float64Array>} Gradients */

/** Return the gradients of all parameters, by name. @type {(tape: import("./tape.js").Tape) => Gradients} */
export function parameterGradients(tape) {
  const parameters = tape.steps.filter((step) => step.op === "parameter");
  return new Map(parameters.map((step) => [step.path, step.grad]));
}

/**
 * Return a copy of the parameters, to which an update can be undone.
 * @type {(parameters: Parameters) => Parameters}
 */
export function copyParameters(parameters) {
  return new Map([...parameters].map(([name, { shape, data }]) => [name, { shape, data: data.slice() }]));
}

export class GradientDescent {
  /**
   * Update the parameters in place.
   * @param {Parameters} parameters
   * @param {Gradients} gradients
   * @param {number} lr   the learning rate
   */
  update(parameters, gradients, lr) {
    for (const [name, { data }] of parameters) {
      const grad = /** @type {Float64Array} */ (gradients.get(name));
      // value -= lr * grad
      for (let i = 0; i < data.length; i++) data[i] -= lr * grad[i];
    }
  }

  copy() {
    return new GradientDescent();
  }
}

/** Adam, Kingma and Ba 2015, algorithm 1, with the β1, β2 and ε of Vaswani et al. 2017, section 5.3. */
export class Adam {
  /**
   * @param {[number, number]} betas
   * @param {number} eps
   */
  constructor(betas = [0.9, 0.98], eps = 1e-9) {
    this.betas = betas;
    this.eps = eps;
    this.t = 0; // the number of updates
    /** @type {Map<string, {m: Float64Array, v: Float64Array}>} the moving averages of each parameter */
    this.averages = new Map();
  }

  /**
   * Update the parameters in place.
   * @param {Parameters} parameters
   * @param {Gradients} gradients
   * @param {number} lr   the learning rate
   */
  update(parameters, gradients, lr) {
    this.t += 1;
    const [beta1, beta2] = this.betas;
    const correction1 = 1 - beta1 ** this.t, correction2 = 1 - beta2 ** this.t;
    for (const [name, { data }] of parameters) {
      const grad = /** @type {Float64Array} */ (gradients.get(name));
      const { m, v } = this.averagesOf(name, data.length);
      for (let i = 0; i < data.length; i++) {
        m[i] += (1 - beta1) * (grad[i] - m[i]); // the moving average of the gradients
        v[i] += (1 - beta2) * (grad[i] * grad[i] - v[i]); // the moving average of their squares
        data[i] -= (lr * (m[i] / correction1)) / (Math.sqrt(v[i] / correction2) + this.eps);
      }
    }
  }

  /**
   * Return the moving averages of a parameter, which are 0 before the first update.
   * @type {(name: string, length: number) => { m: Float64Array; v: Float64Array; }}
   */
  averagesOf(name, length) {
    const averages = this.averages.get(name) ?? { m: new Float64Array(length), v: new Float64Array(length) };
    this.averages.set(name, averages);
    return averages;
  }

  copy() {
    const copy = new Adam(this.betas, this.eps);
    copy.t = this.t;
    for (const [name, { m, v }] of this.averages) copy.averages.set(name, { m: m.slice(), v: v.slice() });
    return copy;
  }
}
