"""A direct computation of how informative heads are, compared with that of npformer.pretrained.attention."""

import numpy as np


def informativeness_row_by_row(weights, may, *, by_distance):
    """Return the share of each head's weight that its other rows do not tell: (L, H, T, S) -> (L, H)."""
    return np.array([[_of_head(head, may, by_distance) for head in layer] for layer in weights])


def _of_head(weights, may, by_distance):
    missed = []
    for t, row in enumerate(weights):
        if may[t].sum() > 1:
            guesses = [_guess(weights, may, t, 0)] + [_guess(weights, may, t, 1)] * by_distance
            missed.append(min(1 - np.minimum(row, guess).sum() for guess in guesses))
    return np.mean(missed)


def _guess(weights, may, t, slope):
    """Guess row t: for each key the mean over the other rows at the same key, or at the same distance."""
    count = weights.shape[1]
    guess = np.zeros(count)
    for s in np.flatnonzero(may[t]):
        places = [(u, s + slope * (u - t)) for u in range(len(weights)) if u != t]
        others = [weights[u, k] for u, k in places if 0 <= k < count and may[u, k]]
        guess[s] = np.mean(others) if others else 0
    return guess / (guess.sum() or 1)
