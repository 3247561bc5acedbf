"""Bugs in the GPU's kernels, which run here on a strict stand-in for CuPy."""

from planted_bugs.bug import Bug

_ADAM = "kernels/gpu/adam.py"
_ATTENTION = "kernels/gpu/attention.py"
_DROPOUT = "kernels/gpu/dropout.py"
_EMBEDDING = "kernels/gpu/embedding.py"
_LINEAR = "kernels/gpu/linear.py"
_LOSSES = "kernels/gpu/losses.py"
_NORM = "kernels/gpu/norm.py"

GPU_KERNELS = (
    Bug(
        "linear on a GPU: dweight into a transposed room, not transposed",
        "transposed",
        _LINEAR,
        "xp.matmul(drows.T, rows, out=out.T)",
        "out[...] = (rows.T @ drows)[::-1]",
    ),
    Bug("linear on a GPU: dx by dy of another row", "swapped", _LINEAR, "dx = drows @", "dx = drows[::-1] @"),
    Bug(
        "attention on a GPU: dv without dropout",
        "wrong mask",
        _ATTENTION,
        "dv = (dy.swapaxes(-1, -2) @ dropped)",
        "dv = (dy.swapaxes(-1, -2) @ weights)",
    ),
    Bug(
        "attention on a GPU: what all keys have in common stays",
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
        "residual_norm on a GPU: dropout skipped",
        "wrong mask",
        _NORM,
        "return _backward(dy, cache.norm, cache.keep)",
        "return _backward(dy, cache.norm, None)",
    ),
    Bug(
        "norm on a GPU: the mean's part stays",
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
    Bug("dropout on a GPU: nothing dropped", "wrong mask", _DROPOUT, "return drop(dy, *cache)", "return dy"),
    Bug(
        "relu_dropout on a GPU: factor left out",
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
        "embedding on a GPU: overwritten, not added",
        "= for +=",
        _EMBEDDING,
        "dtable = xp.zeros(table.shape, dy.dtype) if out is None else out",
        "dtable = xp.zeros(table.shape, dy.dtype) if out is None else out\n    dtable[...] = 0",
    ),
    Bug("Adam on a GPU: uphill", "sign", _ADAM, "values -= rate", "values += rate"),
)
