// @ts-check
// The arithmetic of the operations in which a number depends on a whole row: softmax, statistics and losses.
import { exponentials } from "../engine/attention.js";
import { computed, constant, entry, gradient, placesOfRow, term } from "./factors.js";
import { t } from "../words/text.js";

/**
 * Return the exponentials of the row of an entry, as the softmax computes them.
 * @param {Step} x
 * @param {number} index
 */
function exponentialsOfRow(x, index) {
  const places = placesOfRow(x, index);
  return exponentials(x.data.subarray(places[0], places[0] + places.length));
}

/** @type {NonNullable<Arithmetic["inner"]>} */
function sumOfExponentials({ inputs: [x], note }, index) {
  if (note.totals) return null; // the page carries a part of the row
  const { exps } = exponentialsOfRow(x, index), name = t("exp(x − the largest of the row)");
  const terms = placesOfRow(x, index).map((place, j) => term(x, place, [computed(x, place, exps[j], name)]));
  return { name: t("The sum of the exponentials of the whole row"), terms };
}

/** y = exp(x - peak) / total @type {Arithmetic} */
const SOFTMAX = {
  inner: sumOfExponentials,
  forward({ inputs: [x] }, index) {
    const { exps, total } = exponentialsOfRow(x, index);
    const exp = computed(x, index, exps[index % exps.length], t("exp(x − the largest of the row)"));
    const share = constant(1 / total, t("1 / the sum of these of the whole row"));
    return [term(x, index, [exp, { ...share, divisor: total }])];
  },
  // every weight of the row depends on the score: its own grows with it, and the others shrink
  backward(step, _, index) {
    const y = step.computed;
    return placesOfRow(step, index).map((place) => {
      const slope = place === index ? 1 - y[index] : -y[index];
      return term(step, place, [
        gradient(step, place),
        computed(step, place, y[place], t("weight")),
        computed(step, index, slope, place === index ? t("1 − weight here") : t("−weight here")),
      ]);
    });
  },
};

/** mean = x.mean(-1) @type {Arithmetic} */
const MEAN = {
  scale: ({ inputs: [{ shape: [, width] }] }) => constant(1 / width, `1/${width}`),
  forward({ inputs: [x] }, index) {
    return placesOfRow(x, index * x.shape[1]).map((place) => term(x, place, [entry(x, place)]));
  },
  backward(step, _, index) {
    const width = step.inputs[0].shape[1], row = Math.floor(index / width);
    return [term(step, row, [gradient(step, row), constant(1 / width, "1 / D")])];
  },
};

/** rstd = 1 / sqrt(((x - mean) ** 2).mean(-1) + eps) @type {Arithmetic} */
const RSTD = {
  inner({ inputs: [x, mean] }, index) {
    const width = x.shape[1], minus = mean.data[index], share = constant(1 / width, "1 / D");
    const terms = placesOfRow(x, index * width).map((place) => {
      const difference = computed(x, place, x.data[place] - minus, t("x − mean"));
      return term(x, place, [difference, difference, share]);
    });
    return { name: t("The variance of the row"), terms };
  },
  forward(step, index) {
    const [x] = step.inputs;
    const rstd = computed(step, index, step.computed[index], t("1 / √(variance + ε)"));
    return [term(x, index * x.shape[1], [rstd])];
  },
  backward(step, which, index) {
    const [x, mean] = step.inputs, width = x.shape[1];
    const row = which === 0 ? Math.floor(index / width) : index;
    const places = which === 0 ? [index] : placesOfRow(x, row * width);
    return places.map((place) => {
      const slope = (-(step.computed[row] ** 3) * (x.data[place] - mean.data[row])) / width;
      const factor = which === 0
        ? computed(x, place, slope, t("−rstd³ (x − mean) / D"))
        : computed(x, place, -slope, t("rstd³ (x − mean) / D"));
      return term(step, row, [gradient(step, row), factor]);
    });
  },
};

