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
    mistake(
        "the derivatives of the two factors are multiplied: the product rule adds two terms, each with "
        "the derivative of one factor",
        "(s + x * ds)",
        "ds",
    ),
    mistake(
        "the derivatives of the two factors are added: in the product rule each is multiplied by the "
        "other factor",
        "(s + x * ds)",
        "(1 + ds)",
    ),
    mistake(
        "s and its derivative are exchanged in the product rule: x belongs to the derivative of s, and s "
        "stands alone",
        "(s + x * ds)",
        "(ds + x * s)",
    ),
    mistake("dy multiplies only the first term: it belongs to both", "dy * (s + x * ds)", "dy * s + x * ds"),
    mistake("dy multiplies only the second term: it belongs to both", "dy * (s + x * ds)", "s + dy * x * ds"),
    mistake(
        "the sigmoid is applied to s, which is the sigmoid of x already",
        "ds = s * (1 - s)",
        "s = 1 / (1 + np.exp(-s)); ds = s * (1 - s)",
    ),
    mistake("the derivative of the sigmoid has the wrong sign", "ds = s * (1 - s)", "ds = s * (s - 1)"),
    mistake(
        "this is the gradient of ReLU: swish lets a part of the gradient pass where x is negative too",
        "dy * (s + x * ds)",
        "np.where(x > 0, dy, 0)",
    ),
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
    mistake(
        "dweight is that of the last row only: the products of all rows must be summed",
        "rows.T @ drows",
        "rows[-1:].T @ drows[-1:]",
    ),
    mistake(
        "dweight is that of the first row only: the products of all rows must be summed",
        "rows.T @ drows",
        "rows[:1].T @ drows[:1]",
    ),
    mistake(
        "dweight is that of the last entry of axis 0 only: those of all sentences must be summed",
        "rows.T @ drows",
        "x[-1].reshape(-1, x.shape[-1]).T @ dy[-1].reshape(-1, dy.shape[-1])",
    ),
    mistake("dbias is that of the last row only: the rows of dy must be summed", "drows.sum(0)", "drows[-1]"),
    mistake(
        "the gradients of weight and bias are averaged over the rows: they must be sums",
        "drows.sum(0)",
        "drows.mean(0)",
        "@ drows",
        "@ drows / len(rows)",
    ),
    mistake(
        "all gradients are divided by the number of rows: the backward pass of a sum has no such divisor",
        "drows = dy.reshape(-1, dy.shape[-1])",
        "drows = dy.reshape(-1, dy.shape[-1]) / len(rows)",
    ),
    mistake(
        "dbias contains the weight: the bias is added after the product, so dy itself is summed",
        "drows.sum(0)",
        "drows.sum(0) * weight.sum(0)",
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
    mistake(
        "it is divided by 2h, as in a central difference: one complex step is divided by h",
        "np.imag(y) / h",
        "np.imag(y) / (2 * h)",
    ),
    mistake(
        "the absolute value of y is used instead of the imaginary part", "np.imag(y) / h", "np.abs(y) / h"
    ),
    mistake(
        "only the first of the tensors is moved: all tensors must be moved at once",
        "directions.items()",
        "list(directions.items())[:1]",
    ),
    mistake(
        "the tensors themselves are left out: the step must be added to them",
        "target.tensors[name] + 1j * h * v",
        "1j * h * v",
    ),
    mistake(
        "the step is multiplied by the tensor: the direction itself must be added",
        "1j * h * v",
        "1j * h * v * target.tensors[name]",
    ),
    mistake(
        "the directions are divided by their length: use them as they are",
        "1j * h * v",
        "1j * h * v / np.linalg.norm(v)",
    ),
    mistake(
        "the entries of y are summed: the derivative has the shape of y",
        "np.imag(y) / h",
        "np.imag(y).sum() / h",
    ),
    *(
        mistake(
            "a difference quotient with a real step is computed: it has an error that a complex step avoids",
            "h = 1e-20",
            f"h = 1e-{digits}",
            "1j * h * v",
            "h * v",
            "np.imag(y) / h",
            "(y - target.run({})[0]) / h",
        )
        for digits in range(2, 7)
    ),
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
    mistake(
        "the width is the length of the first row instead of the longest row, and longer rows are cut",
        "max(map(len, rows))",
        "len(rows[0])",
        ": len(row)] = row",
        ": len(row)] = row[:width]",
    ),
    mistake("the array has one column too many", "max(map(len, rows))", "max(map(len, rows)) + 1"),
    mistake(
        "all rows are cut to the shortest row: the width is that of the longest row",
        "max(map(len, rows))",
        "min(map(len, rows))",
        ": len(row)] = row",
        ":] = row[:width]",
    ),
    mistake(
        "the empty places repeat the last id of the row: they must hold pad_id",
        "padded[i, : len(row)] = row",
        "padded[i] = [*row, *[row[-1] if row else pad_id] * (width - len(row))]",
    ),
    mistake(
        "the empty places repeat the row from its beginning: they must hold pad_id",
        "padded[i, : len(row)] = row",
        "padded[i] = np.resize(row, width) if row else pad_id",
    ),
    mistake(
        "the rows are sorted by their lengths: keep their order",
        "enumerate(rows)",
        "enumerate(sorted(rows, key=len))",
    ),
    mistake(
        "the rows are sorted by their lengths, the longest first: keep their order",
        "enumerate(rows)",
        "enumerate(sorted(rows, key=len, reverse=True))",
    ),
    mistake(
        "the width is the number of all ids: it is the length of the longest row",
        "max(map(len, rows))",
        "sum(map(len, rows))",
    ),
    mistake("the ids of a row are in reverse order", "] = row", "] = row[::-1]"),
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
    mistake(
        "the last id is kept also if it is not END: then the result is the first max_length ids",
        "return ids[:max_length]",
        "return [*ids[: max_length - 1], ids[-1]]",
    ),
    mistake(
        "END is added to short ids that do not end with it: return them unchanged",
        "return list(ids)",
        "return [*ids, END] if ids and ids[-1] != END and len(ids) < max_length else list(ids)",
    ),
    mistake(
        "END is removed from ids that are short enough: return them unchanged",
        "return list(ids)",
        "return [i for i in ids if i != END]",
    ),
    mistake(
        "the ids are cut at the first END: only the last id counts",
        "if len(ids) <= max_length:",
        "if END in ids[:max_length]: return ids[: ids.index(END) + 1]\n    if len(ids) <= max_length:",
    ),
    mistake(
        "END takes the last place of every sentence that is cut, and the result is one id too short if "
        "the ids end with END",
        "[*ids[: max_length - 1], END]",
        "[*ids[: max_length - 2], END]",
        "return ids[:max_length]",
        "return [*ids[: max_length - 1], END]",
    ),
    mistake(
        "the last ids are kept of a sentence that ends with END: keep the first max_length - 1 ids, and END",
        "[*ids[: max_length - 1], END]",
        "ids[-max_length:]",
    ),
)
def truncate(ids: Any, max_length: Any) -> Any:
    """Return a sentence cut to a maximum length, with its end symbol if it has one."""
    if len(ids) <= max_length:
        return list(ids)
    if ids[-1] == END:
        return [*ids[: max_length - 1], END]
    return ids[:max_length]
