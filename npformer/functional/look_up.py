"""Looking something up by scores, wherever they come from: the half of attention that follows the scores.

Scaled dot-product attention (npformer.functional.attention) makes its own scores; these may be anyone's.
"""

from typing import Any, NamedTuple

from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.masking import (
    EXACT,
    MaskingCache,
    mask_queries,
    mask_scores,
    mask_scores_backward,
)
from npformer.functional.softmax import softmax, softmax_backward


class WeighCache(NamedTuple):
    """What weigh_backward needs."""

    weights: Any  # (..., T, S) how much each query looks at each value: rows sum to 1, or are 0
    keep: Any  # (..., T, S) dropout's factors, or None
    masking: MaskingCache

    @property
    def dropped(self):
        """The weights after dropout, (..., T, S)."""
        return self.weights if self.keep is None else self.weights * self.keep


def weigh(scores, mask=None, *, query_mask=None, masking=EXACT, rate=0.0, rng=None):
    """dropout(softmax(scores)), where the masks let a query look: from scores to weights.

    Shapes: scores (..., T, S), mask bool broadcastable to it, query_mask bool broadcastable to (..., T, 1)
    -> weights after dropout (..., T, S). rate is the dropout on the weights, drawn from rng.
    Errors: UserError for a mask of another dtype or shape.
    """
    scores, masked = mask_scores(scores, mask, query_mask, masking)
    weights, _ = softmax(scores)  # (..., T, S)
    weights = mask_queries(weights, query_mask, masking)
    dropped, keep = dropout(weights, rate, rng)
    return dropped, WeighCache(weights, keep, masked)


def weigh_backward(ddropped, cache):
    """Gradient dscores of dropped = dropout(softmax(scores))."""
    weights, keep, masked = cache
    # dropped = weights keep
    dweights = dropout_backward(ddropped, keep)
    # weights = softmax(scores); a masked query's are 0, which lets nothing through
    dscores = softmax_backward(dweights, weights)  # (..., T, S)
    return mask_scores_backward(dscores, masked)


class LookUpCache(NamedTuple):
    """What look_up_backward needs, and what the figures show."""

    v: Any  # (..., S, L) values
    weighed: WeighCache

    @property
    def weights(self):
        """How much each query looks at each value, (..., T, S)."""
        return self.weighed.weights


def look_up(scores, v, mask=None, **settings):
    """y = softmax(scores) v: each query's mean of the values, weighted by its scores.

    Shapes: scores (..., T, S), v (..., S, L), mask bool broadcastable to (..., T, S) -> y (..., T, L).
    settings are those of weigh. Errors: as there. Source: Bahdanau et al. 2015, section 3.1.
    """
    dropped, weighed = weigh(scores, mask, **settings)
    return dropped @ v, LookUpCache(v, weighed)


def look_up_backward(dy, cache):
    """Gradients (dscores, dv) of y = softmax(scores) v."""
    v, weighed = cache
    dropped = weighed.dropped
    # y = dropped @ v
    ddropped = dy @ v.swapaxes(-1, -2)  # (..., T, S)
    dv = dropped.swapaxes(-1, -2) @ dy  # (..., S, L)
    # dropped = weigh(scores)
    return weigh_backward(ddropped, weighed), dv
