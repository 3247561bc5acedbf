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
    mistake("the call of layer.self_residual.backward is left out", ATTENTION, "dx"),
    mistake("the call of layer.feed_forward_residual.backward is left out", FEED_FORWARD, "dy"),
    mistake(
        "the two calls are in the wrong order: the backward pass begins with the feed-forward network",
        "dx = " + FEED_FORWARD,
        "dx = " + ATTENTION.replace("dx", "dy"),
        "return " + ATTENTION,
        "return " + FEED_FORWARD.replace("dy", "dx"),
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
    mistake("the first token is left out instead of the last token", "target[:, :-1]", "target[:, 1:]"),
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
)
def shifted_right(target: Any, start_id: Any) -> Any:
    """Return the target shifted right, with the start symbol in front."""
    start = np.full((len(target), 1), start_id, target.dtype)
    return np.concatenate([start, target[:, :-1]], 1)
