"""What holds for every right backward pass, whatever the function: five properties.

adjoint:   <dy, J v> = <Jᵀ dy, v> for another dy and a direction v through all tensors at once.
linearity: backward(a dy1 + b dy2) = a backward(dy1) + b backward(dy2).
adds up:   running backward twice doubles the parameters' gradients (+=, not =).
untouched: backward writes neither into dy nor into the cache.
hessian:   <w, H v> = <v, H w>: second derivatives are symmetric, by a complex step through backward.
"""

import numpy as np

from npformer.gradcheck.derivative import METHOD_NAMES, STEP, derivative_along
from npformer.gradcheck.report import Row
from npformer.show import named_arrays


def property_rows(name, subject, dy, grads, rng, method, tolerance, hessian):
    """One row a property."""
    rows = [
        ("adjoint", _adjoint(subject, dy, rng, method), METHOD_NAMES[method], ""),
        ("linearity in dy", _linearity(subject, dy, grads, rng), "backward alone", ""),
        ("adds up", *_adds_up(subject, dy, grads)),
        ("leaves dy and cache alone", *_untouched(subject, dy)),
    ]
    if hessian:
        rows.append(("hessian symmetry", _hessian(subject, dy, rng), "complex step through backward", ""))
    return [Row(name, tensor, error, how, tolerance, None, why) for tensor, error, how, why in rows]


def _adjoint(subject, dy, rng, method):
    dy = dy * 0.7 if np.ndim(dy) == 0 else rng.standard_normal(dy.shape)
    # normal, not ±1: errors that are alike in two entries cannot cancel here
    directions = {name: rng.standard_normal(value.shape) for name, value in subject.tensors.items()}
    numeric = float((dy * derivative_along(subject, directions, method)).sum())
    grads = _fresh_pull(subject, dy)
    analytic = sum(float((grads[name] * v).sum()) for name, v in directions.items())
    return abs(numeric - analytic) / max(_length(grads.values()), abs(numeric), _TINY)


def _linearity(subject, dy, grads, rng):
    other = dy * 0.3 if np.ndim(dy) == 0 else rng.standard_normal(dy.shape)
    a, b = 0.6, -1.7
    together = _fresh_pull(subject, a * dy + b * other)
    second = _fresh_pull(subject, other)
    difference = [together[n] - a * grads[n] - b * second[n] for n in grads]
    return _length(difference) / max(_length(grads.values()) + _length(second.values()), _TINY)


def _adds_up(subject, dy, grads):
    twice = _fresh_pull(subject, dy, times=2)
    worst, why = 0.0, ""
    for name in subject.parameters:
        error = _length([twice[name] - 2 * grads[name]]) / max(_length([grads[name]]), _TINY)
        if error > worst:
            worst, why = error, f"{name}.grad: a second backward pass must add to it (+=, not =)"
    for name in subject.real_inputs:
        error = _length([twice[name] - grads[name]]) / max(_length([grads[name]]), _TINY)
        if error > worst:
            worst, why = (
                error,
                f"the gradient of {name} changes when backward runs twice: it alters the cache",
            )
    return worst, "backward twice", why if worst > 1e-12 else ""


def _untouched(subject, dy):
    _, cache = subject.run()
    kept, dy = dy, np.array(dy)
    before = [(name, np.array(array)) for name, array in named_arrays((cache,))]
    subject.pull(dy, cache)
    if not np.array_equal(kept, dy):
        return np.inf, "compared before and after", "backward writes into dy"
    for (name, old), (_, new) in zip(before, named_arrays((cache,)), strict=True):
        if not np.array_equal(old, new, equal_nan=old.dtype.kind in "fc"):
            return np.inf, "compared before and after", f"backward writes into the cache, at {name}"
    return 0.0, "compared before and after", ""


def _hessian(subject, dy, rng):
    h = STEP["complex"]

    def hessian_times(directions):
        changes = {n: subject.tensors[n] + 1j * h * v for n, v in directions.items()}
        _, cache = subject.run(changes)
        return {n: np.imag(g) / h for n, g in subject.pull(dy, cache, changes).items()}

    v, w = ({name: rng.standard_normal(value.shape) for name, value in subject.tensors.items()} for _ in "vw")
    hv, hw = hessian_times(v), hessian_times(w)
    there = sum(float((w[n] * hv[n]).sum()) for n in v)
    back = sum(float((v[n] * hw[n]).sum()) for n in v)
    return abs(there - back) / max(_length(hv.values()), _length(hw.values()), _TINY)


def _fresh_pull(subject, dy, times=1):
    """Backward after a forward pass of its own, on a copy of dy: what one property spoils stays with it."""
    _, cache = subject.run()
    return subject.pull(np.array(dy), cache, times=times)


_TINY = float(np.finfo(float).tiny)


def _length(arrays):
    return float(np.sqrt(sum(float((np.abs(np.asarray(a)) ** 2).sum()) for a in arrays)))
