"""gradcheck: hold a backward pass against its forward pass, tensor by tensor.

For a random dy, backward gives the gradient g of <dy, y> with respect to every tensor. For a random
direction v of ±1 the forward pass gives the derivative along v, which must equal <g, v>. One evaluation
checks all entries of a tensor at once; where it fails, bisection finds the first wrong entry.

The error is |<g, v> - derivative| relative to the length of g, which is the size that <g, v> has for a
random v. Where g is 0 in exact arithmetic (a key's bias under a softmax) it is relative to a
thousandth of the longest gradient instead, since both sides are rounding.
"""

import numpy as np

from npformer.errors import UserError
from npformer.gradcheck.derivative import METHOD_NAMES, derivative, signs
from npformer.gradcheck.diagnosis import diagnose
from npformer.gradcheck.locate import first_wrong_entry
from npformer.gradcheck.properties import property_rows
from npformer.gradcheck.report import Report, Row
from npformer.gradcheck.subject import Subject

TOLERANCE = {"complex": 1e-11, "difference": 1e-6}


def gradcheck(
    thing,
    *inputs,
    method="complex",
    tolerance=None,
    seed=0,
    name=None,
    randomize=True,
    hessian=False,
    **settings,
):
    """Check the backward pass of a layer, of a pair (f, f_backward), or of anything with both.

    thing: follows the cache protocol: forward(*inputs, **settings) -> (y, cache), and
        backward(dy, cache) -> the gradients of the real inputs in their order, adding parameters'
        gradients to .grad.
    inputs: arrays; those of floats are checked, ids and masks are passed on.
    method: "complex" (exact to rounding; the forward pass must accept complex numbers) or "difference".
    randomize: start gains and biases at random values, since 1 and 0 hide mistakes.
    hessian: check as well that second derivatives are symmetric (backward must accept complex numbers).
    settings: go to forward; rng=7 seeds a fresh generator at each evaluation.
    Returns a Report: .ok, .rows, .worst, and a table as its string.
    Errors: UserError where the protocol is not followed.
    """
    if method not in METHOD_NAMES:
        raise UserError(f"unknown method {method!r}: choose one of {', '.join(METHOD_NAMES)}")
    rng = np.random.default_rng(seed)
    subject = Subject(thing, inputs, settings, randomize=randomize, rng=rng)
    tolerance = TOLERANCE[method] if tolerance is None else tolerance
    name = name or (thing[0].__name__ if isinstance(thing, tuple) else type(thing).__name__)

    y, cache = subject.run()
    dy = _cotangent(y, rng)
    _run_elsewhere(subject)  # a layer that keeps activations on itself is found out here
    grads = subject.pull(dy, cache)
    floor = 1e-3 * max([_length(g) for g in grads.values()] + [np.finfo(float).tiny])
    report = Report(name)
    for tensor, value in subject.tensors.items():
        context = (subject, tensor, grads[tensor], dy, method, floor)
        report.rows.append(_check_tensor(name, value, context, tolerance, rng))
    report.rows += property_rows(name, subject, dy, grads, rng, method, tolerance, hessian)
    return report


def _check_tensor(name, value, context, tolerance, rng):
    """The row of one tensor."""
    subject, tensor, g, dy, method, _ = context
    how = METHOD_NAMES[method]
    if np.shape(g) != value.shape:
        why = f"the gradient has shape {np.shape(g)} and the tensor {value.shape}: an axis not summed?"
        return Row(name, tensor, np.inf, how, tolerance, None, why)
    v = signs(rng, value.shape)
    error = directional_error(v, *context)
    if error <= tolerance:
        return Row(name, tensor, error, how, tolerance)
    # in halves, steps of one length might cancel; and not "> tolerance", since a NaN is wrong as well
    uneven = v * rng.uniform(0.5, 1.5, v.shape)
    entry = first_wrong_entry(lambda part: not directional_error(part, *context) <= tolerance, uneven)
    return Row(
        name, tensor, error, how, tolerance, entry, diagnose(subject, tensor, g, dy, method, tolerance)
    )


def directional_error(v, subject, tensor, g, dy, method, floor):
    """|<g, v> - derivative of <dy, y> along v|, relative to the length of g (or to the floor)."""
    numeric = float((dy * derivative(subject, tensor, v, method)).sum())
    analytic = float((g * v).sum())
    return abs(numeric - analytic) / max(_length(g), abs(numeric), floor)


def _length(g):
    return float(np.sqrt((np.asarray(g, np.float64) ** 2).sum()))


def _cotangent(y, rng):
    """A random dy for y; a Python float where y is a scalar, as a loss is."""
    if np.ndim(y) == 0:
        return float(rng.uniform(0.5, 1.5))
    return rng.standard_normal(y.shape)


def _run_elsewhere(subject):
    """A forward pass at other inputs, whose activations must not get into the first one's backward."""
    subject.run({name: 0.5 - subject.tensors[name] for name in subject.real_inputs})
