"""Chapters 10 and 11: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.learn.exercises.plain.registry import mistake, plain

FEED_FORWARD = "layer.feed_forward.backward(dh, cache.feed_forward)"
ATTENTION = "layer.self_attention.backward(dh, cache.self_attention)"
CROSS = "dh, dmemory = layer.cross.backward(dh, cache.cross)\n    dx = dx + dh"
FIRST_NORM = "dx, dh = layer.norm1.backward(dx, cache.norm1)"
SECOND_NORM = "dx, dh = layer.norm2.backward(dy, cache.norm2)"  # of an encoder layer
MIDDLE_NORM = "dx, dh = layer.norm2.backward(dx, cache.norm2)"  # of a decoder layer
LAST_NORM = "dx, dh = layer.norm3.backward(dy, cache.norm3)"
NORM = "if layer.norm is not None:\n        dx = layer.norm.backward(dx, cache.norm)"
LOOP = "for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True)"


@plain(
    "encoder-layer-backward",
    mistake(
        "the residual connection around the feed-forward network is left out: dx of layer.norm2 is not used",
        "dx = dx + layer.feed_forward",
        "dx = layer.feed_forward",
    ),
    mistake(
        "the residual connection around the self-attention is left out: dx of layer.norm1 is not used",
        "return dx + layer",
        "return layer",
    ),
    mistake("the backward pass of the feed-forward network is left out", " + " + FEED_FORWARD, ""),
    mistake("the backward pass of the self-attention is left out", " + " + ATTENTION, ""),
    mistake("the backward pass of layer.norm2 is left out", SECOND_NORM, "dx = dh = dy"),
    mistake("the backward pass of layer.norm1 is left out", FIRST_NORM, "dh = dx"),
    mistake(
        "the feed-forward network gets dy instead of dh, so layer.norm2 is left out",
        "feed_forward.backward(dh",
        "feed_forward.backward(dy",
    ),
    mistake(
        "the feed-forward network gets dx instead of dh, so dropout is left out",
        "feed_forward.backward(dh",
        "feed_forward.backward(dx",
    ),
    mistake(
        "the self-attention gets dx instead of dh, so dropout is left out",
        "self_attention.backward(dh",
        "self_attention.backward(dx",
    ),
    mistake(
        "the self-attention gets dy instead of dh",
        "self_attention.backward(dh",
        "self_attention.backward(dy",
    ),
    mistake(
        "layer.norm1 gets dy instead of the dx of the sublayer above",
        "norm1.backward(dx",
        "norm1.backward(dy",
    ),
    mistake("dx is added twice at the end", "return dx + layer", "return 2 * dx + layer"),
    mistake(
        "dy is added at the end: the residual connections lie inside the norms, and dx has their gradients",
        "return dx + layer",
        "return dy + dx + layer",
    ),
    mistake(
        "dy is added to the dx of layer.norm2: the residual connection lies inside the norm",
        "dx = dx + layer.feed_forward",
        "dx = dy + dx + layer.feed_forward",
    ),
    mistake(
        "the two gradients of the last sum are averaged instead of summed",
        "return dx + " + ATTENTION,
        f"return (dx + {ATTENTION}) / 2",
    ),
    mistake(
        "the sublayers are in the wrong order: the backward pass begins with layer.norm2 and the "
        "feed-forward network",
        SECOND_NORM,
        "dx, dh = layer.norm1.backward(dy, cache.norm1)",
        "dx = dx + " + FEED_FORWARD,
        "dx = dx + " + ATTENTION,
        FIRST_NORM,
        "dx, dh = layer.norm2.backward(dx, cache.norm2)",
        "return dx + " + ATTENTION,
        "return dx + " + FEED_FORWARD,
    ),
    mistake(
        "the feed-forward network is called twice, which adds the gradients of its parameters twice",
        "dx = dx + " + FEED_FORWARD,
        FEED_FORWARD + "\n    dx = dx + " + FEED_FORWARD,
    ),
    mistake(
        "the self-attention is called twice, which adds the gradients of its parameters twice",
        "return dx + " + ATTENTION,
        ATTENTION + "\n    return dx + " + ATTENTION,
    ),
)
def encoder_layer_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradient of the input of an encoder layer."""
    dx, dh = layer.norm2.backward(dy, cache.norm2)
    dx = dx + layer.feed_forward.backward(dh, cache.feed_forward)
    dx, dh = layer.norm1.backward(dx, cache.norm1)
    return dx + layer.self_attention.backward(dh, cache.self_attention)


