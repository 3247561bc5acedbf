"""One word of a recurrent network: what LSTM and GRU do with what they have read and what they remember.

A cell here is the part without parameters: the layers of npformer.layers.recurrent make its inputs by two
linear maps, one of the word and one of the state before it.
"""

from typing import Any, NamedTuple

from npformer.backend import array_module
from npformer.functional.activations import sigmoid, sigmoid_backward


class LSTMCache(NamedTuple):
    """What lstm_cell_backward needs."""

    c: Any  # (..., N) the memory before this word
    i: Any  # (..., N) how much of the new is written
    f: Any  # (..., N) how much of the old is kept
    g: Any  # (..., N) the new
    o: Any  # (..., N) how much is shown
    shown: Any  # (..., N) tanh of the memory after this word


def lstm_cell(gates, c):
    """The memory c is kept in part and written to in part; what is shown of it is h.

        [i f g o] = gates, then i = sigmoid(i), f = sigmoid(f), g = tanh(g), o = sigmoid(o)
        c' = f c + i g
        h' = o tanh(c')

    Shapes: gates (..., 4N), c (..., N) -> state (..., 2N), h' and c' side by side.
    Source: Hochreiter and Schmidhuber 1997; with a gate that forgets, Gers et al. 2000.
    """
    xp = array_module(gates)
    i, f, g, o = _parts(gates, 4)
    (i, _), (f, _), g, (o, _) = sigmoid(i), sigmoid(f), xp.tanh(g), sigmoid(o)
    after = f * c + i * g  # (..., N)
    shown = xp.tanh(after)  # (..., N)
    return xp.concatenate([o * shown, after], -1), LSTMCache(c, i, f, g, o, shown)


def lstm_cell_backward(dstate, cache):
    """Gradients (dgates, dc) of state = [o tanh(c'), c']."""
    c, i, f, g, o, shown = cache
    xp = array_module(dstate)
    dh, dafter = _parts(dstate, 2)
    # h' = o tanh(c'), and c' is handed on as well: two ways into c'
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


class GRUCache(NamedTuple):
    """What gru_cell_backward needs."""

    h: Any  # (..., N) the state before this word
    last: Any  # (..., N) the third part of `recalled`
    r: Any  # (..., N) how much of the state the new may use
    z: Any  # (..., N) how much of the state is kept
    n: Any  # (..., N) the new


def gru_cell(gates, recalled, h):
    """The state is a mean of what it was and of something new, number by number.

        [r z n] = gates + recalled in the first two parts, r = sigmoid(r), z = sigmoid(z)
        n = tanh(n of gates + r · n of recalled)
        h' = z h + (1 - z) n

    gates come from the word and recalled from the state, since r acts on the state's share alone.
    Shapes: gates (..., 3N), recalled (..., 3N), h (..., N) -> h' (..., N).
    Source: Cho et al. 2014; r after the product, as in PyTorch.
    """
    xp = array_module(gates)
    new_r, new_z, new_n = _parts(gates, 3)
    old_r, old_z, last = _parts(recalled, 3)
    (r, _), (z, _) = sigmoid(new_r + old_r), sigmoid(new_z + old_z)
    n = xp.tanh(new_n + r * last)  # (..., N)
    return z * h + (1 - z) * n, GRUCache(h, last, r, z, n)


def gru_cell_backward(dy, cache):
    """Gradients (dgates, drecalled, dh) of h' = z h + (1 - z) n."""
    h, last, r, z, n = cache
    xp = array_module(dy)
    # h' = z h + (1 - z) n
    dz, dn, dh = dy * (h - n), dy * (1 - z), dy * z
    # n = tanh(new + r last)
    dsum = dn * (1 - n * n)
    dr, dlast = dsum * last, dsum * r
    # r = sigmoid(new + old), z too: a sum hands its gradient to both
    dr, dz = sigmoid_backward(dr, r), sigmoid_backward(dz, z)
    return xp.concatenate([dr, dz, dsum], -1), xp.concatenate([dr, dz, dlast], -1), dh


def hold(new, old, real):
    """The new state where there is a word, the old one where there is padding.

    Shapes: new, old (..., N), real (...) bool -> (..., N), and the cache of hold_backward.
    """
    real = real[..., None]  # (..., 1)
    return array_module(new).where(real, new, old), real


def hold_backward(dy, cache):
    """Gradients (dnew, dold): each number came from one of the two."""
    real, xp = cache, array_module(dy)
    return xp.where(real, dy, 0), xp.where(real, 0, dy)


def _parts(x, n):
    """The n equal parts of the last axis. Shapes: x (..., n N) -> n times (..., N)."""
    width = x.shape[-1] // n
    return [x[..., k * width : (k + 1) * width] for k in range(n)]
