"""Chapters 0 and 1: pairs of a forward and a backward pass, derivatives, and batches of tokens."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import derivative_along
from npformer.data.loader import pad, truncate
from npformer.learn.exercises.exercise import Functions, Task, Values, exercises
from npformer.learn.exercises.topics import hidden_inputs
from npformer.learn.exercises.topics.tools import pair_trial, pairs


def _derivatives(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    """Compute the derivative of a softmax along a direction, and of a linear map along two at once."""
    softmax = CheckTarget(
        (F.softmax, F.softmax_backward), (rng.standard_normal((2, 5)),), {}, randomize=False, rng=rng
    )
    inputs = (rng.standard_normal((3, 4)), rng.standard_normal((4, 2)))
    linear = CheckTarget((F.linear, F.linear_backward), inputs, {}, randomize=False, rng=rng)
    v, w = rng.standard_normal((3, 4)), rng.standard_normal((4, 2))
    return {
        "derivative of softmax": own.derivative_along(softmax, {"x": rng.standard_normal((2, 5))}),
        "derivative of linear": own.derivative_along(linear, {"x": v, "weight": w}),
    }


def _padded(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "pad([[5, 6, 7], [8], []])": own.pad([[5, 6, 7], [8], []]),
        "pad([[1, 2], [3]], pad_id=9)": own.pad([[1, 2], [3]], 9),
        "pad([[4, 5, 6]])": own.pad([[4, 5, 6]]),
        "pad([[7], [8, 9]])": own.pad([[7], [8, 9]]),
        "pad([[5, 6], [1, 2, 3, 4, 7]])": own.pad([[5, 6], [1, 2, 3, 4, 7]]),
    }


def _truncated(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "truncate([5, 6, 7, 8, 3], 3)": own.truncate([5, 6, 7, 8, 3], 3),
        "truncate([5, 6, 7, 8], 2)": own.truncate([5, 6, 7, 8], 2),
        "truncate([5, 3], 2)": own.truncate([5, 3], 2),
        "truncate([5, 3], 4)": own.truncate([5, 3], 4),
        "truncate([5, 6], 4)": own.truncate([5, 6], 4),
        "truncate([5, 3, 6, 7], 3)": own.truncate([5, 3, 6, 7], 3),
    }


def _without_bias(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    """Compute the gradients of a linear map without a bias: the third one is None, and is returned too."""
    x, weight, dy = (rng.standard_normal(shape) for shape in ((4, 5), (5, 3), (4, 3)))
    returned = own.linear_backward(dy, F.linear(x, weight)[1])
    return {
        "dbias if has_bias is False": returned[2] if len(returned) > 2 else None,
        "the length of the returned tuple if has_bias is False": len(returned),
    }


BEGINNINGS = exercises(
    r'''
=== 0 swish-backward: the backward pass of y = x · sigmoid(x)

def swish_backward(dy, cache):
    """Return the gradient of y = x s, where s = sigmoid(x) = 1 / (1 + exp(-x)) for each entry of x.

    dy     the gradient of y, of any shape
    cache  the pair (x, s) from the forward pass
    Returns dx, with the shape of x. Do not modify dy or the cache.
    """
    x, s = cache
    # dx = ...
    # solution
    ds = s * (1 - s)
    return dy * (s + x * ds)
--- y is the product of x and s, and s depends on x too. So the product rule gives two terms.
--- The derivative of the sigmoid is s' = s (1 - s).
--- dx = dy · (s + x · s'), where s' is the derivative from hint 2.

=== 0 linear-backward: the backward pass of y = x weight + bias
import numpy as np


def linear_backward(dy, cache):
    """Return the gradients of y = x weight + bias.

    dy     the gradient of y, of shape (..., O)
    cache  .x (..., I), .weight (I, O), and .has_bias
    Returns (dx, dweight, dbias), with the shapes of x, weight (I, O) and bias (O,).
    dbias is None if cache.has_bias is False.
    x may have any number of axes before its last one. Treat each position as one row.
    """
    x, weight, has_bias = cache
    rows = x.reshape(-1, x.shape[-1])  # (N, I)
    # reshape dy to rows (N, O) as well, then compute dbias, dweight and dx
    # solution
    drows = dy.reshape(-1, dy.shape[-1])
    dbias = drows.sum(0) if has_bias else None
    dweight = rows.T @ drows
    dx = drows @ weight.T
    return dx.reshape(x.shape), dweight, dbias
--- Consider one entry of x, of weight and of bias. Which entries of y depend on it? Its gradient is a sum
    over these entries.
--- The bias is added to every row, so dbias is the sum over the rows. dx and dweight are matrix products.
    Use the shapes: for each of them only one product has the right shape.
--- dx = dy @ weight.T, and dweight = rows.T @ drows, where drows is dy as rows. In the end dx has the shape
    of x.

=== 0 derivative: a derivative by complex step
import numpy as np


def derivative_along(target, directions):
    """Return the derivative of the output y along the given directions of the tensors.

    A gradient check compares gradients with this derivative.
    target      target.tensors[name] is an array. target.run({name: array, ...}) runs the forward pass
                with these arrays instead of the tensors, and returns (y, cache).
    directions  a dict from the name of a tensor to an array of the same shape
    Returns an array with the shape of y. Use a complex step: f(x + ihv) = f(x) + ih f'(x)v - ...,
    where h is very small, for example 1e-20.
    """
    # y, _ = target.run(...)
    # solution
    h = 1e-20
    moved = {}
    for name, v in directions.items():
        moved[name] = target.tensors[name] + 1j * h * v
    y, _ = target.run(moved)
    return np.imag(y) / h
--- Add 1j * h * v to each tensor, where v is its direction. The forward pass accepts complex numbers.
--- The imaginary part of f(x) + ih f'(x)v is h times the derivative.
--- Call target.run with {name: target.tensors[name] + 1j * h * v} for every name in directions. Return
    np.imag(y) / h.

=== 1 pad: sentences of different lengths as one array
import numpy as np


def pad(rows, pad_id=0):
    """Return the rows as one array of integers. Shorter rows are filled with pad_id on the right.

    rows    a list of B lists of ids, of any lengths
    Returns an integer array (B, T), where T is the length of the longest row.
    """
    # solution
    width = max(map(len, rows))
    padded = np.full((len(rows), width), pad_id)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded
--- First find the width of the array. Then fill the array with one number before you copy the rows.
--- np.full makes an array in which all numbers are equal. Then copy list i to the first entries of row i of
    this array.
--- padded = np.full((B, T), pad_id). Then padded[i, : len(row)] = row for each row.

=== 1 truncate: a sentence cut to a maximum length

END = 3  # the id of the end symbol


def truncate(ids, max_length):
    """Return at most max_length of the ids. If the ids end with END, the result ends with END too.

    ids  a list of ids
    Returns a list. For max_length = 3, [5, 6, 7, 8, 3] gives [5, 6, 3], and [5, 6, 7, 8] gives [5, 6, 7].
    """
    # solution
    if len(ids) <= max_length:
        return list(ids)
    if ids[-1] == END:
        return [*ids[: max_length - 1], END]
    return ids[:max_length]
--- There are three cases: the list is short enough, it is too long and ends with END, or it is too long and
    does not end with END.
--- In the second case, keep max_length - 1 ids, so that there is space for END.
--- The second case gives [*ids[: max_length - 1], END], and the third gives ids[:max_length].
''',
    {
        "swish-backward": pairs(F.swish, ("", (4, 5))),
        "linear-backward": Task(
            F.linear_backward,
            pair_trial("", F.linear, "linear_backward", (4, 5), (5, 3), (3,)),
            pair_trial("x (2, 4, 5)", F.linear, "linear_backward", (2, 4, 5), (5, 3), (3,)),
            Values("", _without_bias),
            pair_trial("no bias", F.linear, "linear_backward", (4, 5), (5, 3)),
        ),
        "derivative": Task(derivative_along, Values("", _derivatives)),
        "pad": Task(pad, Values("", _padded, hidden=hidden_inputs.padded)),
        "truncate": Task(truncate, Values("", _truncated, hidden=hidden_inputs.truncated)),
    },
)
