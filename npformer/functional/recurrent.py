"""One time step of a recurrent network: the cells of LSTM and GRU.

The cells have no parameters. The layers in npformer.nn.recurrent compute the inputs of the cells by two
linear maps: one of the token, and one of the state before it.
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
    tanh_c: Array  # (..., N) tanh of the cell state after this token


def lstm_cell(gates: Array, c: Array) -> tuple[Array, LSTMCache]:
    """Compute the next state of an LSTM: the hidden state h' and the cell state c'.

        [gi gf gg go] = gates,  i = sigmoid(gi), f = sigmoid(gf), g = tanh(gg), o = sigmoid(go)
        c' = f c + i g
        h' = o tanh(c')

    Args:
        gates: The inputs of the four gates before their activations, of shape (..., 4N).
        c: The cell state before this token, of shape (..., N).

    Returns:
        The state, which is h' followed by c', of shape (..., 2N), and the cache.

    Source: Hochreiter and Schmidhuber 1997; the forget gate is from Gers et al. 2000.
    """
    xp = array_module(gates)
    i, f, g, o = _parts(gates, 4)
    (i, _), (f, _), g, (o, _) = sigmoid(i), sigmoid(f), xp.tanh(g), sigmoid(o)
    after = f * c + i * g  # (..., N), which is c'
    tanh_c = xp.tanh(after)  # (..., N)
    return xp.concatenate([o * tanh_c, after], -1), LSTMCache(c, i, f, g, o, tanh_c)


def lstm_cell_backward(dstate: Array, cache: LSTMCache) -> tuple[Array, Array]:
    """Return the gradients dgates (..., 4N) and dc (..., N) of state = [o tanh(c'), c']."""
    c, i, f, g, o, tanh_c = cache
    xp = array_module(dstate)
    dh, dafter = _parts(dstate, 2)
    # h' = o tanh(c'), and c' is an output too, so its two gradients are added
    do = dh * tanh_c
    dafter = dafter + dh * o * (1 - tanh_c * tanh_c)
    # c' = f c + i g
    di, df, dg, dc = dafter * g, dafter * c, dafter * i, dafter * f
    # i = sigmoid(gi), f = sigmoid(gf), g = tanh(gg), o = sigmoid(go)
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
    last: Array  # (..., N) the third part of hidden_gates, which is multiplied by r
    r: Array  # (..., N) the reset gate
    z: Array  # (..., N) the update gate
    n: Array  # (..., N) the candidate


def gru_cell(gates: Array, hidden_gates: Array, h: Array) -> tuple[Array, GRUCache]:
    """Compute the next state of a GRU, a weighted mean of the old state and a candidate.

        [gr gz gn] = gates,  [hr hz hn] = hidden_gates
        r = sigmoid(gr + hr),  z = sigmoid(gz + hz),  n = tanh(gn + r hn)
        h' = z h + (1 - z) n

    gates and hidden_gates are separate arguments, since r multiplies only a part of hidden_gates.

    Args:
        gates: The output of the linear map of the token, of shape (..., 3N).
        hidden_gates: The output of the linear map of the state, of shape (..., 3N).
        h: The state before this token, of shape (..., N).

    Returns:
        h', of shape (..., N), and the cache.

    Source: Cho et al. 2014. As in PyTorch, r multiplies the linear map's output and not the state itself.
    """
    xp = array_module(gates)
    new_r, new_z, new_n = _parts(gates, 3)
    old_r, old_z, last = _parts(hidden_gates, 3)
    (r, _), (z, _) = sigmoid(new_r + old_r), sigmoid(new_z + old_z)
    n = xp.tanh(new_n + r * last)  # (..., N)
    return z * h + (1 - z) * n, GRUCache(h, last, r, z, n)


def gru_cell_backward(dy: Array, cache: GRUCache) -> tuple[Array, Array, Array]:
    """Return the gradients dgates (..., 3N), dhidden_gates (..., 3N) and dh (..., N)."""
    h, last, r, z, n = cache
    xp = array_module(dy)
    # h' = z h + (1 - z) n
    dz, dn, dh = dy * (h - n), dy * (1 - z), dy * z
    # n = tanh(gn + r hn), where hn is `last`
    dsum = dn * (1 - n * n)
    dr, dlast = dsum * last, dsum * r
    # r = sigmoid(gr + hr), z = sigmoid(gz + hz): a sum passes its gradient to both terms
    dr, dz = sigmoid_backward(dr, r), sigmoid_backward(dz, z)
    return xp.concatenate([dr, dz, dsum], -1), xp.concatenate([dr, dz, dlast], -1), dh


def masked_update(new: Array, old: Array, is_token: Array) -> tuple[Array, Array]:
    """Return the new state where there is a token, and the old state where there is padding.

    Args:
        new: The new state, of shape (..., N).
        old: The old state, of shape (..., N).
        is_token: Bool, of shape (...). True at tokens and False at padding.

    Returns:
        The state, of shape (..., N), and the cache, which is `is_token` with shape (..., 1).
    """
    is_token = is_token[..., None]  # (..., 1)
    return array_module(new).where(is_token, new, old), is_token


def masked_update_backward(dy: Array, cache: Array) -> tuple[Array, Array]:
    """Return the gradients dnew and dold, each of shape (..., N). At each entry one of them is 0."""
    is_token, xp = cache, array_module(dy)
    return xp.where(is_token, dy, 0), xp.where(is_token, 0, dy)


def _parts(x: Array, n: int) -> list[Array]:
    """Return the n equal parts of the last axis. Shapes: x (..., n N) -> n times (..., N)."""
    width = x.shape[-1] // n
    return [x[..., k * width : (k + 1) * width] for k in range(n)]
