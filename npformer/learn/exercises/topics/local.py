"""Chapter 18: local attention, a window around a predicted position."""

import numpy as np

from npformer import functional as F
from npformer.learn.exercises.exercise import exercises
from npformer.learn.exercises.topics.tools import pairs

WORDS = np.array([[7], [4]])  # S of two sentences, for whatever number of states

LOCAL = exercises(
    r'''
=== 18 gaussian-window-backward: the gradient of weights times a Gaussian

def gaussian_window_backward(dy, cache):
    """Return the gradients of y_s = weights_s bell_s, where bell_s = exp(-(s - p)² / (2 sigma²)).

    dy     the gradient of y, of shape (..., S)
    cache  .weights (..., S); .bell (..., S); .away (..., S), the distances s - p; .sigma, a number
    Returns (dweights, dp), of shapes (..., S) and (...). There is one p for each row.
    """
    weights, bell, away, sigma = cache
    # solution
    dweights = dy * bell
    dbell = dy * weights
    dp = (dbell * bell * away).sum(-1) / sigma**2
    return dweights, dp
--- y is a product of two factors. The gradient of each factor is dy times the other factor.
--- The derivative of the exponent -(s - p)² / (2 sigma²) with respect to p is (s - p) / sigma². So the
    derivative of the bell is bell · (s - p) / sigma².
--- All entries of a row depend on p, so dp is a sum over the row: dp = (dy * weights * bell * away).sum(-1)
    / sigma**2.

=== 18 predict-position-backward: the gradient of a predicted position

def predict_position_backward(dp, cache):
    """Return the gradients of the predicted positions p.

    p = lengths * share, where share = sigmoid(hidden @ v) and hidden = tanh(h @ weight)
    dp     the gradient of the positions, of shape (...)
    cache  .h (..., N), the states; .weight (N, J); .v (J,); .lengths, floats, broadcastable to (...);
           .hidden (..., J); .share (...)
    Returns (dh, dweight, dv), with the shapes of h, weight and v. All states use the same v and weight.
    """
    h, weight, v, lengths, hidden, share = cache
    # solution
    dlogit = dp * lengths * share * (1 - share)
    dv = dlogit.reshape(-1) @ hidden.reshape(-1, hidden.shape[-1])
    dtotal = dlogit[..., None] * v * (1 - hidden**2)
    dweight = h.reshape(-1, h.shape[-1]).T @ dtotal.reshape(-1, dtotal.shape[-1])
    return dtotal @ weight.T, dweight, dv
--- Go through the steps of the formula in the opposite order: lengths, sigmoid, v, tanh, weight.
--- The derivative of the sigmoid is share (1 - share), and the derivative of tanh is 1 - hidden².
--- Let dlogit (...) be the gradient of hidden @ v, and dtotal (..., J) that of h @ weight. dv and dweight
    are sums over all states. Reshape to rows: dv = dlogit.reshape(-1) @ hidden.reshape(-1, J), and dweight =
    h.reshape(-1, N).T @ dtotal.reshape(-1, J).
''',
    {
        "gaussian-window-backward": pairs(
            F.gaussian_window, ("", (2, 4, 7), (2, 4), {"sigma": 1.5}), ("one row", (6,), (), {"sigma": 1.0})
        ),
        "predict-position-backward": pairs(
            F.predict_position,
            ("", (2, 4, 5), (5, 6), (6,), WORDS),
            ("one axis", (3, 5), (5, 5), (5,), WORDS[0]),
        ),
    },
)
