"""Dropout: Srivastava et al. 2014."""

from npformer.backend import random_kept
from npformer.errors import UserError


def dropout(x, rate, rng):
    """y = x keep, with keep = 0 at a share `rate` of the entries and 1 / (1 - rate) at the others.

    So the expected value of y is x. With rate 0, y is x and nothing is drawn.
    Shapes: x (...) -> y (...). The cache is keep, or None where nothing was dropped.
    Errors: UserError for a rate outside [0, 1), or no generator where something is to be dropped.
    """
    check_dropout(rate, rng)
    if rate == 0:
        return x, None
    kept = random_kept(rng, x.shape, rate, x)
    keep = kept.astype(x.real.dtype) * (1 / (1 - rate))  # x's own precision
    return x * keep, keep


def dropout_backward(dy, cache):
    """dx = dy keep."""
    keep = cache
    # y = x keep
    return dy if keep is None else dy * keep


def check_dropout(rate, rng):
    """Refuse a rate outside [0, 1), and dropping without a generator."""
    if not 0 <= rate < 1:
        raise UserError(f"the dropout rate is {rate}: it is a share, from 0 up to but not 1")
    if rate > 0 and rng is None:
        raise UserError(f"dropout at rate {rate} needs a generator: give rng=np.random.default_rng(seed)")
