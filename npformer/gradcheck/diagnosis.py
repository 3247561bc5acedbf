"""What a wrong gradient looks like: the mistakes that are made again and again, each with its sign.

The numeric gradient is made entry by entry (of large tensors a part), and compared with the analytic
one: is it the same up to a factor, transposed, zero, without its mean ...?
"""

import math

import numpy as np

from npformer.gradcheck.derivative import derivative

ENTRIES = 512  # as many entries of a tensor as are looked at one by one


def diagnose(subject, tensor, g, dy, method, tolerance):
    """A sentence that says what the gradient g of a tensor looks like, beside the right one."""
    if not np.isfinite(g).all():
        return "the gradient holds NaN or infinity"
    value = subject.tensors[tensor]
    index = _entries_to_look_at(value.size)
    numeric = _numeric_gradient(subject, tensor, dy, method, index)
    analytic = np.asarray(g, np.float64).reshape(-1)[index]
    loose = max(tolerance, 1e-9) if method == "complex" else 1e-4
    if method == "complex" and _passes_differences(subject, tensor, dy, analytic, index):
        return (
            "central differences agree with the gradient: the forward pass does not let complex numbers "
            "through (abs, max, comparisons or a norm?); check with method='difference'"
        )
    whole = len(index) == value.size
    clues = [
        _nothing(numeric, analytic, loose),
        _factor(numeric, analytic, _named_numbers(subject, dy), loose),
        _state_on_layer(subject, tensor, dy, numeric, index, loose),
    ]
    if whole:
        numeric, analytic = numeric.reshape(value.shape), analytic.reshape(value.shape)
        clues += [
            _transposed(numeric, analytic, loose),
            _residual(numeric, analytic, dy, loose),
            _some_axis(numeric, analytic, loose),
        ]
    clues.append(_some_entries(numeric, analytic, loose))
    return next((clue for clue in clues if clue), "no pattern that is known: compare it with the derivation")


def _entries_to_look_at(size):
    """All entries of a small tensor, evenly spaced ones of a large one."""
    return np.unique(np.linspace(0, size - 1, min(size, ENTRIES)).astype(int))


def _numeric_gradient(subject, tensor, dy, method, index):
    """The derivative of <dy, y> by each of these entries. Shapes: index (n,) -> (n,)."""
    value = subject.tensors[tensor]
    numeric = np.empty(len(index))
    for i, entry in enumerate(index):
        v = np.zeros(value.size)
        v[entry] = 1
        numeric[i] = (dy * derivative(subject, tensor, v.reshape(value.shape), method)).sum()
    return numeric


def _passes_differences(subject, tensor, dy, analytic, index):
    """Whether central differences find the gradient right where the complex step does not."""
    numeric = _numeric_gradient(subject, tensor, dy, "difference", index)
    return _same(numeric, analytic, 1e-5)


def _same(a, b, loose):
    scale = max(np.abs(a).max(initial=0), np.abs(b).max(initial=0))
    return bool(np.abs(a - b).max(initial=0) <= loose * scale)


def _nothing(numeric, analytic, loose):
    if not analytic.any() and numeric.any():
        return "it is 0 throughout: nothing reached this tensor (a branch left out, or a lost tie?)"
    if np.abs(numeric).max(initial=0) <= loose * np.abs(analytic).max(initial=0):
        return "it should be 0 throughout: the output does not depend on this tensor"
    return ""


def _factor(numeric, analytic, named, loose):
    """analytic = c numeric, with a c that has a name."""
    c = float(analytic @ numeric) / max(float(numeric @ numeric), np.finfo(float).tiny)
    if c == 0 or not _same(analytic, c * numeric, loose):
        return ""
    if math.isclose(c, -1, rel_tol=loose):
        return "the sign is wrong"
    for number, what in named:
        for power, text in ((1, what), (-1, f"1/{what}"), (0.5, f"√{what}"), (-0.5, f"1/√{what}")):
            for sign, minus in ((1, ""), (-1, "-")):
                if math.isclose(c, sign * number**power, rel_tol=10 * loose):
                    return f"it is {c:.4g} = {minus}{text} times the right one{_explain(power, number)}"
    return f"it is {c:.6g} times the right one"


