"""Bugs in the kernels for CuPy, which run here on a strict stand-in for CuPy."""

from planted_bugs.bug import Bug

_ACTIVATIONS = "kernels/gpu/activations.py"
_ADAM = "kernels/gpu/adam.py"
_ATTENTION = "kernels/gpu/attention.py"
_DROPOUT = "kernels/gpu/dropout.py"
_EMBEDDING = "kernels/gpu/embedding.py"
_LINEAR = "kernels/gpu/linear.py"
_LOSSES = "kernels/gpu/losses.py"
_NORM = "kernels/gpu/norm.py"
_RMS_NORM = "kernels/gpu/rms_norm.py"
_ROTARY = "kernels/gpu/rotary.py"

GPU_KERNELS = (
    Bug(
        "linear on a GPU: dweight not transposed for a transposed buffer",
        "transposed",
        "kernels/gpu/linear.py",
        "LazyProduct(as_rows(x), drows)",
        "LazyProduct(as_rows(x), drows[::-1])",
    ),
    Bug(
        "linear on a GPU: dx from dy of another row", "swapped", _LINEAR, "dx = drows @", "dx = drows[::-1] @"
    ),
    Bug(
        "attention on a GPU: dv without dropout",
        "wrong mask",
        _ATTENTION,
        "dv = (dy.swapaxes(-1, -2) @ dropped)",
        "dv = (dy.swapaxes(-1, -2) @ weights)",
    ),
    Bug(
        "attention on a GPU: weighted mean not subtracted",
        "dropped branch",
        _ATTENTION,
        "(ddropped * dropped - weights * common) * scale",
        "ddropped * dropped * scale",
    ),
    Bug(
        "attention on a GPU: scale left out of the scores' gradient",
        "missing scale",
        _ATTENTION,
        "(ddropped * dropped - weights * common) * scale",
        "ddropped * dropped - weights * common",
    ),
    Bug(
        "attention on a GPU: dq and dk swapped",
        "swapped",
        _ATTENTION,
        "    return dq, dk, dv",
        "    return dk, dq, dv",
    ),
    Bug(
        "layer_norm on a GPU: gain and bias swapped",
        "swapped",
        _NORM,
        "return dx, dgain, dbias",
        "return dx, dbias, dgain",
    ),
    Bug(
        "add_norm on a GPU: dropout skipped",
        "wrong mask",
        _NORM,
        "return _backward(dy, cache.norm, cache.dropout_mask)",
        "return _backward(dy, cache.norm, None)",
    ),
    Bug(
        "norm on a GPU: the mean's part not subtracted",
        "dropped branch",
        _NORM,
        "rstd * (dy * gain - mean - xhat * along)",
        "rstd * (dy * gain - xhat * along)",
    ),
    Bug(
        "norm on a GPU: rstd left out",
        "missing scale",
        _NORM,
        "rstd * (dy * gain - mean - xhat * along)",
        "(dy * gain - mean - xhat * along) + 0 * rstd",
    ),
    Bug(
        "norm on a GPU: dgain without xhat",
        "missing scale",
        _NORM,
        "dgain = gain_gradient(drows, xhat)",
        "dgain = drows.sum(0)",
    ),
    Bug(
        "rms_norm on a GPU: dgain without xhat",
        "missing scale",
        _RMS_NORM,
        "dgain = gain_gradient(drows, xhat)",
        "dgain = drows.sum(0)",
    ),
    Bug(
        "rms_norm on a GPU: the mean along xhat not divided by D",
        "missing scale",
        _RMS_NORM,
        "1 / dy.shape[-1])[:, None]",
        "1.0)[:, None]",
    ),
    Bug(
        "rms_norm on a GPU: the part along xhat not subtracted",
        "dropped branch",
        _RMS_NORM,
        "rrms * (dy * gain - xhat * along)",
        "rrms * (dy * gain - 0 * xhat * along)",
    ),
    Bug(
        "rms_norm on a GPU: gain left out of dx",
        "missing scale",
        _RMS_NORM,
        "rrms * (dy * gain - xhat * along)",
        "rrms * (dy + 0 * gain - xhat * along)",
    ),
    Bug(
        "rms_norm on a GPU: eps not divided by D",
        "missing scale",
        _RMS_NORM,
        "xp.sum((x * x + eps) * part, axis=-1)",
        "xp.sum(x * x * part + eps, axis=-1)",
    ),
    Bug(
        "rotate on a GPU: dy rotated forward again",
        "sign",
        _ROTARY,
        "rotate(dy, cos, -sin, layout)",
        "rotate(dy, cos, sin, layout)",
    ),
    Bug(
        "rotate on a GPU: dy in the other layout",
        "swapped",
        _ROTARY,
        "rotate(dy, cos, -sin, layout)",
        "rotate(dy, cos, -sin)",
    ),
    Bug(
        "rotate on a GPU: the numbers of a pair swapped",
        "swapped",
        _ROTARY,
        "second[...] = a * sin + b * cos",
        "second[...] = b * sin + a * cos",
    ),
    Bug(
        "gelu_tanh on a GPU: dx without dy",
        "missing scale",
        _ACTIVATIONS,
        "return gelu_tanh_gradient(dy, cache.x)",
        "return gelu_tanh_gradient(0 * dy + 1, cache.x)",
    ),
    Bug(
        "gelu_tanh on a GPU: the derivative of x³ without its 3",
        "wrong term",
        _ACTIVATIONS,
        "1 + 3 * 0.044715 * x * x",
        "1 + 0.044715 * x * x",
    ),
    Bug(
        "swiglu on a GPU: gate and value swapped",
        "swapped",
        _ACTIVATIONS,
        "return swiglu_gradient(dy, *cache)",
        "return swiglu_gradient(dy, *cache[::-1])",
    ),
    Bug(
        "swiglu on a GPU: the derivative of the sigmoid left out",
        "dropped branch",
        _ACTIVATIONS,
        "dy * value * (s + activated * (1 - s)), dy * activated",
        "dy * value * s, dy * activated",
    ),
    Bug(
        "swiglu on a GPU: dvalue without the sigmoid",
        "missing scale",
        _ACTIVATIONS,
        "dy * value * (s + activated * (1 - s)), dy * activated",
        "dy * value * (s + activated * (1 - s)), dy * gate",
    ),
    Bug("dropout on a GPU: nothing dropped", "wrong mask", _DROPOUT, "return drop(dy, *cache)", "return dy"),
    Bug(
        "activation_dropout on a GPU: factor left out",
        "missing scale",
        _DROPOUT,
        "return relu_drop_gradient(dy, *cache)",
        "return relu_drop_gradient(dy, cache.y, 1.0)",
    ),
    Bug(
        "cross_entropy on a GPU: dloss left out",
        "missing scale",
        _LOSSES,
        "return cache.dlogits * dloss",
        "return cache.dlogits",
    ),
    Bug(
        "cross_entropy on a GPU: smoothing left out",
        "dropped branch",
        _LOSSES,
        "difference = xp.exp(x - peak - log_total) - everywhere",
        "difference = xp.exp(x - peak - log_total)",
    ),
    Bug(
        "embedding on a GPU: gradient lost",
        "dropped branch",
        _EMBEDDING,
        "return LazyRows(ids, read_gradient(",
        "return LazyRows(ids, 0 * read_gradient(",
    ),
    Bug(
        "activation_dropout kernel: dropout skipped",
        "wrong mask",
        "kernels/dropout.py",
        "dh = dropout_backward(dy, cache.dropout_mask)",
        "dh = dy",
    ),
    Bug("Adam on a GPU: sign", "sign", _ADAM, "values -= rate", "values += rate"),
)
