"""Lesson 17: the cells of LSTM and GRU."""

from npformer import functional as F
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.topics.tools import pair_trial

LSTM = (F.lstm_cell, "lstm_cell_backward")
GRU = (F.gru_cell, "gru_cell_backward")

RECURRENT = (
    Exercise(
        "lstm-cell-backward",
        17,
        "one word of an LSTM, backwards",
        '''
import numpy as np


def lstm_cell_backward(dstate, cache):
    """The gradients of one word of an LSTM. Forward, with [i f g o] the four parts of the gates:

        i = sigmoid(i), f = sigmoid(f), g = tanh(g), o = sigmoid(o)
        c' = f c + i g
        h' = o tanh(c')

    dstate  the gradient of the state, shape (..., 2N): of h' in the first half, of c' as it is handed on
            in the second
    cache   .c the memory before this word; .i .f .g .o after sigmoid and tanh; .tanh_c = tanh(c');
            each (..., N)
    Returns (dgates, dc): of the gates before sigmoid and tanh (..., 4N), and of the memory before (..., N).
    """
    c, i, f, g, o, tanh_c = cache
''',
        (
            pair_trial("", *LSTM, (2, 12), (2, 3)),
            pair_trial("gates (2, 4, 20)", *LSTM, (2, 4, 20), (2, 4, 5)),
        ),
        (
            "c' was used in h' and passed on to the next word. Add both gradients before you go on from it.",
            "Each line is a product of two numbers: each of them hears the gradient times the other.",
            "Through sigmoid: times i (1 - i). Through tanh: times 1 - g². Then np.concatenate(.., -1).",
        ),
        {"lstm_cell_backward": F.lstm_cell_backward},
    ),
    Exercise(
        "gru-cell-backward",
        17,
        "one word of a GRU, backwards",
        '''
import numpy as np


def gru_cell_backward(dy, cache):
    """The gradients of one word of a GRU. Forward, with [r z n] the parts of gates, and of hidden_gates:

        r = sigmoid(r of gates + r of hidden_gates)
        z = sigmoid(z of gates + z of hidden_gates)
        n = tanh(n of gates + r · n of hidden_gates)
        h' = z h + (1 - z) n

    dy      the gradient of h', shape (..., N)
    cache   .h the state before this word; .last the n of hidden_gates; .r .z .n after sigmoid and tanh:
            each (..., N)
    Returns (dgates, dhidden_gates, dh), with the shapes (..., 3N), (..., 3N) and (..., N).
    """
    h, last, r, z, n = cache
''',
        (
            pair_trial("", *GRU, (2, 9), (2, 9), (2, 3)),
            pair_trial("gates (2, 4, 15)", *GRU, (2, 4, 15), (2, 4, 15), (2, 4, 5)),
        ),
        (
            "From the last line up: h' = z h + (1 - z) n gives dz, dh and dn. z stands in it twice.",
            "The sum inside the tanh: dsum = dn (1 - n²). It reaches n of gates as it is, and r and last by "
            "a product.",
            "What is added hears the same: r and z of gates and of hidden_gates. Only the third parts "
            "differ: dsum for gates, dsum · r for hidden_gates.",
        ),
        {"gru_cell_backward": F.gru_cell_backward},
    ),
)