def _explain(power, number):
    if power == -1 and number > 2:
        return " (averaged where it should be summed?)"
    if power in (0.5, -0.5):
        return " (a scale of √d left out, or applied twice?)"
    return " (counted twice?)" if number == 2 and power == 1 else ""


def _named_numbers(subject, dy):
    """Numbers that a factor may come from: 2, and the lengths of axes."""
    named = [(2, "2"), (3, "3")]
    for name, array in [*subject.inputs.items(), *subject.tensors.items(), ("y", dy)]:
        for axis, length in enumerate(np.shape(array)):
            if length > 1:
                named.append((length, f"{length} (axis {axis} of {name})"))
    sizes = {math.prod(np.shape(a)[:-1]) for a in [*subject.inputs.values(), dy] if np.ndim(a) > 1}
    return named + [(n, f"{n} (all positions)") for n in sorted(sizes) if n > 1]


def _state_on_layer(subject, tensor, dy, numeric, index, loose):
    """Right after one forward pass, wrong after another one: activations are kept on the layer."""
    _, cache = subject.run()
    again = np.asarray(subject.pull(dy, cache)[tensor], np.float64).reshape(-1)[index]
    if _same(numeric, again, loose):
        return (
            "it is right until forward runs a second time before backward: activations are kept on the "
            "layer, and belong in the cache"
        )
    return ""


def _transposed(numeric, analytic, loose):
    if numeric.ndim == 2 and numeric.shape[0] == numeric.shape[1] and _same(numeric.T, analytic, loose):
        return "it is transposed"
    return ""


def _residual(numeric, analytic, dy, loose):
    """The difference is dy itself: the way round a sublayer."""
    if np.shape(dy) != numeric.shape:
        return ""
    if _same(numeric - dy, analytic, loose):
        return "dy itself is missing from it: the residual's way round was left out"
    if _same(numeric + dy, analytic, loose):
        return "it holds dy once too often: the residual's way round was added twice"
    return ""


def _some_axis(numeric, analytic, loose):
    """The difference is the same all along an axis: a mean, or a sum, that is missing there."""
    difference = analytic - numeric
    for axis in reversed(range(numeric.ndim)):
        if numeric.shape[axis] < 2:
            continue
        mean = difference.mean(axis, keepdims=True)
        if _same(difference, np.broadcast_to(mean, difference.shape), loose) and mean.any():
            return (
                f"it is off by the same amount all along axis {axis}: the term that passes through the "
                "mean or the sum over that axis is missing"
            )
        if _same(analytic.sum(axis), numeric.sum(axis), loose):
            return f"only its sum over axis {axis} is right: that axis is in the wrong order, or spread out"
    return ""


def _some_entries(numeric, analytic, loose):
    """Some entries are right and others not: a mask, or a position left out."""
    scale = max(np.abs(numeric).max(), np.abs(analytic).max())
    wrong = np.abs(numeric - analytic) > loose * scale
    share = f"{wrong.sum()} of {wrong.size} entries are wrong"
    if wrong.all():
        return ""
    if not numeric[wrong].any():
        return f"{share}, and they should be 0: masked, dropped or padded positions must pass nothing back"
    if not analytic[wrong].any():
        return f"{share}: they are 0 and should not be, so something that was used passed nothing back"
    c = analytic[wrong] / numeric[wrong]
    if np.ptp(c) <= loose * np.abs(c).max():
        return f"{share}, by the factor {c[0]:.4g} (a repeated index or a shared row counted wrongly?)"
    return f"{share}, the others right: one position, row or branch is treated wrongly"
