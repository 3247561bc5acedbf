"""Splitting the last axis into heads, merging the heads again, and sharing key heads among query heads.

There are two ways, which lead to the same attention. "The illustrated Transformer" gives the heads an axis of
their own, as npformer does. "Step by step through Attention is All You Need" stacks the heads on the batch
axis. Both only rearrange the entries of an array. So the backward pass of splitting is merging, and the
backward pass of merging is splitting.

In grouped-query attention, several query heads share one head of keys and values. repeat_heads gives each
query head its own copy, so that attention is computed as with separate heads. In multi-head latent attention,
the heads share some columns of their keys only, which join_shared puts before the columns of each head.
"""

from npformer.backend import Array, array_module
from npformer.functional.half import sums_in_float32


def split_heads(x: Array, n_heads: int) -> Array:
    """Split the last axis into heads. The new axis of the heads comes before that of the positions.

    Shapes: x (B, T, H·K) -> (B, H, T, K).
    """
    batch, length, width = x.shape
    return x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)


def merge_heads(x: Array) -> Array:
    """Concatenate the heads (Concat in the paper). Shapes: x (B, H, T, K) -> (B, T, H·K)."""
    batch, n_heads, length, width = x.shape
    return x.swapaxes(1, 2).reshape(batch, length, n_heads * width)


def split_heads_on_batch(x: Array, n_heads: int) -> Array:
    """Split the last axis into heads and stack them on the batch axis.

    This is the way of "Step by step through Attention is All You Need". Head 0 of all sentences comes first.
    Shapes: x (B, T, H·K) -> (H·B, T, K).
    """
    xp = array_module(x)
    return xp.concatenate(xp.split(x, n_heads, axis=-1), axis=0)


def merge_heads_on_batch(x: Array, n_heads: int) -> Array:
    """Undo split_heads_on_batch. Shapes: x (H·B, T, K) -> (B, T, H·K)."""
    xp = array_module(x)
    return xp.concatenate(xp.split(x, n_heads, axis=0), axis=-1)


def repeat_heads(x: Array, n_repeats: int) -> tuple[Array, int]:
    """Repeat each head n_repeats times, next to each other: head g becomes the heads g R .. g R + R - 1.

    So query head h attends to the keys of head h // R. With one repeat, y is x itself.

    Args:
        x: The keys or values of G heads, of shape (B, G, S, K).
        n_repeats: The number R of query heads that share a head.

    Returns:
        y, of shape (B, G·R, S, K), and the cache, which is n_repeats.

    Source: Ainslie et al. 2023, section 2.2.
    """
    return (x if n_repeats == 1 else array_module(x).repeat(x, n_repeats, axis=1)), n_repeats


@sums_in_float32
def repeat_heads_backward(dy: Array, cache: int) -> Array:
    """Return dx, of shape (B, G, S, K): the gradient of a shared head is the sum over its R copies."""
    n_repeats = cache
    if n_repeats == 1:
        return dy
    batch, n_heads, length, width = dy.shape
    # y[:, g R + r] = x[:, g] for each r from 0 to R - 1
    return dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)


def join_shared(shared: Array, own: Array) -> tuple[Array, int]:
    """Put the columns that all heads share before the columns of each head: y_h = [shared; own_h].

    Args:
        shared: The columns that all heads share, of shape (B, 1, S, R).
        own: The columns of each head, of shape (B, H, S, K).

    Returns:
        y, of shape (B, H, S, R + K), and the cache, which is the width R.

    Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.3.
    """
    xp, width = array_module(own), shared.shape[-1]
    copies = xp.broadcast_to(shared, (*own.shape[:-1], width))  # (B, H, S, R)
    return xp.concatenate([copies, own], -1), width


@sums_in_float32
def join_shared_backward(dy: Array, cache: int) -> tuple[Array, Array]:
    """Return the gradients dshared (B, 1, S, R), the sum over the heads, and down (B, H, S, K) of own."""
    width = cache
    # y = [shared; own], with a copy of the shared columns for each head
    return dy[..., :width].sum(1, keepdims=True), dy[..., width:]
