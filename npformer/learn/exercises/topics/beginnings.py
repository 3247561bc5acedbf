"""Lessons 0 and 1: pairs of forward and backward, derivatives, and batches of tokens."""

from typing import Any

import numpy as np

from npformer import functional as F
from npformer.checking.check_target import CheckTarget
from npformer.checking.derivative import derivative_along
from npformer.data.loader import pad, truncate
from npformer.learn.exercises.exercise import Exercise, Functions, Values
from npformer.learn.exercises.topics.tools import pair_trial


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
    }


def _truncated(own: Functions, rng: np.random.Generator) -> dict[str, Any]:
    return {
        "truncate([5, 6, 7, 8, 3], 3)": own.truncate([5, 6, 7, 8, 3], 3),
        "truncate([5, 6, 7, 8], 2)": own.truncate([5, 6, 7, 8], 2),
        "truncate([5, 3], 2)": own.truncate([5, 3], 2),
        "truncate([5, 3], 4)": own.truncate([5, 3], 4),
    }


BEGINNINGS = (
    Exercise(
        "swish-backward",
        0,
        "the backward pass of y = x · sigmoid(x)",
        '''

def swish_backward(dy, cache):
    """The gradient of y = x s, with s = sigmoid(x) = 1 / (1 + exp(-x)), entry by entry.

    dy     the gradient of y, any shape
    cache  the pair (x, s) that the forward pass left
    Returns dx, with the shape of x. Leave dy and the cache as they are.
    """
    x, s = cache
    # dx = ...
''',
        (pair_trial("", F.swish, "swish_backward", (4, 5)),),
        (
            "y is a product of two things that both depend on x: the product rule gives two terms.",
            "The derivative of the sigmoid is s (1 - s).",
            "dx = dy · (s · 1 + x · s'), with the s' of the hint before.",
        ),
        {"swish_backward": F.swish_backward},
    ),
    Exercise(
        "linear-backward",
        0,
        "the backward pass of y = x weight + bias",
        '''
import numpy as np


def linear_backward(dy, cache):
    """The gradients of y = x weight + bias.

    dy     the gradient of y, shape (..., O)
    cache  .x (..., I), .weight (I, O), and .has_bias
    Returns (dx, dweight, dbias), with the shapes of x, weight (I, O) and bias (O,);
    None for dbias where cache.has_bias is False.
    x may have any number of axes before its last one: every position is one more row.
    """
    x, weight, has_bias = cache
    rows = x.reshape(-1, x.shape[-1])  # (N, I)
    # drows = dy as rows (N, O), then dbias, dweight, dx
''',
        (
            pair_trial("", F.linear, "linear_backward", (4, 5), (5, 3), (3,)),
            pair_trial("x (2, 4, 5)", F.linear, "linear_backward", (2, 4, 5), (5, 3), (3,)),
            pair_trial("no bias", F.linear, "linear_backward", (4, 5), (5, 3)),
        ),
        (
            "For each of x, weight and bias: which entries of y did an entry of it reach? Sum over them.",
            "The bias reached every row, so dbias is a sum over rows. For the other two only one product of "
            "matrices has shapes that fit.",
            "dx is dy times weight transposed; dweight is x transposed times dy, both as rows; reshape dx to "
            "x's shape.",
        ),
        {"linear_backward": F.linear_backward},
    ),
    Exercise(
        "derivative",
        0,
        "a derivative by complex step",
        '''
import numpy as np


def derivative_along(target, directions):
    """How the output y changes as the tensors move along their directions: what a gradient is checked with.

    target     target.tensors[name] is an array; target.run({name: array, ...}) evaluates the forward
                pass with these arrays in the place of the tensors, and returns (y, cache)
    directions  a dict from the name of a tensor to an array of its shape
    Returns an array with the shape of y. For a complex step, f(x + ihv) = f(x) + ih f'(x)v - ...,
    with an h as small as 1e-20.
    """
    # y, _ = target.run(...)
''',
        (Values("", _derivatives),),
        (
            "Move each tensor by i·h times its direction: 1j * h * v. forward takes complex numbers.",
            "In f(x) + ih f'(x)v the derivative stands in the imaginary part, times h.",
            "y, _ = target.run({name: tensor + 1j · h · v for every name}); return np.imag(y) / h.",
        ),
        {"derivative_along": derivative_along},
    ),
    Exercise(
        "pad",
        1,
        "sentences of several lengths as one array",
        '''
import numpy as np


def pad(rows, pad_id=0):
    """The rows as one array of integers, filled with pad_id on the right.

    rows    a list of lists of ids, of any lengths
    Returns an integer array (B, T), T the length of the longest row.
    """
''',
        (Values("", _padded),),
        (
            "How wide must the array be? And what may it hold before any row is written into it?",
            "np.full makes an array of one number; a row goes into its first len(row) entries.",
            "padded = np.full((B, T), pad_id); for each line: line[:len(row)] = row.",
        ),
        {"pad": pad},
    ),
    Exercise(
        "truncate",
        1,
        "a sentence cut to a length, its end kept",
        '''

END = 3  # the id of the end symbol


def truncate(ids, max_length):
    """At most max_length of the ids; where they end with END, the shorter ones do too.

    ids  a list of ids
    Returns a list: [5, 6, 7, 8, 3] cut to 3 is [5, 6, 3], and [5, 6, 7, 8] cut to 3 is [5, 6, 7].
    """
''',
        (Values("", _truncated),),
        (
            "Three cases: short enough, too long with END at its end, too long without.",
            "A cut sentence that ended with END keeps one id less of its words, so that END finds room.",
            "[*ids[: max_length - 1], END] in the second case, ids[:max_length] in the third.",
        ),
        {"truncate": truncate},
    ),
)
