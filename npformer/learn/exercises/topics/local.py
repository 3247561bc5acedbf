"""Lesson 18: local attention, a window round a predicted position."""

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import Exercise
from npformer.learn.exercises.topics.tools import pair_trial

WORDS = np.array([[7], [4]])  # S of two sentences, for whatever number of states

LOCAL = (
    Exercise(
        "gaussian-window-backward",
        18,
        "the gradient of weights under a Gaussian",
        '''

def gaussian_window_backward(dy, cache):
    """The gradients of y_s = weights_s exp(-(s - p)² / (2 sigma²)), so y = weights bell.

    dy     the gradient of y, shape (..., S)
    cache  .weights (..., S); .bell (..., S), the exponentials; .away (..., S), that is s - p; .sigma
    Returns (dweights, dp), with the shapes (..., S) and (...): one p for each row.
    """
    weights, bell, away, sigma = cache
''',
        (
            pair_trial("", F.gaussian_window, "gaussian_window_backward", (2, 4, 7), (2, 4), sigma=1.5),
            pair_trial("one row", F.gaussian_window, "gaussian_window_backward", (6,), (), sigma=1.0),
        ),
        (
            "y is a product: each factor's gradient is dy times the other factor.",
            "The derivative of the exponent -(s - p)² / (2 sigma²) by p is (s - p) / sigma², and of the "
            "bell by p therefore bell (s - p) / sigma².",
            "p reaches every word of its row: dp = (dy * weights * bell * away).sum(-1) / sigma**2.",
        ),
        {"gaussian_window_backward": F.gaussian_window_backward},
    ),
    Exercise(
        "predict-position-backward",
        18,
        "the gradient of where a state points",
        '''

def predict_position_backward(dp, cache):
    """The gradients of p = lengths * share, share = sigmoid(hidden @ v), hidden = tanh(h @ weight).

    dp     the gradient of the positions, shape (...)
    cache  .h (..., N), the states; .weight (N, J); .v (J,); .lengths, broadcastable to (...), floats;
           .hidden (..., J); .share (...)
    Returns (dh, dweight, dv), with the shapes of h, weight and v. v and weight served every state.
    """
    h, weight, v, lengths, hidden, share = cache
''',
        (
            pair_trial("", F.predict_position, "predict_position_backward", (2, 4, 5), (5, 6), (6,), WORDS),
            pair_trial(
                "one axis", F.predict_position, "predict_position_backward", (3, 5), (5, 5), (5,), WORDS[0]
            ),
        ),
        (
            "Four operations, so four steps, the last one first: times lengths, sigmoid, times v, tanh.",
            "sigmoid' = share (1 - share) and tanh' = 1 - hidden², both by what came out.",
            "With dlogit (...) and dtotal (..., J), dv and dweight are sums over all states: as rows, "
            "dlogit.reshape(-1) @ hidden.reshape(-1, J), and h as rows, transposed, @ dtotal as rows.",
        ),
        {"predict_position_backward": F.predict_position_backward},
    ),
)
