"""Dropout: Srivastava et al. 2014."""

from npformer.backend import Array, Generator, random_keep_mask
from npformer.errors import UserError


def dropout(x: Array, p: float, rng: Generator | None) -> tuple[Array, Array | None]:
    """Compute y = x dropout_mask, where dropout_mask is 0 with probability p and 1 / (1 - p) otherwise.

    The expected value of y is x. If p is 0, y is x and no random number is drawn.

    Args:
        x: The input, of any shape.
        p: The dropout probability.
        rng: The generator. It is needed if p > 0.

    Returns:
        y, of the shape of x, and the cache: the dropout mask, or None if nothing was dropped.

    Raises:
        UserError: If p is outside [0, 1), or if there is no generator and p > 0.

    Source: Srivastava et al. 2014, section 4, with the factor 1 / (1 - p) applied in training.
    """
    check_dropout(p, rng)
    if p == 0:
        return x, None
    kept = random_keep_mask(rng, x.shape, p, x)
    dropout_mask = kept.astype(x.real.dtype) * (1 / (1 - p))  # with the precision of x
    return x * dropout_mask, dropout_mask


def dropout_backward(dy: Array, cache: Array | None) -> Array:
    """Return dx = dy dropout_mask, of the shape of x."""
    dropout_mask = cache
    # y = x dropout_mask
    return dy if dropout_mask is None else dy * dropout_mask


def check_dropout(p: float, rng: Generator | None) -> None:
    """Check that the dropout probability is in [0, 1), and that a generator is given if it is needed.

    Raises:
        UserError: If p is outside [0, 1), or if there is no generator and p > 0.
    """
    if not 0 <= p < 1:
        raise UserError(f"the dropout probability is {p}: it must be at least 0 and less than 1")
    if p > 0 and rng is None:
        raise UserError(f"dropout with p = {p} needs a generator: give rng=np.random.default_rng(seed)")
