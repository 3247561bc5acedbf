"""Chapters 2 and 3: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.functional import linear_backward
from npformer.learn.exercises.plain.registry import mistake, plain

ADD = "np.add.at(dtable, ids, scale * dy)"


@plain(
    "embedding",
    mistake("scale is left out", "scale * table[ids]", "table[ids]"),
    mistake("it is divided by scale instead of multiplied", "scale * table[ids]", "table[ids] / scale"),
    mistake("scale is added instead of multiplied", "scale * table[ids]", "scale + table[ids]"),
    mistake("the vectors are multiplied by the root of scale", "scale * table", "scale**0.5 * table"),
    mistake("zero_id is not used: its positions must be 0", "zero_id is not None", "False"),
    mistake("the id 0 is set to 0 instead of zero_id", "ids == zero_id", "ids == 0"),
    mistake(
        "the condition is reversed: only the positions with zero_id are kept", "ids == zero", "ids != zero"
    ),
    mistake("the ids at and after zero_id are set to 0 too", "ids == zero_id", "ids >= zero_id"),
    mistake("the ids up to zero_id are set to 0 too", "ids == zero_id", "ids <= zero_id"),
    mistake("the rows are those of ids + 1: ids count from 0", "table[ids]", "table[(ids + 1) % len(table)]"),
    mistake("the rows are those of ids - 1: ids count from 0", "table[ids]", "table[ids - 1]"),
    mistake("a zero_id of 0 is taken for None: compare with `is not None`", "zero_id is not None", "zero_id"),
    mistake("the positions with zero_id get 1 instead of 0", "None], 0, y", "None], 1, y"),
)
def embedding(ids: Any, table: Any, scale: Any = 1.0, zero_id: Any = None) -> Any:
    """Return the vector of each token."""
    y = scale * table[ids]
    if zero_id is not None:
        y = np.where((ids == zero_id)[..., None], 0, y)
    return y


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
    mistake(
        "an id that occurs several times keeps only its first gradient: all of them must be added",
        ADD,
        "dtable[ids.ravel()[::-1]] = (scale * dy).reshape(-1, dy.shape[-1])[::-1]",
    ),
    mistake(
        "an id that occurs several times in one sentence is added only once: dtable[ids] += adds only once",
        ADD,
        "\n    for row, d in zip(ids, scale * dy, strict=True):\n        dtable[row] += d",
    ),
    mistake(
        "an id that occurs in several sentences at the same position is added only once: dtable[ids] += adds "
        "only once",
        ADD,
        "\n    for t in range(ids.shape[1]):\n        dtable[ids[:, t]] += scale * dy[:, t]",
    ),
    mistake(
        "dtable begins with the table itself: it must begin with zeros",
        "np.zeros(table.shape, dy.dtype)",
        "table.astype(dy.dtype)",
    ),
    mistake(
        "only the last sentence counts: the gradients of all sentences must be added",
        ADD,
        "np.add.at(dtable, ids[-1], scale * dy[-1])",
    ),
    mistake(
        "only the first sentence counts: the gradients of all sentences must be added",
        ADD,
        "np.add.at(dtable, ids[0], scale * dy[0])",
    ),
    mistake(
        "zero_id = 0 is treated like None: 0 is false, so compare with None (is not None)",
        "if zero_id is not None",
        "if zero_id",
    ),
    mistake(
        "the id 0 gets no gradient, although zero_id is None: then no position is set to 0",
        "if zero_id is not None",
        "zero_id = 0 if zero_id is None else zero_id\n    if True",
    ),
    mistake(
        "the square root of scale is used: the factor is scale itself", "scale * dy", "np.sqrt(scale) * dy"
    ),
    mistake(
        "the factor is sqrt(D), and must be the scale of the cache",
        "scale * dy",
        "np.sqrt(table.shape[1]) * dy",
    ),
    mistake(
        "the gradient is multiplied by the rows of the table: the derivative of a row is only scale",
        "scale * dy",
        "scale * dy * table[ids]",
    ),
    mistake(
        "the gradient is divided by the batch size: it must not be averaged here",
        "scale * dy",
        "scale * dy / len(ids)",
    ),
    mistake(
        "the gradient is divided by the number of tokens: it must not be averaged here",
        "scale * dy",
        "scale * dy / ids.size",
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
    mistake(
        "dw is reshaped to the shape of the weight: it must be transposed",
        "dw.T",
        "dw.reshape(layer.weight.grad.shape)",
    ),
    mistake(
        "the gradients of weight and bias are divided by the number of positions: they must be sums",
        "+= dw.T",
        "+= dw.T / (dy.size // dy.shape[-1])",
        "+= dbias",
        "+= dbias / (dy.size // dy.shape[-1])",
    ),
    mistake(
        "the gradient of the weight is divided by the number of positions: it must be a sum",
        "+= dw.T",
        "+= dw.T / (dy.size // dy.shape[-1])",
    ),
    mistake(
        "the gradient of the bias is divided by the number of positions: it must be a sum",
        "+= dbias",
        "+= dbias / (dy.size // dy.shape[-1])",
    ),
    mistake("the gradient of the weight is added twice", "weight.grad += dw.T", "weight.grad += 2 * dw.T"),
    mistake("the gradient of the bias is added twice", "bias.grad += dbias", "bias.grad += 2 * dbias"),
    mistake(
        "without a bias nothing is added to layer.weight.grad: the weight has a gradient in both cases",
        "    layer.weight.grad += dw.T\n    if layer.bias is not None:\n",
        "    if layer.bias is not None:\n        layer.weight.grad += dw.T\n",
    ),
    mistake(
        "the gradient of the bias has the wrong sign: the optimizer subtracts it, not the layer",
        "bias.grad += dbias",
        "bias.grad -= dbias",
    ),
    mistake(
        "the gradients of weight and bias have the wrong sign: the optimizer subtracts them, not the layer",
        "weight.grad += dw.T",
        "weight.grad -= dw.T",
        "bias.grad += dbias",
        "bias.grad -= dbias",
    ),
    mistake(
        "dx is divided by the batch size: a gradient must not be averaged here",
        "return dx",
        "return dx / len(dy)",
    ),
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
    mistake(
        "the gradients of weight and bias are divided by the number of positions: they must be sums",
        "+= dweight",
        "+= dweight / (dy.size // dy.shape[-1])",
        "+= dbias",
        "+= dbias / (dy.size // dy.shape[-1])",
    ),
    mistake(
        "the gradient of the weight is divided by the number of positions: it must be a sum",
        "+= dweight",
        "+= dweight / (dy.size // dy.shape[-1])",
    ),
    mistake(
        "the gradient of the bias is divided by the number of positions: it must be a sum",
        "+= dbias",
        "+= dbias / (dy.size // dy.shape[-1])",
    ),
    mistake(
        "the gradient of the weight is added twice", "weight.grad += dweight", "weight.grad += 2 * dweight"
    ),
    mistake("the gradient of the bias is added twice", "bias.grad += dbias", "bias.grad += 2 * dbias"),
    mistake(
        "without a bias nothing is added to layer.weight.grad: the weight has a gradient in both cases",
        "    layer.weight.grad += dweight\n    if layer.bias is not None:\n",
        "    if layer.bias is not None:\n        layer.weight.grad += dweight\n",
    ),
    mistake(
        "the gradient of the bias has the wrong sign: the optimizer subtracts it, not the layer",
        "bias.grad += dbias",
        "bias.grad -= dbias",
    ),
    mistake(
        "the gradients of weight and bias have the wrong sign: the optimizer subtracts them, not the layer",
        "weight.grad += dweight",
        "weight.grad -= dweight",
        "bias.grad += dbias",
        "bias.grad -= dbias",
    ),
    mistake(
        "dx is divided by the batch size: a gradient must not be averaged here",
        "return dx",
        "return dx / len(dy)",
    ),
    mistake(
        "the weight decays: the gradient of the weight contains no term with the weight itself",
        "weight.grad += dweight",
        "weight.grad += dweight + layer.weight.value",
    ),
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
    mistake(
        "the exponent counts the columns instead of the pairs of columns: both columns of pair i have the "
        "exponent 2i/D",
        "np.sin(angle)",
        "np.sin(position / 10000 ** (4 * i / d_model))",
        "np.cos(angle)",
        "np.cos(position / 10000 ** (2 * (2 * i + 1) / d_model))",
    ),
    mistake(
        "i is divided by D/2 - 1, as in another implementation: the exponent is 2i/D",
        "2 * i / d_model",
        "i / max(1, d_model // 2 - 1)",
    ),
    mistake(
        "i is divided by D/2 - 1, as in another implementation, which divides by 0 if D is 2: the "
        "exponent is "
        "2i/D",
        "2 * i / d_model",
        "i / np.float64(d_model // 2 - 1)",
    ),
    mistake(
        "10000 is multiplied by 2i/D: this must be its exponent",
        "10000 ** (2 * i / d_model)",
        "(10000 * (2 * i / d_model))",
    ),
    mistake("the angle is multiplied by 2 pi", "angle = position", "angle = 2 * np.pi * position"),
    mistake("the angle is multiplied by pi", "angle = position", "angle = np.pi * position"),
    mistake(
        "position and i are exchanged in the angle",
        "position / 10000 ** (2 * i / d_model)",
        "i / 10000 ** (2 * position / d_model)",
    ),
    mistake(
        "the positions are divided by the length: they are whole numbers",
        "np.arange(length)",
        "(np.arange(length) / length)",
    ),
    mistake(
        "the table is multiplied by sqrt(D): that is done with embeddings",
        "return table",
        "return table * np.sqrt(d_model)",
    ),
    mistake(
        "the frequencies are in the reverse order: the first columns change fastest",
        "np.arange(d_model // 2)",
        "np.arange(d_model // 2)[::-1]",
    ),
    mistake(
        "the exponent counts the pairs from 1: i begins with 0",
        "np.arange(d_model // 2)",
        "np.arange(1, d_model // 2 + 1)",
    ),
    mistake(
        "all columns have the same frequency: the power of 10000 is left out",
        "position / 10000 ** (2 * i / d_model)",
        "position + 0 * i",
    ),
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
    mistake(
        "the gradient is one row too late: the first position has the row start",
        "[start : start + length]",
        "[start + 1 : start + 1 + length]",
    ),
    mistake(
        "the gradient is one row too early: the first position has the row start",
        "[start : start + length]",
        "[start - 1 : start - 1 + length]",
    ),
    mistake(
        "the gradient is divided by the number of positions: sum dy over the batch only",
        "dy.sum(0)",
        "dy.sum(0) / length",
    ),
    mistake(
        "the gradient is divided by the number of all entries of the batch: sum dy over the batch",
        "dy.sum(0)",
        "dy.sum(0) / (len(dy) * length)",
    ),
    mistake("the positions are in the reverse order", "dy.sum(0)", "dy.sum(0)[::-1]"),
    mistake("the largest gradient of the batch is used instead of the sum", "dy.sum(0)", "dy.max(0)"),
    mistake(
        "every row of the weight gets the gradient of all positions: each row belongs to one position",
        "[start : start + length] += dy.sum(0)",
        "[...] += dy.sum((0, 1))",
    ),
    mistake("the gradient is added twice", "+= dy.sum(0)", "+= 2 * dy.sum(0)"),
)
def positions_backward(layer: Any, dy: Any, cache: Any) -> Any:
    """Return the gradient of learned positions that all sentences share."""
    start, length = cache
    layer.weight.grad[start : start + length] += dy.sum(0)