/** rrms = 1 / sqrt((x * x).mean(-1) + eps) @type {Arithmetic} */
const RRMS = {
  inner({ inputs: [x] }, index) {
    const width = x.shape[1], share = constant(1 / width, "1 / D");
    const places = placesOfRow(x, index * width);
    const terms = places.map((place) => term(x, place, [entry(x, place), entry(x, place), share]));
    return { name: t("The mean of the squares of the row"), terms };
  },
  forward(step, index) {
    const [x] = step.inputs;
    const rrms = computed(step, index, step.computed[index], t("1 / √(mean of x² + ε)"));
    return [term(x, index * x.shape[1], [rrms])];
  },
  backward(step, _, index) {
    const [x] = step.inputs, width = x.shape[1], row = Math.floor(index / width);
    const slope = (-(step.computed[row] ** 3) * x.data[index]) / width;
    return [term(step, row, [gradient(step, row), computed(x, index, slope, t("−rrms³ x / D"))])];
  },
};

/** y = x - peak - log(exp(x - peak).sum(-1)) @type {Arithmetic} */
const LOG_SOFTMAX = {
  inner: sumOfExponentials,
  forward({ inputs: [x], note: { peaks, totals } }, index) {
    // a page may carry a part of each row, and what the whole row gives
    const row = Math.floor(index / x.shape[1]);
    const { peak, total } = peaks ? { peak: peaks[row], total: totals[row] } : exponentialsOfRow(x, index);
    return [
      term(x, index, [entry(x, index)]),
      term(x, index, [constant(-peak, t("−the largest of the row"))]),
      term(x, index, [constant(-Math.log(total), t("−log Σ exp(x − the largest)"))]),
    ];
  },
  backward(step, _, index) {
    const { note: { sums }, shape: [, width] } = step;
    const sum = sums
      ? sums[Math.floor(index / width)]
      : placesOfRow(step, index).reduce((total, place) => total + gradient(step, place).value, 0);
    return [
      term(step, index, [gradient(step, index)]),
      term(step, index, [
        computed(step, index, -Math.exp(step.computed[index]), t("−probability")),
        constant(sum, t("Σ of the row's gradients")),
      ]),
    ];
  },
};

/** losses = -(1 - smoothing) * at_target - smoothing * log_probs.mean(-1) @type {Arithmetic} */
const LOSSES = {
  forward({ inputs: [logProbs], note: { targets, smoothing, means } }, index) {
    const width = logProbs.shape[1], target = index * width + targets[index];
    const factor = constant(-(1 - smoothing), t("−(1 − smoothing)"));
    const ofTarget = term(logProbs, target, [factor, entry(logProbs, target)]);
    if (!smoothing) return [ofTarget];
    if (means) {
      const mean = constant(means[index], t("mean of the whole vocabulary"));
      return [ofTarget, term(null, 0, [constant(-smoothing, t("−smoothing")), mean])];
    }
    const share = constant(-smoothing / width, t("−smoothing / V"));
    const row = placesOfRow(logProbs, target);
    return [ofTarget, ...row.map((place) => term(logProbs, place, [share, entry(logProbs, place)]))];
  },
  backward(step, _, index) {
    const { targets, smoothing, vocabularySize } = step.note, width = step.inputs[0].shape[1];
    const t = Math.floor(index / width), isTarget = targets[t] === index % width;
    const share = smoothing / (vocabularySize ?? width) + (isTarget ? 1 - smoothing : 0);
    return [term(step, t, [gradient(step, t), constant(-share, "−q")])];
  },
};

/** loss = xp.where(is_real, losses, 0).sum() / tokens @type {Arithmetic} */
const CROSS_ENTROPY = {
  scale: ({ note: { tokens } }) => constant(1 / tokens, `1/${tokens}`),
  forward({ inputs: [losses], note: { real } }) {
    const places = [...losses.data.keys()].filter((t) => real[t]);
    return places.map((t) => term(losses, t, [entry(losses, t)]));
  },
  backward(step, _, index) {
    const { real, tokens } = step.note;
    return real[index] ? [term(step, 0, [gradient(step, 0), constant(1 / tokens, t("1 / tokens"))])] : [];
  },
};

/** @type {Record<string, Arithmetic>} */
export const ARITHMETIC_OF_ROWS = {
  softmax: SOFTMAX,
  mean: MEAN,
  rstd: RSTD,
  rrms: RRMS,
  log_softmax: LOG_SOFTMAX,
  losses: LOSSES,
  cross_entropy: CROSS_ENTROPY,
};
