"""The n-gram counts of each sentence, and from them the interval of BLEU and BLEU by length.

The BLEU of a set of sentences depends on ten counts, each a sum over the sentences. So the n-grams are
counted once, and the score of any selection of the sentences is a sum and a formula.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from npformer.backend import Array

ORDERS = 4  # n-grams of 1 to 4 words
SAMPLES = 1000
SEED = 12345  # sacrebleu's, so that its interval of the same translations is the same
COVERAGE = 0.95
LEAST_RESAMPLED = 10  # the interval from fewer sentences would be too narrow
# the shortest sentences of each group, in words: 1-9, 10-14, 15-19, 20 and more
LENGTHS = (1, 10, 15, 20)

# the columns of the counts
_LENGTHS = slice(0, 2)  # words of the translation, words of the reference
_CORRECT = slice(2, 2 + ORDERS)  # n-grams of the translation that are in the reference, n = 1 .. 4
_TOTAL = slice(2 + ORDERS, 2 + 2 * ORDERS)  # all n-grams of the translation


@dataclass(frozen=True)
class LengthScore:
    """The BLEU of the sentences of a test set whose source has a certain length."""

    least: int  # words of the source
    most: int | None  # None for no upper limit
    sentences: int
    bleu: float  # 0 .. 100
    half_width: float | None  # of its 95 % interval; None for fewer than LEAST_RESAMPLED sentences

    @property
    def lengths(self) -> str:
        """The lengths in words: "10-14", or "20+" for the last group."""
        return f"{self.least}+" if self.most is None else f"{self.least}-{self.most}"


def with_half_width(bleu: float, half_width: float | None) -> str:
    """Return a score with its interval, if it has one, as "41.60 ± 1.58"."""
    return f"{bleu:.2f}" + ("" if half_width is None else f" ± {half_width:.2f}")


def sentence_counts(translations: Sequence[str], references: Sequence[str], tokenizer: str) -> Array:
    """Return the counts of each sentence, (N, 10), from which `corpus_bleu` computes the score.

    The columns are the words of the translation, those of the reference, the n-grams of the translation that
    the reference has as well, and all n-grams of the translation, each for n = 1 .. 4.

    Args:
        translations: N lines.
        references: One reference for each line.
        tokenizer: The tokenizer of sacrebleu, such as "13a".
    """
    from sacrebleu.metrics.bleu import BLEU

    metric = BLEU(tokenize=tokenizer, force=True, effective_order=True)  # the option changes no count
    found = [
        metric.sentence_score(*pair)
        for pair in zip(translations, ([each] for each in references), strict=True)
    ]
    return np.array([[each.sys_len, each.ref_len, *each.counts, *each.totals] for each in found], np.int64)


def corpus_bleu(counts: Array) -> Array:
    """Return the BLEU, 0 .. 100, of sets of sentences from the sums of their counts.

    score = 100 · min(1, exp(1 - reference words / translated words)) · (p1 · p2 · p3 · p4)^(1/4), where pn
    is the share of the n-grams of the translations that are in their references. The first precision that is
    0 is replaced by half of what one correct n-gram would give, the second one by a quarter, and so on.

    Args:
        counts: The sums of the rows of `sentence_counts`, (..., 10).

    Returns:
        The scores, (...).

    Source: Papineni et al. 2002, section 2.3; Chen and Cherry 2014, smoothing 3, as sacrebleu's "exp".
    """
    words, reference_words = np.moveaxis(counts[..., _LENGTHS], -1, 0)  # (...) each
    correct, total = counts[..., _CORRECT], counts[..., _TOTAL]  # (..., 4)
    zeros = np.cumsum(correct == 0, -1)  # the number of zeros up to each n
    smoothed = np.where(correct == 0, 0.5**zeros, correct)
    with np.errstate(divide="ignore", invalid="ignore"):
        precisions = smoothed / total  # (..., 4); NaN or infinite where there is no n-gram
        brevity_penalty = np.exp(np.minimum(0, 1 - reference_words / words))
        scores = 100 * brevity_penalty * np.exp(np.log(precisions).mean(-1))
    scorable = (total > 0).all(-1) & (correct > 0).any(-1)
    return np.where(scorable, scores, 0.0)


def bleu_half_width(counts: Array, *, samples: int = SAMPLES, seed: int = SEED) -> float:
    """Return half of the width of the 95 % interval of BLEU, by bootstrap resampling.

    Each sample draws N of the N sentences with replacement. The interval reaches from the 2.5th to the 97.5th
    percentile of the scores of the samples.

    Args:
        counts: The counts of `sentence_counts`, (N, 10).
        samples: The number of samples R.
        seed: The seed of the generator that draws them.

    Source: Koehn 2004, Statistical Significance Tests for Machine Translation Evaluation, section 3.
    """
    rng = np.random.default_rng(seed)
    n = len(counts)
    sums = np.stack([counts[rng.integers(n, size=n)].sum(0) for _ in range(samples)])  # (R, 10)
    scores = np.sort(corpus_bleu(sums))  # (R,)
    outside = int(samples * (1 - COVERAGE) / 2 + 1e-9)  # on each side
    return float(scores[samples - 1 - outside] - scores[outside]) / 2


def bleu_by_length(
    counts: Array, sources: Sequence[str], *, lengths: Sequence[int] = LENGTHS, seed: int = SEED
) -> list[LengthScore]:
    """Return the BLEU of the short, longer and longest sentences of a test set.

    Args:
        counts: The counts of `sentence_counts`, (N, 10).
        sources: The N sentences. Their length is the number of words that spaces separate.
        lengths: The least length of each group, in ascending order. Shorter sentences are in the first group.
        seed: The seed of the intervals.

    Returns:
        The scores of the groups that have a sentence.
    """
    lengths_in_words = np.array([len(source.split()) for source in sources])  # (N,)
    groups = np.searchsorted(lengths, lengths_in_words, side="right") - 1  # (N,)
    groups = np.maximum(groups, 0)
    found = []
    for group, least in enumerate(lengths):
        chosen = counts[groups == group]  # (n, 10)
        if len(chosen):
            most = lengths[group + 1] - 1 if group + 1 < len(lengths) else None
            score = float(corpus_bleu(chosen.sum(0)))
            half_width = bleu_half_width(chosen, seed=seed) if len(chosen) >= LEAST_RESAMPLED else None
            found.append(LengthScore(least, most, len(chosen), score, half_width))
    return found
