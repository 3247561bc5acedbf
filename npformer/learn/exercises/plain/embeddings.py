"""Chapters 2 and 3: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.functional import linear_backward
from npformer.learn.exercises.plain.registry import mistake, plain

ADD = "np.add.at(dtable, ids, scale * dy)"


@plain(
    "embedding-backward",
    mistake(
        "an id that occurs several times keeps only one of its gradients: dtable[ids] += adds only once",
        ADD,
        "dtable[ids] += scale * dy",
    ),
    mistake("the padding id is 0 instead of zero_id", "ids == zero_id", "ids == 0"),
    mistake("the factor scale is left out", "scale * dy", "dy"),
    mistake("the gradient is divided by scale instead of multiplied", "scale * dy", "dy / scale"),
    mistake("the gradient is multiplied by scale twice", "scale * dy", "scale * scale * dy"),
    mistake(
        "the positions with zero_id are kept, and all others are set to 0: the condition is reversed",
        "ids == zero_id",
        "ids != zero_id",
    ),
    mistake(
        "the positions with zero_id get a gradient, and y is 0 there", "if zero_id is not None", "if False"
    ),
    mistake(
        "the gradients of an id that occurs several times are averaged instead of summed",
        "return dtable",
        "return dtable / np.maximum(1, np.bincount(ids.ravel(), minlength=len(table)))[:, None]",
    ),
)
def embedding_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of an embedding table."""
    ids, table, scale, zero_id = cache
    dtable = np.zeros(table.shape, dy.dtype)
    if zero_id is not None:
        dy = np.where((ids == zero_id)[..., None], 0, dy)
    np.add.at(dtable, ids, scale * dy)
    return dtable


@plain(
    "tied-backward",
    mistake(
        "the gradient of the weight has the wrong sign: the optimizer subtracts it, not the layer",
        "weight.grad += dw.T",
        "weight.grad -= dw.T",
    ),
    mistake(
        "the gradient of the weight is divided by the batch size: it must not be averaged here",
        "+= dw.T",
        "+= dw.T / len(dy)",
    ),
    mistake(
        "the gradient of the bias is divided by the batch size: it must not be averaged here",
        "+= dbias",
        "+= dbias / len(dy)",
    ),
    mistake("nothing is added to layer.bias.grad", "layer.bias is not None", "False"),
    mistake("nothing is added to layer.weight.grad", "layer.weight.grad += dw.T", "pass"),
)
def tied_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradients of an output layer that shares the table of the embedding."""
    dx, dw, dbias = linear_backward(dy, cache)
    layer.weight.grad += dw.T
    if layer.bias is not None:
        layer.bias.grad += dbias
    return dx


@plain(
    "linear-layer-backward",
    mistake(
        "the gradient of the weight has the wrong sign: the optimizer subtracts it, not the layer",
        "weight.grad += dweight",
        "weight.grad -= dweight",
    ),
    mistake(
        "the gradient of the weight is divided by the batch size: it must not be averaged here",
        "+= dweight",
        "+= dweight / len(dy)",
    ),
    mistake(
        "the gradient of the bias is divided by the batch size: it must not be averaged here",
        "+= dbias",
        "+= dbias / len(dy)",
    ),
    mistake("nothing is added to layer.bias.grad", "layer.bias is not None", "False"),
    mistake("nothing is added to layer.weight.grad", "layer.weight.grad += dweight", "pass"),
)
def linear_layer_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return dx, and add the gradients of the parameters to those of the layer."""
    dx, dweight, dbias = linear_backward(dy, cache)
    layer.weight.grad += dweight
    if layer.bias is not None:
        layer.bias.grad += dbias
    return dx


@plain(
    "sinusoids",
    mistake(
        "sine and cosine are exchanged: the even columns must be sines",
        "np.sin(angle)",
        "np.COS(angle)",
        "np.cos(angle)",
        "np.sin(angle)",
        "np.COS",
        "np.cos",
    ),
    mistake("the positions start with 1 instead of 0", "np.arange(length)", "np.arange(1, length + 1)"),
    mistake("the exponent is i/D instead of 2i/D", "2 * i / d_model", "i / d_model"),
    mistake(
        "the exponent is 4i/D instead of 2i/D: i already counts the pairs of columns, or d_model is halved",
        "2 * i / d_model",
        "4 * i / d_model",
    ),
    mistake(
        "the sines are in the left half and the cosines in the right half: they must alternate, "
        "column by column",
        "0::2",
        ": d_model // 2",
        "1::2",
        "d_model // 2 :",
    ),
    mistake(
        "the position is multiplied by the power of 10000 instead of divided",
        "position / 10000",
        "position * 10000",
    ),
    mistake("the base is 1000 instead of 10000", "10000", "1000"),
    mistake("the base is 100000 instead of 10000", "10000", "100000"),
    mistake(
        "the cosine has another exponent than the sine of the same pair: in both it is 2i/D",
        "np.cos(angle)",
        "np.cos(position / 10000 ** ((2 * i + 1) / d_model))",
    ),
    mistake("the odd columns are sines too, and must be cosines", "np.cos", "np.sin"),
    mistake("the even columns are cosines too, and must be sines", "np.sin", "np.cos"),
)
def sinusoids(length: Any, d_model: Any) -> Any:
    """Return the table of sinusoidal positional encodings."""
    position = np.arange(length)[:, None]
    i = np.arange(d_model // 2)
    angle = position / 10000 ** (2 * i / d_model)
    table = np.empty((length, d_model))
    table[:, 0::2] = np.sin(angle)
    table[:, 1::2] = np.cos(angle)
    return table


@plain(
    "positions-backward",
    mistake("dy is averaged over the batch instead of summed", "dy.sum(0)", "dy.mean(0)"),
    mistake(
        "the start is ignored: the gradient belongs to the rows from start to start + T",
        "[start : start + length]",
        "[:length]",
    ),
    mistake("only the first sentence of the batch is used: sum dy over the batch", "dy.sum(0)", "dy[0]"),
    mistake("only the last sentence of the batch is used: sum dy over the batch", "dy.sum(0)", "dy[-1]"),
    mistake(
        "dy is summed over the positions too: sum it over the batch axis only", "dy.sum(0)", "dy.sum((0, 1))"
    ),
    mistake("the gradient has the wrong sign", "+= dy", "-= dy"),
)
def positions_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradient of learned positions that all sentences share."""
    start, length = cache
    layer.weight.grad[start : start + length] += dy.sum(0)
