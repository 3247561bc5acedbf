"""Chapters 6 and 7: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.functional import attention, attention_backward
from npformer.functional import merge_heads as merge_heads_
from npformer.functional import split_heads as split_heads_
from npformer.learn.exercises.plain.registry import mistake, plain
from npformer.nn.attention import MultiHeadCache

SMALLER = "position[None, :] <= position[:, None]"
CLOSE = "return np.abs(distance) <= width"
JOINED = "layer.output.forward(merge_heads_(z))"
INPUTS = "project(query, memory, memory)"
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
    mistake(
        "only the position itself and the one before it are shown: all earlier positions must be shown",
        SMALLER,
        f"({SMALLER}) & (position[None, :] >= position[:, None] - 1)",
    ),
    mistake(
        "the rows are in the reverse order: row t must belong to query t",
        SMALLER,
        "position[None, :] <= length - 1 - position[:, None]",
    ),
    mistake(
        "the columns are in the reverse order: column s must belong to key s",
        SMALLER,
        "length - 1 - position[None, :] <= position[:, None]",
    ),
    mistake(
        "only the first position may attend to itself: every position may",
        SMALLER,
        "(position[None, :] < position[:, None]) | (position[None, :] + position[:, None] == 0)",
    ),
    mistake(
        "only the position itself is hidden: all later positions must be hidden, and the position itself "
        "shown",
        SMALLER,
        "position[None, :] != position[:, None]",
    ),
    mistake(
        "only the next position is hidden: all later positions must be hidden",
        SMALLER,
        "position[None, :] != position[:, None] + 1",
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
    mistake(
        "everything after the first padding is hidden: an entry depends on its own id only",
        "(ids != pad_id)",
        "(np.cumprod(ids != pad_id, -1) > 0)",
    ),
    mistake(
        "only padding at the end of a row is hidden: an entry depends on its own id only",
        "(ids != pad_id)",
        "(np.cumsum((ids != pad_id)[:, ::-1], -1)[:, ::-1] > 0)",
    ),
    mistake(
        "the tokens are counted, and this many places are shown from the beginning: compare each id with "
        "pad_id",
        "(ids != pad_id)",
        "(np.arange(ids.shape[1]) < (ids != pad_id).sum(-1, keepdims=True))",
    ),
    mistake(
        "the first row decides for all sentences: each sentence has its own padding",
        "(ids != pad_id)",
        "((ids[:1] != pad_id) & (ids == ids))",
    ),
    mistake(
        "a key is hidden only if it is padding in every sentence: each sentence has its own padding",
        "(ids != pad_id)",
        "((ids != pad_id).any(0) & (ids == ids))",
    ),
    mistake(
        "queries that are padding are hidden too: the mask is about keys only, and has one row",
        "(ids != pad_id)[:, None, None, :]",
        "((ids != pad_id)[:, None, :, None] & (ids != pad_id)[:, None, None, :])",
    ),
    mistake(
        "the ids stand on the axis of the queries: padding must be hidden as a key",
        "[:, None, None, :]",
        "[:, None, :, None]",
    ),
    mistake(
        "the ids are compared with the number of positions: compare them with pad_id",
        "!= pad_id",
        "< ids.shape[1]",
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
    mistake(
        "the window has the width `width` in total, half on each side: width is the distance to each side",
        CLOSE,
        "return 2 * np.abs(distance) < width",
    ),
    mistake(
        "the last position of the window, t + width, is left out: the end of a slice does not belong to it",
        CLOSE,
        "return (-width < distance) & (distance <= width)",
    ),
    mistake(
        "the first position of the window, t - width, is left out",
        CLOSE,
        "return (-width <= distance) & (distance < width)",
    ),
    mistake(
        "the first rows are empty: a negative start of a slice counts from the end, so limit it to 0",
        CLOSE,
        "return (np.abs(distance) <= width) & (position[:, None] >= width)",
    ),
    mistake(
        "the last position of the window is left out, and the first rows are empty: a negative start of a "
        "slice counts from the end",
        CLOSE,
        "return (-width < distance) & (distance <= width) & (position[:, None] >= width)",
    ),
    mistake(
        "the window wraps around at the ends: the first position does not attend to the last ones",
        "np.abs(distance) <= width",
        "np.minimum(np.abs(distance), length - np.abs(distance)) <= width",
    ),
    mistake(
        "only the positions at the distance width are shown: all positions up to this distance are allowed",
        "np.abs(distance) <= width",
        "np.abs(distance) == width",
    ),
    mistake(
        "the positions are divided into blocks: the window must move with the position",
        CLOSE,
        "return position[:, None] // (2 * width + 1) == position // (2 * width + 1)",
    ),
    mistake(
        "the positions are divided into blocks of another size: the window must move with the position",
        CLOSE,
        "return position[:, None] // (width + 1) == position // (width + 1)",
    ),
    mistake("the causal condition alone is used: the window is left out", CLOSE, "return distance >= 0"),
    mistake(
        "the first positions up to width are shown to all: the window must move with the position",
        CLOSE,
        "return position + 0 * distance <= width",
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
    mistake(
        "-1e9 is added to the gradient of masked scores, as in the forward pass: their gradient should be 0",
        "np.where(mask, dscores, 0)",
        "np.where(mask, dscores, dscores - 1e9)",
    ),
    mistake(
        "the gradient of masked scores is multiplied by -1e9: the constant does not depend on the score, so "
        "their gradient should be 0",
        "np.where(mask, dscores, 0)",
        "np.where(mask, dscores, -1e9 * dscores)",
    ),
    mistake(
        "the gradients of the scores that are not masked are selected, which gives a flat array: keep the "
        "shape, with 0 at masked scores",
        "np.where(mask, dscores, 0)",
        "dscores[np.broadcast_to(mask, dscores.shape)]",
    ),
    mistake(
        "the mask of the first sentence is used for all sentences", "np.where(mask,", "np.where(mask[:1],"
    ),
    mistake(
        "the gradient of masked scores has the wrong sign: it should be 0",
        "np.where(mask, dscores, 0)",
        "np.where(mask, dscores, -dscores)",
    ),
    mistake("the masked scores get the gradient 1: it should be 0", "dscores, 0)", "dscores, 1)"),
    mistake(
        "the gradients are divided by the number of keys that are not masked: they pass unchanged",
        "np.where(mask, dscores, 0)",
        "np.where(mask, dscores, 0) / mask.sum(-1, keepdims=True)",
    ),
    mistake(
        "a key is masked if it is masked in any sentence: use the mask of each sentence",
        "np.where(mask,",
        "np.where(mask.all(0, keepdims=True),",
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
    mistake(
        "the axes of positions and of the numbers of a head are exchanged: the result must have the axes "
        "(B, H, T, K)",
        ".swapaxes(1, 2)",
        ".transpose(0, 2, 3, 1)",
    ),
    mistake(
        "axes 1 and 3 are swapped, and axes 1 and 2 must be swapped", ".swapaxes(1, 2)", ".swapaxes(1, 3)"
    ),
    mistake(
        "axes 2 and 3 are swapped, and axes 1 and 2 must be swapped", ".swapaxes(1, 2)", ".swapaxes(2, 3)"
    ),
    mistake(
        "the heads are the first axis: the batch must be the first axis",
        ".swapaxes(1, 2)",
        ".transpose(2, 0, 1, 3)",
    ),
    mistake(
        "the batch and the heads are one axis: the result must have the four axes (B, H, T, K)",
        ".swapaxes(1, 2)",
        ".swapaxes(1, 2).reshape(B * n_heads, T, D // n_heads)",
    ),
    mistake(
        "the heads of all sentences are stacked on the first axis and then only reshaped: the numbers of "
        "different sentences are mixed",
        "x.reshape(B, T, n_heads, D // n_heads).swapaxes(1, 2)",
        "np.stack(np.split(x, n_heads, -1)).reshape(B, n_heads, T, D // n_heads)",
    ),
    mistake(
        "every head gets the numbers of the first head",
        ".swapaxes(1, 2)",
        ".swapaxes(1, 2)[:, [0] * n_heads]",
    ),
    mistake("the positions are in the reverse order", ".swapaxes(1, 2)", ".swapaxes(1, 2)[:, :, ::-1]"),
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
    mistake(
        "the heads are summed: they must be concatenated, so that the width is H·K",
        "x.swapaxes(1, 2).reshape(B, T, H * K)",
        "x.sum(1)",
    ),
    mistake(
        "the heads are averaged: they must be concatenated, so that the width is H·K",
        "x.swapaxes(1, 2).reshape(B, T, H * K)",
        "x.mean(1)",
    ),
    mistake(
        "only the first head is returned: all heads must be concatenated",
        "x.swapaxes(1, 2).reshape(B, T, H * K)",
        "x[:, 0]",
    ),
    mistake(
        "only the last head is returned: all heads must be concatenated",
        "x.swapaxes(1, 2).reshape(B, T, H * K)",
        "x[:, -1]",
    ),
    mistake(
        "the heads are concatenated along the positions: they must stand side by side, in the last axis",
        "x.swapaxes(1, 2).reshape(B, T, H * K)",
        "x.reshape(B, H * T, K)",
    ),
    mistake(
        "the batch and the positions are one axis: the result must have the axes (B, T, H·K)",
        "reshape(B, T, H * K)",
        "reshape(B * T, H * K)",
    ),
    mistake("the heads are in the opposite order", "x.swapaxes", "x[:, ::-1].swapaxes"),
    mistake(
        "only two axes are swapped: the heads must also be concatenated by a reshape",
        ".reshape(B, T, H * K)",
        "",
    ),
    mistake(
        "all parts hold the same head: the part h of a vector belongs to head h",
        "x.swapaxes(1, 2)",
        "x[:, [0] * H].swapaxes(1, 2)",
    ),
)
def merge_heads(x: Any) -> Any:
    """Return the vectors with their heads concatenated."""
    B, H, T, K = x.shape
    return x.swapaxes(1, 2).reshape(B, T, H * K)


@plain(
    "multi-head",
    mistake("the mask is not passed to attention", "(q, k, v, mask)", "(q, k, v)"),
    mistake("queries and keys are exchanged", "(q, k, v, mask)", "(k, q, v, mask)"),
    mistake("keys and values are exchanged", "(q, k, v, mask)", "(q, v, k, mask)"),
    mistake(
        "the output layer Wo is left out", JOINED, "merge_heads_(z), layer.output.forward(merge_heads_(z))[1]"
    ),
    mistake(
        "the memory is not used: keys and values are those of the query",
        INPUTS,
        "project(query, query, query)",
    ),
    mistake("the query is replaced by the memory", "project(query, memory", "project(memory, memory"),
    mistake(
        "the values are those of the query instead of the memory",
        "query, memory, memory)",
        "query, memory, query)",
    ),
    mistake(
        "the keys are those of the query instead of the memory",
        "query, memory, memory)",
        "query, query, memory)",
    ),
    mistake("n_inputs is 1 also with a memory: it must be 2 then", "(2, memory)", "(1, memory)"),
    mistake("n_inputs is 2 also in self-attention: it must be 1 then", "(1, query)", "(2, query)"),
    mistake("n_inputs is 3: keys and values have one input, so it is 1 or 2", "(2, memory)", "(3, memory)"),
    mistake(
        "the input of the layer is added: the residual connection is not part of it",
        "return y,",
        "return query + y,",
    ),
    mistake(
        "the mask is reversed: True means that a query may attend to a key",
        "v, mask)",
        "v, None if mask is None else ~mask)",
    ),
    mistake(
        "the heads are merged without swapping axes: use merge_heads",
        "merge_heads_(z)",
        "z.reshape(query.shape)",
    ),
    mistake(
        "attention is divided by the number of heads",
        "forward(merge_heads_(z))",
        "forward(merge_heads_(z) / z.shape[1])",
    ),
)
def multi_head(layer: Any, query: Any, memory: Any = None, mask: Any = None) -> Any:
    """Return the output of multi-head attention and its cache."""
    n_inputs, memory = (1, query) if memory is None else (2, memory)
    (q, k, v), projections = layer.project(query, memory, memory)
    z, attended = attention(q, k, v, mask)
    y, output = layer.output.forward(merge_heads_(z))
    return y, MultiHeadCache(projections, attended, output, n_inputs)


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
    mistake(
        "dquery and dmemory are exchanged in cross-attention: dquery comes first",
        "return dquery, dkey + dvalue",
        "return dkey + dvalue, dquery",
    ),
    mistake(
        "dy is added: there is no residual connection in the attention itself",
        "return dquery + dkey + dvalue",
        "return dy + dquery + dkey + dvalue",
    ),
    mistake(
        "dz is split into (K, H) and must be split into (H, K): the first K numbers belong to head 0",
        "split_heads_(dz, layer.n_heads)",
        "dz.reshape(*dz.shape[:2], -1, layer.n_heads).transpose(0, 3, 1, 2)",
    ),
    mistake(
        "dq and dk are divided by sqrt(K) once more: attention_backward contains this factor",
        "dq, dk, dv = attention_backward(dheads, cache.attention)",
        "dq, dk, dv = attention_backward(dheads, cache.attention); K = dq.shape[-1]",
        GRADIENTS,
        "layer.project_backward(dq / np.sqrt(K), dk / np.sqrt(K), dv, cache)",
    ),
    mistake(
        "dheads is divided by the number of heads: each head gets its own part of dz",
        "split_heads_(dz, layer.n_heads)",
        "split_heads_(dz, layer.n_heads) / layer.n_heads",
    ),
    mistake(
        "dz is computed from the weight without layer.output.backward, so the parameters of layer.output get "
        "no gradients",
        "layer.output.backward(dy, cache.output)",
        "dy @ layer.output.weight.value.T",
    ),
    mistake(
        "layer.project_backward is called twice, which adds the gradients of its parameters twice",
        "    dquery, dkey, dvalue = layer",
        f"    {GRADIENTS}\n    dquery, dkey, dvalue = layer",
    ),
    mistake(
        "dkey and dvalue are averaged in cross-attention: the memory is used twice, so they must be summed",
        "dquery, dkey + dvalue",
        "dquery, (dkey + dvalue) / 2",
    ),
    mistake(
        "dq, dk and dv are summed before the projections: each belongs to its own weight, and the "
        "gradients of "
        "the inputs must be summed",
        GRADIENTS,
        "layer.project_backward(dq + dk + dv, dq + dk + dv, dq + dk + dv, cache)"
        " if cache.n_inputs < 2 else layer.project_backward(dq, dk, dv, cache)",
    ),
    mistake(
        "the gradients of the three inputs are multiplied: they must be summed",
        "dquery + dkey + dvalue",
        "dquery * dkey * dvalue",
    ),
    mistake(
        "the gradient of the value is counted twice, and that of the key is left out",
        "dkey + dvalue",
        "dvalue + dvalue",
    ),
    mistake(
        "the gradient of the key is counted twice, and that of the value is left out",
        "dkey + dvalue",
        "dkey + dkey",
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
