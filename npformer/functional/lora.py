"""LoRA: a linear map whose weight is frozen, and whose change is the product of two narrow matrices.

A fine-tuned weight is weight + dW. LoRA writes the change dW as scale a b, where a has R columns and b has R
rows. Only a and b learn. R is small, so they have far fewer numbers than the weight.

Source: Hu et al. 2021, section 4.1.
"""

from typing import NamedTuple

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.half import sums_in_float32


@cache_class
class LoRACache(NamedTuple):
    """The cache of lora_linear."""

    x: Array  # (..., I)
    h: Array  # (N, R) x a, with one row for each position
    a: Array  # (I, R)
    b: Array  # (R, O)
    weight: Array  # (I, O) frozen
    scale: float


def lora_linear(
    x: Array, a: Array, b: Array, weight: Array, *, scale: float = 1.0
) -> tuple[Array, LoRACache]:
    """Compute y = x weight + scale (x a) b, without forming the matrix a b.

    Args:
        x: The input, of shape (..., I).
        a: The first learned matrix, of shape (I, R).
        b: The second learned matrix, of shape (R, O).
        weight: The frozen weight, of shape (I, O), which gets no gradient.
        scale: A factor of the change, α / R in the paper.

    Returns:
        y, of shape (..., O), and the cache.

    Source: Hu et al. 2021, section 4.1.
    """
    rows = x.reshape(-1, x.shape[-1])  # (N, I)
    h = rows @ a  # (N, R)
    y = rows @ weight + scale * (h @ b)  # (N, O)
    return y.reshape(*x.shape[:-1], weight.shape[1]), LoRACache(x, h, a, b, weight, scale)


@sums_in_float32
def lora_linear_backward(dy: Array, cache: LoRACache) -> tuple[Array, Array, Array]:
    """Return the gradients dx (..., I), da (I, R) and db (R, O). No array of shape (I, O) is formed."""
    x, h, a, b, weight, scale = cache
    rows = x.reshape(-1, x.shape[-1])  # (N, I)
    drows = dy.reshape(-1, dy.shape[-1])  # (N, O)
    # y = rows weight + scale h b
    db = scale * (h.T @ drows)  # (R, O)
    dh = scale * (drows @ b.T)  # (N, R)
    # h = rows a
    da = rows.T @ dh  # (I, R)
    dx = drows @ weight.T + dh @ a.T  # (N, I)
    return dx.reshape(x.shape), da, db
