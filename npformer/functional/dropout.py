"""Dropout: Srivastava et al. 2014."""

from npformer.backend import random_uniform


def dropout(x, rate, rng):
    """y = x keep, with keep = 0 at a share `rate` of the entries and 1 / (1 - rate) at the others.

    So the expected value of y is x. With rate 0 or rng None, y is x and nothing is drawn.
    Shapes: x (...) -> y (...). The cache is keep, or None where nothing was dropped.
    """
    if rate == 0 or rng is None:
        return x, None
    kept = random_uniform(rng, x.shape, x) >= rate
    keep = kept.astype(x.real.dtype) * (1 / (1 - rate))  # x's own precision
    return x * keep, keep


def dropout_backward(dy, cache):
    """dx = dy keep."""
    keep = cache
    # y = x keep
    return dy if keep is None else dy * keep
