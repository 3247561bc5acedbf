"""Chapters 6 and 7: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.functional import attention_backward
from npformer.functional import split_heads as split_heads_
from npformer.learn.exercises.plain.registry import mistake, plain

SMALLER = "position[None, :] <= position[:, None]"
CLOSE = "return np.abs(distance) <= width"
GRADIENTS = "layer.project_backward(dq, dk, dv, cache)"


@plain(
    "causal-mask",
    mistake(
        "the diagonal is hidden: a position may attend to itself",
        SMALLER,
        "position[None, :] < position[:, None]",
    ),
    mistake(
        "it is transposed: rows are queries, and each may attend to the earlier keys and not to the "
        "later ones",
        SMALLER,
        "position[None, :] >= position[:, None]",
    ),
    mistake(
        "it is the opposite: the later positions are shown and the earlier ones are hidden",
        SMALLER,
        "position[None, :] > position[:, None]",
    ),
    mistake(
        "a position may attend to the next position too: one diagonal too many is shown",
        SMALLER,
        "position[None, :] <= position[:, None] + 1",
    ),
    mistake(
        "nothing is hidden: the later positions must be hidden",
        SMALLER,
        "(position[None, :] + position[:, None]) >= 0",
    ),
    mistake(
        "only the diagonal is shown: a position may attend to all earlier positions too",
        SMALLER,
        "position[None, :] == position[:, None]",
    ),
    mistake(
        "the first key (column 0) is hidden, and every position may attend to it",
        SMALLER,
        "(position[None, :] <= position[:, None]) & (position > 0)",
    ),
)
def causal_mask(length: Any) -> Any:
    """Return the mask that hides later positions."""
    position = np.arange(length)
    return position[None, :] <= position[:, None]


@plain(
    "padding-mask",
    mistake("it is the opposite: True must stand at tokens and False at padding", "!= pad_id", "== pad_id"),
    mistake("pad_id is ignored: the ids are compared with 0", "!= pad_id", "!= 0"),
    mistake(
        "the comparison is wrong: ids that are smaller than pad_id are tokens too", "!= pad_id", "> pad_id"
    ),
    mistake(
        "the comparison is wrong: padding is compared with >= or <, and only pad_id itself is padding",
        "!= pad_id",
        "< pad_id",
    ),
)
def padding_mask(ids: Any, pad_id: Any = 0) -> Any:
    """Return the mask that hides padding."""
    return (ids != pad_id)[:, None, None, :]


@plain(
    "local-mask",
    mistake(
        "the comparison is < and must include the distance width itself",
        "np.abs(distance) <= width",
        "np.abs(distance) < width",
    ),
    mistake(
        "the absolute value is left out, so all keys on one side (the later ones) are shown",
        "np.abs(distance)",
        "distance",
    ),
    mistake(
        "the absolute value is left out, so all keys on one side (the earlier ones) are shown",
        "np.abs(distance)",
        "-distance",
    ),
    mistake(
        "the window is half as wide as it should be: width is the distance to each side",
        "np.abs(distance)",
        "2 * np.abs(distance)",
    ),
    mistake(
        "the window is twice as wide as it should be",
        "np.abs(distance) <= width",
        "np.abs(distance) <= 2 * width",
    ),
    mistake(
        "it is the opposite: the window is hidden and the rest is shown",
        "np.abs(distance) <= width",
        "np.abs(distance) > width",
    ),
    mistake(
        "only one side of the window is shown: the later positions, from t to t + width, are hidden",
        CLOSE,
        CLOSE + " & (distance >= 0)",
        "return np.abs(distance) <= width &",
        "return (np.abs(distance) <= width) &",
    ),
    mistake(
        "only one side of the window is shown: the earlier positions, from t - width to t, are hidden",
        CLOSE,
        "return (np.abs(distance) <= width) & (distance <= 0)",
    ),
    mistake("the window is one too wide: the largest distance is width", "<= width", "<= width + 1"),
    mistake(
        "the position itself is hidden: its distance is 0",
        CLOSE,
        "return (np.abs(distance) <= width) & (distance != 0)",
    ),
)
def local_mask(length: Any, width: Any) -> Any:
    """Return the mask of a window around each position."""
    position = np.arange(length)
    distance = position[:, None] - position[None, :]
    return np.abs(distance) <= width


@plain(
    "mask-scores-backward",
    mistake(
        "the mask is left out: the gradient of a masked score should be 0",
        "np.where(mask, dscores, 0)",
        "dscores",
    ),
    mistake(
        "the two cases are exchanged: the gradient passes where the mask is True",
        "dscores, 0)",
        "0, dscores)",
    ),
    mistake(
        "masked scores get the gradient -1e9: their gradient should be 0", "dscores, 0)", "dscores, -1e9)"
    ),
    mistake(
        "masked scores get an infinite gradient: their gradient should be 0",
        "dscores, 0)",
        "dscores, -np.inf)",
    ),
    mistake(
        "the mask itself is returned: dscores is left out",
        "np.where(mask, dscores, 0)",
        "np.where(mask, np.ones_like(dscores), 0)",
    ),
)
def mask_scores_backward(dscores: Any, cache: Any) -> Any:
    """Return the gradient of scores that a mask has changed."""
    mask = cache.mask
    return np.where(mask, dscores, 0)


@plain(
    "split-heads",
    mistake(
        "the axes are not swapped: a reshape to (B, H, T, K) alone mixes the numbers of different tokens",
        "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
        "x.reshape(B, n_heads, T, D // n_heads)",
    ),
    mistake(
        "the last axis is split into (K, H) and must be split into (H, K): the first K numbers "
        "belong to head 0",
        "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
        "x.reshape(B, T, D // n_heads, n_heads).transpose(0, 3, 1, 2)",
    ),
    mistake("the axes of heads and positions are not swapped", ".swapaxes(1, 2)", ""),
    mistake(
        "the heads are in the opposite order", "n_heads, D // n_heads)", "n_heads, D // n_heads)[:, :, ::-1]"
    ),
)
def split_heads(x: Any, n_heads: Any) -> Any:
    """Return the vectors with their last axis split into heads."""
    B, T, D = x.shape
    return x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)


@plain(
    "merge-heads",
    mistake(
        "the axes are not swapped: a reshape alone mixes the numbers of different tokens",
        "x.swapaxes(1, 2)",
        "x",
    ),
    mistake(
        "the last axis is merged as (K, H) and must be merged as (H, K): the first K numbers are "
        "those of head 0",
        "x.swapaxes(1, 2)",
        "x.transpose(0, 2, 3, 1)",
    ),
    mistake(
        "axes 2 and 3 are swapped, and axes 1 and 2 must be swapped", "x.swapaxes(1, 2)", "x.swapaxes(2, 3)"
    ),
    mistake(
        "axes 1 and 3 are swapped, and axes 1 and 2 must be swapped", "x.swapaxes(1, 2)", "x.swapaxes(1, 3)"
    ),
)
def merge_heads(x: Any) -> Any:
    """Return the vectors with their heads concatenated."""
    B, H, T, K = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * K)


@plain(
    "multi-head-backward",
    mistake(
        "only the gradient of the query is returned: x is key and value too, so all three must be summed",
        "dquery + dkey + dvalue",
        "dquery",
    ),
    mistake(
        "the gradient of the value is left out of the sum: x was used three times",
        "dquery + dkey + dvalue",
        "dquery + dkey",
    ),
    mistake(
        "the gradient of the key is left out of the sum: x was used three times",
        "dquery + dkey + dvalue",
        "dquery + dvalue",
    ),
    mistake(
        "the gradient of the query is left out of the sum: x was used three times",
        "dquery + dkey + dvalue",
        "dkey + dvalue",
    ),
    mistake(
        "the three gradients are averaged instead of summed",
        "dquery + dkey + dvalue",
        "(dquery + dkey + dvalue) / 3",
    ),
    mistake(
        "the gradient of the value is left out of dmemory: the memory is key and value",
        "dquery, dkey + dvalue",
        "dquery, dkey",
    ),
    mistake(
        "the gradient of the key is left out of dmemory: the memory is key and value",
        "dquery, dkey + dvalue",
        "dquery, dvalue",
    ),
    mistake(
        "the backward pass of the output layer is left out", "layer.output.backward(dy, cache.output)", "dy"
    ),
    mistake(
        "dz is only reshaped to the heads instead of split with split_heads, which also swaps two axes",
        "split_heads_(dz, layer.n_heads)",
        "dz.reshape(cache.attention.q.shape)",
    ),
    mistake("dq and dk are exchanged", GRADIENTS, "layer.project_backward(dk, dq, dv, cache)"),
    mistake("dk and dv are exchanged", GRADIENTS, "layer.project_backward(dq, dv, dk, cache)"),
    mistake("dq and dv are exchanged", GRADIENTS, "layer.project_backward(dv, dk, dq, cache)"),
    mistake(
        "the backward pass of the output layer is called twice, which adds its gradients twice",
        "dz = layer",
        "layer.output.backward(dy, cache.output); dz = layer",
    ),
)
def multi_head_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradients of the inputs of multi-head attention."""
    dz = layer.output.backward(dy, cache.output)
    dheads = split_heads_(dz, layer.n_heads)
    dq, dk, dv = attention_backward(dheads, cache.attention)
    dquery, dkey, dvalue = layer.project_backward(dq, dk, dv, cache)
    if cache.n_inputs == 2:
        return dquery, dkey + dvalue
    return dquery + dkey + dvalue
