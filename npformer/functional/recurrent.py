"""One time step of a recurrent network: the cells of LSTM and GRU.

The cells have no parameters. The layers of npformer.nn.recurrent compute their inputs by two linear maps, one
of the token and one of the previous state.
"""

from typing import NamedTuple

from npformer.backend import Array, array_module
from npformer.functional.activations import sigmoid, sigmoid_backward
from npformer.functional.caches import cache_class


@cache_class
class LSTMCache(NamedTuple):
    """The cache of lstm_cell."""

    c: Array  # (..., N) the cell state before this token
    i: Array  # (..., N) the input gate
    f: Array  # (..., N) the forget gate
    g: Array  # (..., N) the candidate
    o: Array  # (..., N) the output gate
    shown: Array  # (..., N) tanh of the cell state after this token


def lstm_cell(gates: Array, c: Array) -> tuple[Array, LSTMCache]:
    """Compute the next state of an LSTM: the hidden state h' and the cell state c'.

        [i f g o] = gates, then i = sigmoid(i), f = sigmoid(f), g = tanh(g), o = sigmoid(o)
        c' = f c + i g
        h' = o tanh(c')

    Args:
        gates: The inputs of the four gates before their activations, of shape (..., 4N).
        c: The cell state before this token, of shape (..., N).

    Returns:
        The state, h' and c' side by side, of shape (..., 2N), and the cache.

    Source: Hochreiter and Schmidhuber 1997; the forget gate is from Gers et al. 2000.
    """
    xp = array_module(gates)
    i, f, g, o = _parts(gates, 4)
    (i, _), (f, _), g, (o, _) = sigmoid(i), sigmoid(f), xp.tanh(g), sigmoid(o)
    after = f * c + i * g  # (..., N)
    shown = xp.tanh(after)  # (..., N)
    return xp.concatenate([o * shown, after], -1), LSTMCache(c, i, f, g, o, shown)


def lstm_cell_backward(dstate: Array, cache: LSTMCache) -> tuple[Array, Array]:
    """Return the gradients (dgates, dc) of state = [o tanh(c'), c']."""
    c, i, f, g, o, shown = cache
    xp = array_module(dstate)
    dh, dafter = _parts(dstate, 2)
    # h' = o tanh(c'), and c' is an output as well: two gradients reach c'
    do = dh * shown
    dafter = dafter + dh * o * (1 - shown * shown)
    # c' = f c + i g
    di, df, dg, dc = dafter * g, dafter * c, dafter * i, dafter * f
    # i = sigmoid(.), and so on
    dgates = [
        sigmoid_backward(di, i),
        sigmoid_backward(df, f),
        dg * (1 - g * g),
        sigmoid_backward(do, o),
    ]
    return xp.concatenate(dgates, -1), dc


@cache_class
class GRUCache(NamedTuple):
    """The cache of gru_cell."""

    h: Array  # (..., N) the state before this token
    last: Array  # (..., N) the third part of `hidden_gates`
    r: Array  # (..., N) the reset gate
    z: Array  # (..., N) the update gate
    n: Array  # (..., N) the candidate


def gru_cell(gates: Array, hidden_gates: Array, h: Array) -> tuple[Array, GRUCache]:
    """Compute the next state of a GRU, a weighted mean of the old state and a candidate.

        [r z n] = gates + hidden_gates in the first two parts, r = sigmoid(r), z = sigmoid(z)
        n = tanh(n of gates + r · n of hidden_gates)
        h' = z h + (1 - z) n

    gates and hidden_gates are separate arguments, since r is multiplied by a part of hidden_gates alone.

    Args:
        gates: The linear map of the token, of shape (..., 3N).
        hidden_gates: The linear map of the state, of shape (..., 3N).
        h: The state before this token, of shape (..., N).

    Returns:
        h', of shape (..., N), and the cache.

    Source: Cho et al. 2014; r is applied after the product, as in PyTorch.
    """
    xp = array_module(gates)
    new_r, new_z, new_n = _parts(gates, 3)
    old_r, old_z, last = _parts(hidden_gates, 3)
    (r, _), (z, _) = sigmoid(new_r + old_r), sigmoid(new_z + old_z)
    n = xp.tanh(new_n + r * last)  # (..., N)
    return z * h + (1 - z) * n, GRUCache(h, last, r, z, n)


def gru_cell_backward(dy: Array, cache: GRUCache) -> tuple[Array, Array, Array]:
    """Return the gradients (dgates, dhidden_gates, dh) of h' = z h + (1 - z) n."""
    h, last, r, z, n = cache
    xp = array_module(dy)
    # h' = z h + (1 - z) n
    dz, dn, dh = dy * (h - n), dy * (1 - z), dy * z
    # n = tanh(new + r last)
    dsum = dn * (1 - n * n)
    dr, dlast = dsum * last, dsum * r
    # r = sigmoid(new + old), z too: the gradient of a sum goes to both terms
    dr, dz = sigmoid_backward(dr, r), sigmoid_backward(dz, z)
    return xp.concatenate([dr, dz, dsum], -1), xp.concatenate([dr, dz, dlast], -1), dh


def masked_update(new: Array, old: Array, real: Array) -> tuple[Array, Array]:
    """Return the new state where there is a token, and the old state where there is padding.

    Args:
        new: The new state, of shape (..., N).
        old: The old state, of shape (..., N).
        real: Bool, of shape (...). True at tokens and False at padding.

    Returns:
        The state, of shape (..., N), and the cache.
    """
    real = real[..., None]  # (..., 1)
    return array_module(new).where(real, new, old), real


def masked_update_backward(dy: Array, cache: Array) -> tuple[Array, Array]:
    """Return the gradients (dnew, dold) of the state. At each entry one of them is 0."""
    real, xp = cache, array_module(dy)
    return xp.where(real, dy, 0), xp.where(real, 0, dy)


def _parts(x: Array, n: int) -> list[Array]:
    """Return the n equal parts of the last axis. Shapes: x (..., n N) -> n times (..., N)."""
    width = x.shape[-1] // n
    return [x[..., k * width : (k + 1) * width] for k in range(n)]
