"""Chapters 0 and 1: plain solutions and mistakes."""

from typing import Any

import numpy as np

from npformer.learn.exercises.plain.registry import mistake, plain

END = 3


@plain(
    "swish-backward",
    mistake(
        "the product rule has a second term, because s depends on x too: it is left out", "(s + x * ds)", "s"
    ),
    mistake("the product rule has two terms: the term s is left out", "(s + x * ds)", "(x * ds)"),
    mistake(
        "the derivative of the sigmoid is wrong: its factor s is left out", "ds = s * (1 - s)", "ds = 1 - s"
    ),
    mistake(
        "the derivative of the sigmoid is wrong: its factor 1 - s is left out", "ds = s * (1 - s)", "ds = s"
    ),
    mistake(
        "the derivative of the sigmoid is computed from x, and must be computed from s",
        "ds = s * (1 - s)",
        "ds = x * (1 - x)",
    ),
    mistake(
        "the derivative of tanh is used instead of the derivative of the sigmoid",
        "ds = s * (1 - s)",
        "ds = 1 - s**2",
    ),
    mistake("the factor dy is left out: the chain rule multiplies by it", "dy * (", "("),
)
def swish_backward(dy: Any, cache: Any) -> Any:
    """Return the gradient of x · sigmoid(x)."""
    x, s = cache
    ds = s * (1 - s)
    return dy * (s + x * ds)


@plain(
    "linear-backward",
    mistake("dbias is averaged over the rows instead of summed", "drows.sum(0)", "drows.mean(0)"),
    mistake("dbias is summed over the wrong axis", "drows.sum(0)", "drows.sum(1)"),
    mistake("dbias is not summed over the rows", "drows.sum(0) if", "drows if"),
    mistake(
        "dweight is divided by the number of rows: it must be a sum, not averaged",
        "@ drows",
        "@ drows / len(rows)",
    ),
    mistake(
        "dweight is divided by the batch size: it must be a sum, not averaged", "@ drows", "@ drows / len(dy)"
    ),
    mistake(
        "dbias is computed although there is no bias: has_bias is not used", " if has_bias else None", ""
    ),
)
def linear_backward(dy: Any, cache: Any) -> Any:
    """Return the gradients of x weight + bias."""
    x, weight, has_bias = cache
    rows = x.reshape(-1, x.shape[-1])
    drows = dy.reshape(-1, dy.shape[-1])
    dbias = drows.sum(0) if has_bias else None
    dweight = rows.T @ drows
    dx = drows @ weight.T
    return dx.reshape(x.shape), dweight, dbias


@plain(
    "derivative",
    mistake("it is not divided by h", "np.imag(y) / h", "np.imag(y)"),
    mistake("the real part of y is used instead of the imaginary part", "np.imag(y)", "np.real(y)"),
    mistake("the step is real: without 1j the imaginary part of y stays 0", "1j * h", "h"),
    mistake("the direction v is left out of the step", "h * v", "h"),
    mistake("the step has the wrong sign", "+ 1j", "- 1j"),
    mistake(
        "only one of the tensors is moved: all tensors must be moved at once, in one call of target.run",
        "moved[name] = target.tensors[name]",
        "moved = {}; moved[name] = target.tensors[name]",
    ),
    mistake("h is too large: the error of the complex step grows like h²", "h = 1e-20", "h = 0.1"),
    mistake("h is too large: the error of the complex step grows like h²", "h = 1e-20", "h = 1e-2"),
    mistake("h is too large: the error of the complex step grows like h²", "h = 1e-20", "h = 1e-3"),
    mistake("h is too large: the error of the complex step grows like h²", "h = 1e-20", "h = 1e-4"),
)
def derivative_along(target: Any, directions: Any) -> Any:
    """Return the derivative of a function along a direction, by a complex step."""
    h = 1e-20
    moved = {}
    for name, v in directions.items():
        moved[name] = target.tensors[name] + 1j * h * v
    y, _ = target.run(moved)
    return np.imag(y) / h


@plain(
    "pad",
    mistake("the empty places are filled with 0 instead of pad_id", "width), pad_id", "width), 0"),
    mistake(
        "the rows are padded on the left and must be padded on the right", ": len(row)", "width - len(row) :"
    ),
    mistake(
        "the width is the length of the first row instead of the longest row",
        "max(map(len, rows))",
        "len(rows[0])",
    ),
    mistake("the array has one column too many", "max(map(len, rows))", "max(map(len, rows)) + 1"),
)
def pad(rows: Any, pad_id: Any = 0) -> Any:
    """Return sentences of different lengths as one array with padding."""
    width = max(map(len, rows))
    padded = np.full((len(rows), width), pad_id)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


@plain(
    "truncate",
    mistake(
        "the end symbol is cut off: if the ids end with END, the result must end with END too",
        "[*ids[: max_length - 1], END]",
        "ids[:max_length]",
    ),
    mistake(
        "the result is one id longer than max_length: END needs a place too",
        "[*ids[: max_length - 1], END]",
        "[*ids[:max_length], END]",
    ),
    mistake(
        "the result is one id too short", "[*ids[: max_length - 1], END]", "[*ids[: max_length - 2], END]"
    ),
    mistake("the result is one id too short", "return ids[:max_length]", "return ids[: max_length - 1]"),
    mistake("END is added to ids that do not end with END", "ids[-1] == END", "True"),
    mistake(
        "END is added to ids that contain END and do not end with it: only the last id counts",
        "ids[-1] == END",
        "END in ids",
    ),
    mistake(
        "the last ids are kept instead of the first", "return ids[:max_length]", "return ids[-max_length:]"
    ),
    mistake(
        "the last ids are kept instead of the first",
        "return ids[:max_length]",
        "return ids[-max_length:]",
        "[*ids[: max_length - 1], END]",
        "ids[-max_length:]",
    ),
    mistake(
        "ids that are short enough are cut too: return them unchanged", "len(ids) <= max_length", "False"
    ),
)
def truncate(ids: Any, max_length: Any) -> Any:
    """Return a sentence cut to a maximum length, with its end symbol if it has one."""
    if len(ids) <= max_length:
        return list(ids)
    if ids[-1] == END:
        return [*ids[: max_length - 1], END]
    return ids[:max_length]
