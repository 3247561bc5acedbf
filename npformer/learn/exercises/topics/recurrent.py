"""Chapter 17: the cells of LSTM and GRU."""

from npformer import functional as F
from npformer.learn.exercises.exercise import Task, exercises
from npformer.learn.exercises.topics.tools import pair_trial

LSTM = (F.lstm_cell, "lstm_cell_backward")
GRU = (F.gru_cell, "gru_cell_backward")

RECURRENT = exercises(
    r'''
=== 17 lstm-cell-backward: the backward pass of an LSTM cell
import numpy as np


def lstm_cell_backward(dstate, cache):
    """Return the gradients of one time step of an LSTM.

    The forward pass, where gates = [gi gf gg go] has four parts of N numbers:

        i = sigmoid(gi), f = sigmoid(gf), g = tanh(gg), o = sigmoid(go)
        c' = f c + i g
        h' = o tanh(c')

    dstate  the gradients of the two outputs, of shape (..., 2N): first that of h', then that of c', which
            the next time step reads
    cache   .c, the cell state before this time step; .i, .f, .g and .o; .tanh_c = tanh(c'); each (..., N)
    Returns (dgates, dc), of shapes (..., 4N) and (..., N).
    """
    c, i, f, g, o, tanh_c = cache
    # solution
    N = c.shape[-1]
    dh, dcell = dstate[..., :N], dstate[..., N:]
    do = dh * tanh_c
    dcell = dcell + dh * o * (1 - tanh_c**2)
    di, dg = dcell * g, dcell * i
    df, dc = dcell * c, dcell * f
    gates = [di * i * (1 - i), df * f * (1 - f), dg * (1 - g**2), do * o * (1 - o)]
    return np.concatenate(gates, -1), dc
--- c' is an output, and h' depends on it as well. Add both gradients of c' before you continue to f, c, i
    and g.
--- The formulas contain products. The gradient of a factor is the gradient of the product times the other
    factor.
--- The derivative of i = sigmoid(gi) is i (1 - i), and the derivative of g = tanh(gg) is 1 - g². Join the
    four gradients with np.concatenate([...], -1).

=== 17 gru-cell-backward: the backward pass of a GRU cell
import numpy as np


def gru_cell_backward(dy, cache):
    """Return the gradients of one time step of a GRU.

    The forward pass, where gates = [gr gz gn] and hidden_gates = [hr hz hn] have three parts of N numbers:

        r = sigmoid(gr + hr)
        z = sigmoid(gz + hz)
        n = tanh(gn + r hn)
        h' = z h + (1 - z) n

    dy      the gradient of h', of shape (..., N)
    cache   .h, the state before this time step; .last, which is hn; .r, .z and .n; each (..., N)
    Returns (dgates, dhidden_gates, dh), of shapes (..., 3N), (..., 3N) and (..., N).
    """
    h, last, r, z, n = cache
    # solution
    dz = dy * (h - n)
    dn, dh = dy * (1 - z), dy * z
    dsum = dn * (1 - n**2)
    dr, dlast = dsum * last, dsum * r
    dr, dz = dr * r * (1 - r), dz * z * (1 - z)
    return np.concatenate([dr, dz, dsum], -1), np.concatenate([dr, dz, dlast], -1), dh
--- Begin with the last formula, h' = z h + (1 - z) n. It gives dz, dh and dn. z occurs in it twice.
--- The gradient of the sum inside the tanh is dsum = dn (1 - n²). It is also the gradient of gn. The
    gradients of r and hn follow from the product r hn.
--- gr and hr are added, so they have the same gradient, and so do gz and hz. Only the third parts differ:
    the gradient of gn is dsum, and the gradient of hn is dsum · r.
''',
    {
        "lstm-cell-backward": Task(
            F.lstm_cell_backward,
            pair_trial("", *LSTM, (2, 12), (2, 3)),
            pair_trial("gates (2, 4, 20)", *LSTM, (2, 4, 20), (2, 4, 5)),
        ),
        "gru-cell-backward": Task(
            F.gru_cell_backward,
            pair_trial("", *GRU, (2, 9), (2, 9), (2, 3)),
            pair_trial("gates (2, 4, 15)", *GRU, (2, 4, 15), (2, 4, 15), (2, 4, 5)),
        ),
    },
)