@plain(
    "encoder-backward",
    mistake("the layers run in forward order: the backward pass begins with the last layer", "[::-1]", ""),
    mistake("the layers are not reversed, but their caches are", "layer.layers[::-1]", "layer.layers"),
    mistake("the caches are not reversed, but the layers are", "cache.layers[::-1]", "cache.layers"),
    mistake("the backward pass of layer.norm is left out", NORM, "pass"),
    mistake(
        "the norm comes after the layers: the backward pass begins with the norm, which came last",
        NORM,
        "pass",
        "    return dx",
        "    " + NORM + "\n    return dx",
    ),
    mistake(
        "every layer gets dy instead of the dx that the layer above returned",
        "one.backward(dx, c)",
        "one.backward(dy, c)",
    ),
    mistake(
        "dx is added once more: the residual connections lie inside the layers",
        "dx = one.backward(dx, c)",
        "dx = dx + one.backward(dx, c)",
    ),
    mistake(
        "only the last layer runs: the loop ends too early, for example by a return inside it",
        "dx = one.backward(dx, c)",
        "return one.backward(dx, c)",
    ),
    mistake(
        "every layer gets the same gradient, and the results are summed: the layers are in sequence, so "
        "each must "
        "get the dx that the layer above returned",
        LOOP,
        "top, dx = dx, 0\n    " + LOOP,
        "one.backward(dx, c)",
        "dx + one.backward(top, c)",
    ),
    mistake(
        "every layer gets the same gradient, and the results are averaged: the layers are in sequence, "
        "so each "
        "must get the dx that the layer above returned",
        LOOP,
        "top, dx = dx, 0\n    " + LOOP,
        "one.backward(dx, c)",
        "dx + one.backward(top, c) / len(layer.layers)",
    ),
    mistake(
        "every layer gets dy instead of the dx that the layer above returned",
        LOOP,
        "top = dx\n    " + LOOP,
        "one.backward(dx, c)",
        "one.backward(top, c)",
    ),
    mistake(
        "the first layer is left out: the loop must reach layer 0",
        "[::-1]",
        "[:0:-1]",
    ),
    mistake(
        "the last layer is left out: the loop must begin with it",
        "[::-1]",
        "[-2::-1]",
    ),
    mistake(
        "the norm is applied before every layer: it comes once, after all layers, so it is the first step",
        NORM,
        "pass",
        "one.backward(dx, c)",
        "one.backward(dx if layer.norm is None else layer.norm.backward(dx, cache.norm), c)",
    ),
    mistake(
        "the result of layer.norm.backward is not used",
        "dx = layer.norm",
        "layer.norm",
    ),
    mistake(
        "dy is added at the end: the residual connections lie inside the layers",
        "return dx",
        "return dx + dy",
    ),
    mistake(
        "every layer adds dy to its result: the residual connections lie inside the layers",
        "dx = one.backward(dx, c)",
        "dx = dy + one.backward(dx, c)",
    ),
    mistake("the layers themselves are left out: only the norm runs", "dx = one.backward(dx, c)", "pass"),
    mistake(
        "only the first layer runs: all layers must run, each with the dx of the layer above",
        LOOP,
        LOOP.replace("[::-1]", "[:1]"),
    ),
    mistake(
        "all layers get the cache of the last layer",
        "one.backward(dx, c)",
        "one.backward(dx, cache.layers[-1])",
    ),
    mistake(
        "all layers get the cache of the first layer",
        "one.backward(dx, c)",
        "one.backward(dx, cache.layers[0])",
    ),
)
def encoder_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradient of the input of a stack of encoder layers."""
    dx = dy
    if layer.norm is not None:
        dx = layer.norm.backward(dx, cache.norm)
    for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True):
        dx = one.backward(dx, c)
    return dx


@plain(
    "decoder-layer-backward",
    mistake(
        "the residual connection around the feed-forward network is left out: dx of layer.norm3 is not used",
        "dx = dx + layer.feed_forward",
        "dx = layer.feed_forward",
    ),
    mistake(
        "the residual connection around the cross-attention is left out: dx of layer.norm2 is not used",
        "dx = dx + dh",
        "dx = dh",
    ),
    mistake(
        "the residual connection around the self-attention is left out: dx of layer.norm1 is not used",
        "dx = dx + layer.self_attention",
        "dx = layer.self_attention",
    ),
    mistake(
        "the dx of the cross-attention is not used: the residual connection adds it",
        "    dx = dx + dh\n",
        "",
    ),
    mistake("the backward pass of the feed-forward network is left out", " + " + FEED_FORWARD, ""),
    mistake("the backward pass of the self-attention is left out", " + " + ATTENTION, ""),
    mistake("the backward pass of layer.norm3 is left out", LAST_NORM, "dx = dh = dy"),
    mistake("the backward pass of layer.norm2 is left out", MIDDLE_NORM, "dh = dx"),
    mistake("the backward pass of layer.norm1 is left out", FIRST_NORM, "dh = dx"),
    mistake(
        "the feed-forward network gets dx instead of dh, so dropout is left out",
        "feed_forward.backward(dh",
        "feed_forward.backward(dx",
    ),
    mistake(
        "the feed-forward network gets dy instead of dh, so layer.norm3 is left out",
        "feed_forward.backward(dh",
        "feed_forward.backward(dy",
    ),
    mistake(
        "the cross-attention gets dx instead of dh, so dropout is left out",
        "cross.backward(dh",
        "cross.backward(dx",
    ),
    mistake(
        "the self-attention gets dx instead of dh, so dropout is left out",
        "self_attention.backward(dh",
        "self_attention.backward(dx",
    ),
    mistake(
        "layer.norm2 gets dy instead of the dx of the sublayer above",
        "norm2.backward(dx",
        "norm2.backward(dy",
    ),
    mistake(
        "layer.norm1 gets dy instead of the dx of the sublayer above",
        "norm1.backward(dx",
        "norm1.backward(dy",
    ),
    mistake(
        "the norms above layer.norm1 get dy: each must get the dx of the sublayer above",
        "norm2.backward(dx",
        "norm2.backward(dy",
        "norm1.backward(dx",
        "norm1.backward(dy",
    ),
    mistake(
        "dmemory is 0: it must be what the cross-attention returned",
        "return dx, dmemory",
        "return dx, 0 * dmemory",
    ),
    mistake(
        "dmemory is added twice: it contains the gradients of the keys and of the values already",
        "return dx, dmemory",
        "return dx, dmemory + dmemory",
    ),
    mistake("dx and dmemory are exchanged in the result", "return dx, dmemory", "return dmemory, dx"),
    mistake(
        "dy is added at the end: the residual connections lie inside the norms, and dx has their gradients",
        "return dx",
        "return dy + dx",
    ),
    mistake(
        "the sublayers are in the wrong order: cross-attention comes first in the backward pass",
        MIDDLE_NORM + "\n    " + CROSS + "\n    " + FIRST_NORM + "\n    dx = dx + " + ATTENTION,
        FIRST_NORM + "\n    dx = dx + " + ATTENTION + "\n    " + MIDDLE_NORM + "\n    " + CROSS,
    ),
)
def decoder_layer_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradients of the input of a decoder layer and of the memory."""
    dx, dh = layer.norm3.backward(dy, cache.norm3)
    dx = dx + layer.feed_forward.backward(dh, cache.feed_forward)
    dx, dh = layer.norm2.backward(dx, cache.norm2)
    dh, dmemory = layer.cross.backward(dh, cache.cross)
    dx = dx + dh
    dx, dh = layer.norm1.backward(dx, cache.norm1)
    dx = dx + layer.self_attention.backward(dh, cache.self_attention)
    return dx, dmemory


