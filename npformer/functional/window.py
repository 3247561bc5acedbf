"""A place to look at, and a window round it: what Luong's local attention adds to the global one.

Positions are those of Python: the words of a source of S words stand at 0 .. S - 1.
"""

from typing import Any, NamedTuple

from npformer.backend import array_module
from npformer.functional.activations import sigmoid, sigmoid_backward


def inside_window(p, length, reach):
    """Which of `length` places stand no further than `reach` from p: the window [p - reach, p + reach].

    Shapes: p (...) -> bool (..., length). Source: Luong et al. 2015, section 3.2.
    """
    away = array_module(p).arange(length) - p.real[..., None]  # (..., S)
    return (away >= -reach) & (away <= reach)


class PredictPositionCache(NamedTuple):
    """What predict_position_backward needs."""

    h: Any  # (..., N)
    weight: Any  # (N, J)
    v: Any  # (J,)
    lengths: Any  # (...)
    hidden: Any  # (..., J) the tanh
    share: Any  # (...) p as a share of the source

    @property
    def p(self):
        """The positions (...)."""
        return self.lengths * self.share


def predict_position(h, weight, v, lengths):
    """p = S · sigmoid(v · tanh(h weight)): where in the source the target's state wants to look.

    Shapes: h (..., N), weight (N, J), v (J,), lengths broadcastable to (...), the number S of real words of
    each sentence, padding left out -> p (...), between 0 and S.
    Source: Luong et al. 2015, section 3.2, equation 9.
    """
    hidden = array_module(h).tanh(h @ weight)  # (..., J)
    share, _ = sigmoid(hidden @ v)  # (...)
    lengths = lengths.astype(share.real.dtype)
    return lengths * share, PredictPositionCache(h, weight, v, lengths, hidden, share)


def predict_position_backward(dp, cache):
    """Gradients (dh, dweight, dv) of p = S · sigmoid(v · tanh(h weight))."""
    h, weight, v, lengths, hidden, share = cache
    # p = S share, share = sigmoid(hidden v)
    dlogit = sigmoid_backward(dp * lengths, share)  # (...)
    dv = dlogit.reshape(-1) @ hidden.reshape(-1, hidden.shape[-1])  # (J,)
    dhidden = dlogit[..., None] * v  # (..., J)
    # hidden = tanh(total), and tanh' = 1 - tanh²
    dtotal = dhidden * (1 - hidden * hidden)  # (..., J)
    # total = h weight
    dweight = h.reshape(-1, h.shape[-1]).T @ dtotal.reshape(-1, dtotal.shape[-1])  # (N, J)
    return dtotal @ weight.T, dweight, dv


class GaussianWindowCache(NamedTuple):
    """What gaussian_window_backward needs."""

    weights: Any  # (..., S)
    bell: Any  # (..., S) the factors, 1 where s = p
    away: Any  # (..., S) s - p
    sigma: float


def gaussian_window(weights, p, sigma):
    """y_s = weights_s exp(-(s - p)² / (2 sigma²)): the nearer to p, the more of a weight is left.

    The rows of y sum to less than 1: they are not normalized again.
    Shapes: weights (..., S), p (...) -> y (..., S). Source: Luong et al. 2015, section 3.2, equation 10.
    """
    xp = array_module(weights)
    places = xp.arange(weights.shape[-1]).astype(weights.real.dtype)  # (S,)
    away = places - p[..., None]  # (..., S)
    bell = xp.exp(-away * away / (2 * sigma**2))
    return weights * bell, GaussianWindowCache(weights, bell, away, sigma)


def gaussian_window_backward(dy, cache):
    """Gradients (dweights, dp) of y = weights exp(-(s - p)² / (2 sigma²))."""
    weights, bell, away, sigma = cache
    # y = weights bell
    dweights, dbell = dy * bell, dy * weights  # (..., S)
    # bell = exp(-away² / (2 sigma²)), away = s - p: a word's factor grows as p comes nearer
    dp = (dbell * bell * away).sum(-1) / sigma**2  # (...)
    return dweights, dp
