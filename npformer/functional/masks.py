"""Attention masks: bool arrays, True where a query may attend to a key, and their action on the scores.

Masks broadcast to the scores (B, H, T, S) and are combined with &. The scores of masked keys become -inf. The
softmax then gives them the weight 0, also in a row in which all keys are masked. Large negative numbers,
which several introductions to the Transformer use instead, are in npformer.functional.tutorial_masks.
"""

import math

import numpy as np

from npformer.backend import Array, array_module
from npformer.errors import UserError


def padding_mask(ids: Array, pad_id: int = 0) -> Array:
    """Return True at the keys that are not padding. Shapes: ids (B, S) -> (B, 1, 1, S)."""
    return (ids != pad_id)[:, None, None, :]


def query_mask(ids: Array, pad_id: int = 0) -> Array:
    """Return True at the queries that are not padding. Shapes: ids (B, T) -> (B, 1, T, 1)."""
    return (ids != pad_id)[:, None, :, None]


def causal_mask(length: int, like: Array, *, window: int | None = None, start: int | Array = 0) -> Array:
    """Return the mask that allows position t to attend to positions 0 .. t, or to the last ones of them.

    Args:
        length: The number of queries T. Their positions are start, start + 1, ...
        like: An array on the device where the mask is needed.
        window: The number of positions that a query may attend to, its own included: t - window + 1 .. t.
            None means all positions 0 .. t.
        start: The position of the first query, which is the number of keys before it. It is one number for
            all sentences, or an array (B,) with one number for each sentence.

    Returns:
        Bool, of shape (T, start + T), or of shape (B, 1, T, max(start) + T) if start is an array.

    Raises:
        UserError: If the window is less than 1.

    Source: Vaswani et al. 2017, section 3.2.3; Beltagy et al. 2020, section 3.1 (the window).
    """
    xp = array_module(like)
    if isinstance(start, int):
        query = xp.arange(start, start + length)[:, None]  # (T, 1)
        key = xp.arange(start + length)  # (start + T,)
    else:
        query = (xp.asarray(start)[:, None] + xp.arange(length))[:, None, :, None]  # (B, 1, T, 1)
        key = xp.arange(int(start.max()) + length)  # (max(start) + T,)
    if window is None:
        return query >= key
    if window < 1:
        raise UserError(f"the window of a causal mask is {window}: make it 1 or more")
    return (query >= key) & (query < key + window)


def local_mask(length: int, width: int, like: Array) -> Array:
    """Return the mask that allows position t to attend to positions t - width .. t + width.

    Args:
        length: The number of positions T.
        width: The largest distance.
        like: An array on the device where the mask is needed.

    Returns:
        Bool, of shape (T, T).

    Raises:
        UserError: If the width is negative.
    """
    if width < 0:
        raise UserError(f"the width of a local mask is {width}: make it 0 or more")
    xp = array_module(like)
    position = xp.arange(length)
    distance = position[:, None] - position[None, :]
    return (distance <= width) & (distance >= -width)


def mask_from_embeddings(x: Array) -> Array:
    """Return a key mask that is True where the entries of the vector do not sum to 0.

    "Step by step through Attention is All You Need" computes its masks in this way. This function exists to
    show that the rule fails. After positions were added, the vector of padding does not sum to 0, so padding
    is not masked. The output of a layer norm can sum to exactly 0, so a token is masked. npformer computes
    its masks from ids. Shapes: x (B, S, D) -> (B, 1, 1, S).
    """
    return (x.sum(-1) != 0)[:, None, None, :]


def mask_scores(scores: Array, mask: Array | None) -> tuple[Array, Array | None]:
    """Replace the scores by -inf where the mask is False, so that the softmax gives the weight 0 there.

    Args:
        scores: The scores, of shape (..., T, S).
        mask: Bool, broadcastable to the scores. True means that the query may attend to the key. None for
            all True.

    Returns:
        The masked scores, of shape (..., T, S), and the cache, which is the mask.

    Raises:
        UserError: If the mask is not bool or does not broadcast to the scores.
    """
    if mask is None:
        return scores, None
    check_mask(mask, scores.shape, "mask")
    return array_module(scores).where(mask, scores, -math.inf), mask


def mask_scores_backward(dscores: Array, cache: Array | None) -> Array:
    """Return the gradient of the scores, of shape (..., T, S): 0 where a score was replaced.

    Attention does not need it: where the weight is 0, the gradient that comes from the softmax is 0.
    """
    mask = cache
    # scores = where(mask, scores, -inf)
    return dscores if mask is None else array_module(dscores).where(mask, dscores, 0)


def check_mask(mask: Array | None, shape: tuple[int, ...], name: str) -> None:
    """Check that a mask is bool and broadcasts to the shape of the scores.

    Args:
        mask: The mask, or None.
        shape: The shape of the scores.
        name: The name of the argument, for the message.

    Raises:
        UserError: If the mask has another dtype or shape.
    """
    if mask is None:
        return
    kind = getattr(mask, "dtype", type(mask).__name__)
    if str(kind) != "bool":
        raise UserError(f"{name} has dtype {kind}: make it bool, where True means that the query may attend")
    try:
        together = np.broadcast_shapes(mask.shape, shape)
    except ValueError:
        together = None
    if together != tuple(shape):
        raise UserError(f"{name} has shape {mask.shape} and must broadcast to the scores' shape {shape}")


def check_token_mask(mask: Array | None, x: Array) -> None:
    """Check that a mask of tokens is bool and has one entry for each vector of x.

    Shapes: mask (...), x (..., D).

    Raises:
        UserError: If the mask has another dtype or shape.
    """
    if mask is None:
        return
    kind = getattr(mask, "dtype", type(mask).__name__)
    if str(kind) != "bool":
        raise UserError(f"mask has dtype {kind}: make it bool, where True marks a token")
    if tuple(mask.shape) != tuple(x.shape[:-1]):
        raise UserError(f"mask has shape {mask.shape} and the tokens {x.shape[:-1]}: make them equal")