@plain(
    "decoder-backward",
    mistake(
        "only the dmemory of one layer is returned, because each overwrites the one before: they "
        "must be summed",
        "dmemory + dmemory_here",
        "dmemory_here",
    ),
    mistake(
        "only the dmemory of the last layer is returned: those of all layers must be summed",
        "dmemory + dmemory_here",
        "dmemory_here if one is layer.layers[-1] else dmemory",
    ),
    mistake(
        "dmemory is averaged over the layers instead of summed",
        "return dx, dmemory",
        "return dx, dmemory / len(layer.layers)",
    ),
    mistake("the layers run in forward order: the backward pass begins with the last layer", "[::-1]", ""),
    mistake("the layers are not reversed, but their caches are", "layer.layers[::-1]", "layer.layers"),
    mistake("the caches are not reversed, but the layers are", "cache.layers[::-1]", "cache.layers"),
    mistake("the backward pass of layer.norm is left out", NORM, "pass"),
    mistake(
        "every layer gets dy instead of the dx that the layer above returned",
        "one.backward(dx, c)",
        "one.backward(dy, c)",
    ),
    mistake(
        "the norm comes after the layers: the backward pass begins with the norm, which came last",
        NORM,
        "pass",
        "    return dx",
        "    " + NORM + "\n    return dx",
    ),
    mistake(
        "every layer gets the same gradient, and the results are summed: the layers are in sequence, so "
        "each must "
        "get the dx that the layer above returned",
        LOOP,
        "top, dx = dx, 0\n    " + LOOP,
        "dx, dmemory_here = one.backward(dx, c)",
        "dx_here, dmemory_here = one.backward(top, c); dx = dx + dx_here",
    ),
    mistake(
        "every layer gets dy instead of the dx that the layer above returned",
        LOOP,
        "top = dx\n    " + LOOP,
        "one.backward(dx, c)",
        "one.backward(top, c)",
    ),
    mistake(
        "dx is added once more: the residual connections lie inside the layers",
        "dx, dmemory_here = one.backward(dx, c)",
        "dx_here, dmemory_here = one.backward(dx, c); dx = dx + dx_here",
    ),
    mistake(
        "the first layer is left out: the loop must reach layer 0",
        "[::-1]",
        "[:0:-1]",
    ),
    mistake(
        "the last layer is left out: the loop must begin with it",
        "[::-1]",
        "[-2::-1]",
    ),
    mistake(
        "only the last layer runs: the loop ends too early, for example by a return inside it",
        "dmemory = dmemory + dmemory_here",
        "return dx, dmemory_here",
    ),
    mistake(
        "the norm is applied before every layer: it comes once, after all layers, so it is the first step",
        NORM,
        "pass",
        "one.backward(dx, c)",
        "one.backward(dx if layer.norm is None else layer.norm.backward(dx, cache.norm), c)",
    ),
    mistake(
        "the result of layer.norm.backward is not used",
        "dx = layer.norm",
        "layer.norm",
    ),
    mistake(
        "dy is added at the end: the residual connections lie inside the layers",
        "return dx,",
        "return dx + dy,",
    ),
    mistake("dx and dmemory are exchanged in the result", "return dx, dmemory", "return dmemory, dx"),
    mistake(
        "dmemory is doubled from layer to layer: each layer's gradient is added once",
        "dmemory + dmemory_here",
        "dmemory + dmemory + dmemory_here",
    ),
)
def decoder_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradients of the input of a stack of decoder layers and of the memory."""
    dx, dmemory = dy, 0
    if layer.norm is not None:
        dx = layer.norm.backward(dx, cache.norm)
    for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True):
        dx, dmemory_here = one.backward(dx, c)
        dmemory = dmemory + dmemory_here
    return dx, dmemory


@plain(
    "shift-right",
    mistake(
        "the target is shifted left: it loses its first token, and the start symbol comes last",
        "[start, target[:, :-1]]",
        "[target[:, 1:], start]",
    ),
    mistake(
        "the last token is not left out, so that there is one column too many", "target[:, :-1]", "target"
    ),
    mistake(
        "the first token is left out instead of the last token: the start symbol stands before it",
        "target[:, :-1]",
        "target[:, 1:]",
    ),
    mistake("start_id is ignored: the first column is 0", "start_id, target.dtype", "0, target.dtype"),
    mistake("start_id is ignored: the first column is 1", "start_id, target.dtype", "1, target.dtype"),
    mistake(
        "the last token moves to the front instead of start_id", "[start, target", "[target[:, -1:], target"
    ),
    mistake(
        "the start symbol is at the end and must be at the beginning",
        "[start, target[:, :-1]]",
        "[target[:, :-1], start]",
    ),
    mistake(
        "the target is shifted along the batch axis: each sentence moves to the next row",
        "np.concatenate([start, target[:, :-1]], 1)",
        "np.concatenate([np.full((1, target.shape[1]), start_id), target[:-1]])",
    ),
    mistake(
        "the start symbol fills the first row, and must fill the first column",
        "np.concatenate([start, target[:, :-1]], 1)",
        "np.concatenate([np.full((1, target.shape[1]), start_id), np.roll(target, 1, 1)[1:]])",
    ),
    mistake("the target is not shifted", "np.concatenate([start, target[:, :-1]], 1)", "target"),
    mistake(
        "the target is shifted by two places: there is one start symbol",
        "[start, target[:, :-1]]",
        "[start, start, target[:, :-2]]",
    ),
    mistake(
        "the start symbol stands before and after the tokens: it stands only in front",
        "[start, target[:, :-1]]",
        "[start, target[:, :-2], start]",
    ),
    mistake(
        "only the first sentence is shifted: every row begins with the start symbol",
        "np.concatenate([start, target[:, :-1]], 1)",
        "np.concatenate([np.concatenate([start, target[:, :-1]], 1)[:1], target[1:]])",
    ),
    mistake(
        "all sentences are one long text that is shifted: every row begins with the start symbol",
        "np.concatenate([start, target[:, :-1]], 1)",
        "np.concatenate([[start_id], target.reshape(-1)[:-1]]).reshape(target.shape)",
    ),
    mistake(
        "every token is the start symbol, as if the changed array was copied: the places after the first "
        "hold the tokens of target",
        "np.concatenate([start, target[:, :-1]], 1)",
        "np.full_like(target, start_id)",
    ),
    mistake("the order of the tokens is reversed", "target[:, :-1]", "target[:, -2::-1]"),
)
def shifted_right(target: Any, start_id: Any) -> Any:
    """Return the target shifted right, with the start symbol in front."""
    start = np.full((len(target), 1), start_id, target.dtype)
    return np.concatenate([start, target[:, :-1]], 1)
