"""Chapters 10 and 11: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.learn.exercises.plain.registry import mistake, plain

FEED_FORWARD = (
    "layer.feed_forward_residual.backward(dy, cache.feed_forward_residual, layer.feed_forward.backward)"
)
ATTENTION = "layer.self_residual.backward(dx, cache.self_residual, layer.self_attention.backward)"
CROSS = "layer.cross_residual.backward(dx,"
NORM = "if layer.norm is not None:\n        dx = layer.norm.backward(dx, cache.norm)"
LOOP = "for one, c in zip(layer.layers[::-1], cache.layers[::-1], strict=True)"


@plain(
    "encoder-layer-backward",
    mistake(
        "the self-attention gets dy instead of the dx that the feed-forward network returned",
        "self_residual.backward(dx",
        "self_residual.backward(dy",
    ),
    mistake(
        "dx is added once more: the residual connections add it already",
        "return " + ATTENTION,
        "return dx + " + ATTENTION,
    ),
    mistake(
        "dy is added once more: the residual connections add it already",
        "return " + ATTENTION,
        "return dy + " + ATTENTION,
    ),
    mistake(
        "both sublayers get dy, and what they return is added: the self-attention must get the dx that the "
        "feed-forward network returned",
        "return " + ATTENTION,
        "return dx + " + ATTENTION.replace("(dx", "(dy"),
    ),
    mistake("the call of layer.self_residual.backward is left out", ATTENTION, "dx"),
    mistake("the call of layer.feed_forward_residual.backward is left out", FEED_FORWARD, "dy"),
    mistake(
        "the two calls are in the wrong order: the backward pass begins with the feed-forward network",
        "dx = " + FEED_FORWARD,
        "dx = " + ATTENTION.replace("dx", "dy"),
        "return " + ATTENTION,
        "return " + FEED_FORWARD.replace("dy", "dx"),
    ),
    mistake(
        "the gradients of both residual connections are added once more (dy and dx): the backward methods of "
        "the residual connections contain them",
        "dx = " + FEED_FORWARD,
        "dx = dy + " + FEED_FORWARD,
        "return " + ATTENTION,
        "return dx + " + ATTENTION,
    ),
    mistake(
        "dy is added to the dx of the feed-forward network: the residual connection adds it already",
        "dx = " + FEED_FORWARD,
        "dx = dy + " + FEED_FORWARD,
    ),
    mistake(
        "the result of layer.self_residual.backward is not used",
        "return " + ATTENTION,
        ATTENTION + "\n    return dx",
    ),
    mistake(
        "the feed-forward network is called twice, which adds the gradients of its parameters twice",
        "dx = " + FEED_FORWARD,
        FEED_FORWARD + "\n    dx = " + FEED_FORWARD,
    ),
    mistake(
        "the self-attention is called twice, which adds the gradients of its parameters twice",
        "return " + ATTENTION,
        ATTENTION + "\n    return " + ATTENTION,
    ),
    mistake(
        "both sublayers get dy, and what they return is averaged: the self-attention must get the dx "
        "that the "
        "feed-forward network returned",
        "return " + ATTENTION,
        f"return (dx + {ATTENTION.replace('(dx', '(dy')}) / 2",
    ),
    mistake(
        "the gradients of the two sublayers are averaged: the self-attention returns the complete dx",
        "return " + ATTENTION,
        f"return (dx + {ATTENTION}) / 2",
    ),
    mistake(
        "both sublayers get dy, what they return is added, and dy is subtracted once: the sublayers are in "
        "sequence, not side by side",
        "return " + ATTENTION,
        f"return dx + {ATTENTION.replace('(dx', '(dy')} - dy",
    ),
)
def encoder_layer_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradient of the input of an encoder layer."""
    dx = layer.feed_forward_residual.backward(dy, cache.feed_forward_residual, layer.feed_forward.backward)
    return layer.self_residual.backward(dx, cache.self_residual, layer.self_attention.backward)


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
        "the cross-attention gets dy instead of the dx that the feed-forward network returned",
        CROSS,
        "layer.cross_residual.backward(dy,",
    ),
    mistake(
        "the self-attention gets dy instead of the dx that the cross-attention returned",
        "self_residual.backward(dx",
        "self_residual.backward(dy",
    ),
    mistake("the call of layer.self_residual.backward is left out", ATTENTION, "dx"),
    mistake("the call of layer.feed_forward_residual.backward is left out", FEED_FORWARD, "dy"),
    mistake(
        "the result of layer.self_residual.backward is not used",
        "dx = layer.self_residual",
        "_ = layer.self_residual",
    ),
    mistake("dy is added once more: the residual connections add it already", "return dx", "return dx + dy"),
    mistake(
        "the calls are in the wrong order: cross-attention comes before self-attention in the backward pass",
        "dx, dmemory = layer.cross",
        "dx = " + ATTENTION + "\n    dx, dmemory = layer.cross",
        ")\n    dx = " + ATTENTION + "\n    return",
        ")\n    return",
    ),
    mistake(
        "the gradients of the residual connections are added once more in every step: their backward methods "
        "contain them",
        "dx = " + FEED_FORWARD,
        "dx = dy + " + FEED_FORWARD,
        "    dx, dmemory = layer",
        "    below = dx\n    dx, dmemory = layer",
        "    dx = layer.self_residual",
        "    dx = below = dx + below\n    dx = below + layer.self_residual",
    ),
    mistake(
        "all sublayers get dy, and what they return is added: each must get the dx that the sublayer above "
        "returned",
        "dx, dmemory = " + CROSS,
        "dx_ff = dx; dx, dmemory = layer.cross_residual.backward(dy,",
        "dx = " + ATTENTION,
        "dx = dx_ff + dx + " + ATTENTION.replace("(dx", "(dy"),
    ),
    mistake(
        "the cross-attention and the self-attention get dy: each must get the dx that the sublayer above "
        "returned",
        CROSS,
        "layer.cross_residual.backward(dy,",
        "self_residual.backward(dx",
        "self_residual.backward(dy",
    ),
    mistake(
        "the dx of the cross-attention is not used: the self-attention must get it",
        "dx, dmemory = layer",
        "_, dmemory = layer",
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
        "the feed-forward network comes after the cross-attention: the backward pass begins with it",
        "dx = " + FEED_FORWARD,
        "dx = dy",
        "    dx = layer.self_residual",
        f"    dx = {FEED_FORWARD.replace('(dy', '(dx')}\n    dx = layer.self_residual",
    ),
    mistake(
        "the feed-forward network comes last: the backward pass begins with it",
        "dx = " + FEED_FORWARD,
        "dx = dy",
        "    return dx",
        f"    dx = {FEED_FORWARD.replace('(dy', '(dx')}\n    return dx",
    ),
    mistake(
        "the sublayers run in forward order: the backward pass begins with the feed-forward network, the "
        "last one",
        "dx = " + FEED_FORWARD,
        "dx = " + ATTENTION.replace("(dx", "(dy"),
        "    dx = " + ATTENTION + "\n    return",
        f"    dx = {FEED_FORWARD.replace('(dy', '(dx')}\n    return",
    ),
    mistake(
        "the dx of the cross-attention is added once more: the residual connection of the self-attention "
        "adds it "
        "already",
        "dx = " + ATTENTION,
        "dx = dx + " + ATTENTION,
    ),
    mistake(
        "the result of the feed-forward network is added once more: the residual connections add it already",
        "    dx, dmemory = layer",
        "    above = dx\n    dx, dmemory = layer",
        "return dx",
        "return above + dx",
    ),
)
def decoder_layer_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradients of the input of a decoder layer and of the memory."""
    dx = layer.feed_forward_residual.backward(dy, cache.feed_forward_residual, layer.feed_forward.backward)
    dx, dmemory = layer.cross_residual.backward(dx, cache.cross_residual, layer.cross.backward)
    dx = layer.self_residual.backward(dx, cache.self_residual, layer.self_attention.backward)
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
