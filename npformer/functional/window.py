"""Local attention: a position in the source and a window around it, as in Luong et al. 2015.

Positions are counted from 0: the tokens of a source with S tokens are at the positions 0 .. S - 1.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.activations import sigmoid, sigmoid_backward
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


def inside_window(p: Array, length: int, reach: float) -> Array:
    """Return a mask that is True at the positions in the window [p - reach, p + reach].

    Args:
        p: The centre of each window, of shape (...).
        length: The number of positions S.
        reach: The half width of the window.

    Returns:
        Bool, of shape (..., S).

    Source: Luong et al. 2015, section 3.2.
    """
    distance = array_module(p).arange(length) - p.real[..., None]  # (..., S)
    return (distance >= -reach) & (distance <= reach)


@cache_class
class PredictPositionCache(NamedTuple):
    """The cache of predict_position."""

    h: Array  # (..., N)
    weight: Array  # (N, J)
    v: Array  # (J,)
    lengths: Array  # (...)
    hidden: Array  # (..., J) the output of the tanh
    share: Array  # (...) p / S

    @property
    def p(self) -> Array:
        """The predicted positions (...)."""
        return self.lengths * self.share


def predict_position(h: Array, weight: Array, v: Array, lengths: Array) -> tuple[Array, PredictPositionCache]:
    """Compute p = S · sigmoid(v · tanh(h weight)), the centre of the window to which a target state attends.

    Args:
        h: The states of the target, of shape (..., N).
        weight: The matrix, of shape (N, J).
        v: The vector, of shape (J,).
        lengths: The number S of tokens of each source without padding, broadcastable to (...).

    Returns:
        The positions p, of shape (...), between 0 and S, and the cache.

    Source: Luong et al. 2015, section 3.2, equation 9.
    """
    hidden = array_module(h).tanh(h @ weight)  # (..., J)
    share, _ = sigmoid(hidden @ v)  # (...)
    lengths = lengths.astype(share.real.dtype)
    return lengths * share, PredictPositionCache(h, weight, v, lengths, hidden, share)


def predict_position_backward(dp: Array, cache: PredictPositionCache) -> tuple[Array, Array, Array]:
    """Return the gradients dh (..., N), dweight (N, J) and dv (J,) of p = S · sigmoid(v · tanh(h weight))."""
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


@cache_class
class GaussianWindowCache(NamedTuple):
    """The cache of gaussian_window."""

    weights: Array  # (..., S)
    bell: Array  # (..., S) the factors exp(-(s - p)² / (2 sigma²))
    away: Array  # (..., S) s - p
    sigma: float


@sums_in_float32
def gaussian_window(weights: Array, p: Array, sigma: float) -> tuple[Array, GaussianWindowCache]:
    """Compute y_s = weights_s exp(-(s - p)² / (2 sigma²)), which reduces the weights far from p.

    The result is not normalized again, so the rows of y sum to less than 1.

    Args:
        weights: The attention weights, of shape (..., S).
        p: The centre of each window, of shape (...).
        sigma: The standard deviation of the Gaussian.

    Returns:
        y, of shape (..., S), and the cache.

    Source: Luong et al. 2015, section 3.2, equation 10.
    """
    xp = array_module(weights)
    places = xp.arange(weights.shape[-1]).astype(weights.real.dtype)  # (S,)
    away = places - p[..., None]  # (..., S)
    bell = xp.exp(-away * away / (2 * sigma**2))
    return weights * bell, GaussianWindowCache(weights, bell, away, sigma)


@sums_in_float32
def gaussian_window_backward(dy: Array, cache: GaussianWindowCache) -> tuple[Array, Array]:
    """Return the gradients dweights (..., S) and dp (...) of y = weights exp(-(s - p)² / (2 sigma²))."""
    weights, bell, away, sigma = cache
    # y = weights bell
    dweights, dbell = dy * bell, dy * weights  # (..., S)
    # bell = exp(-away² / (2 sigma²)), away = s - p: the derivative with respect to p is bell away / sigma²
    dp = (dbell * bell * away).sum(-1) / sigma**2  # (...)
    return dweights, dp
