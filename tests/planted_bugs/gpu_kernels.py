"""Bugs in the kernels for CuPy, which run here on a strict stand-in for CuPy."""

BUGS = {
    "kernels/gpu/linear.py": {
        "LazyProduct(rows, drows)": {
            "linear on a GPU: dweight not transposed for a transposed buffer": "drows → drows[::-1]"
        },
        "dx = drows @": {"linear on a GPU: dx from dy of another row": "dx = drows[::-1] @"},
    },
    "kernels/gpu/sums.py": {
        ")[:n] @ x": {"column sums on a GPU: the last row left out": ")[: n - 1] @ x[:-1]"}
    },
    "kernels/gpu/attention.py": {
        "dv = (dy.swapaxes(-1, -2) @ dropped)": {
            "attention on a GPU: dv without dropout": "dv = (dy.swapaxes(-1, -2) @ weights)"
        },
        "(ddropped * dropped - weights * common) * scale": {
            "attention on a GPU: weighted mean not subtracted": "ddropped * dropped * scale",
            "attention on a GPU: scale left out of the scores' gradient": (
                "ddropped * dropped - weights * common"
            ),
        },
        "    return dq, dk, dv": {"attention on a GPU: dq and dk swapped": "dq, dk → dk, dq"},
    },
    "kernels/gpu/norm.py": {
        "return dx, dgain, dbias": {"layer_norm on a GPU: gain and bias swapped": "return dx, dbias, dgain"},
        "return _backward(dy, cache.norm, cache.dropout_mask)": {
            "add_norm on a GPU: dropout skipped": "return _backward(dy, cache.norm, None)"
        },
        "rstd * (dy * gain - mean - xhat * along)": {
            "norm on a GPU: the mean's part not subtracted": "mean - xhat → xhat",
            "norm on a GPU: rstd left out": "(dy * gain - mean - xhat * along) + 0 * rstd",
        },
        "dgain = column_sums(drows * xhat)": {
            "norm on a GPU: dgain without xhat": "dgain = column_sums(drows)"
        },
    },
    "kernels/gpu/rms_norm.py": {
        "dgain = column_sums(drows * xhat)": {
            "rms_norm on a GPU: dgain without xhat": "dgain = column_sums(drows)"
        },
        "1 / dy.shape[-1])[:, None]": {
            "rms_norm on a GPU: the mean along xhat not divided by D": "1.0)[:, None]"
        },
        "rrms * (dy * gain - xhat * along)": {
            "rms_norm on a GPU: the part along xhat not subtracted": "- xhat → - 0 * xhat",
            "rms_norm on a GPU: gain left out of dx": "dy * gain → dy + 0 * gain",
        },
        "xp.sum((x * x + eps) * part, axis=-1)": {
            "rms_norm on a GPU: eps not divided by D": "xp.sum(x * x * part + eps, axis=-1)"
        },
    },
    "kernels/gpu/rotary.py": {
        "rotate(dy, cos, -sin, layout)": {
            "rotate on a GPU: dy rotated forward again": "rotate(dy, cos, sin, layout)",
            "rotate on a GPU: dy in the other layout": "rotate(dy, cos, -sin)",
        },
        "second[...] = a * sin + b * cos": {
            "rotate on a GPU: the numbers of a pair swapped": "second[...] = b * sin + a * cos"
        },
    },
    "kernels/gpu/activations.py": {
        "dy * (_normal_cdf(xp, x) + x * density)": {
            "gelu on a GPU: density left out": "dy * _normal_cdf(xp, x)"
        },
        "return gelu_gradient(dy, cache.x)": {
            "gelu on a GPU: dx without dy": "dy, cache.x → 0 * dy + 1, cache.x"
        },
        "return gelu_tanh_gradient(dy, cache.x)": {
            "gelu_tanh on a GPU: dx without dy": "dy, cache.x → 0 * dy + 1, cache.x"
        },
        "1 + 3 * 0.044715 * x * x": {
            "gelu_tanh on a GPU: the derivative of x³ without its 3": "1 + 0.044715 * x * x"
        },
        "return swiglu_gradient(dy, *cache)": {
            "swiglu on a GPU: gate and value swapped": "cache → cache[::-1]"
        },
        "dy * value * (s + activated * (1 - s)), dy * activated": {
            "swiglu on a GPU: the derivative of the sigmoid left out": "(s + activated * (1 - s)) → s",
            "swiglu on a GPU: dvalue without the sigmoid": "dy * activated → dy * gate",
        },
    },
    "kernels/gpu/dropout.py": {
        "return drop(dy, *cache)": {"dropout on a GPU: nothing dropped": "return dy"},
        "return relu_drop_gradient(dy, *cache)": {
            "activation_dropout on a GPU: factor left out": "dy, *cache → dy, cache.y, 1.0"
        },
    },
    "kernels/gpu/losses.py": {
        "return cache.dlogits * dloss": {"cross_entropy on a GPU: dloss left out": "return cache.dlogits"},
        "difference = xp.exp(x - peak - log_total) - everywhere": {
            "cross_entropy on a GPU: smoothing left out": ") - everywhere → )"
        },
    },
    "kernels/gpu/embedding.py": {
        "return LazyRows(ids, read_gradient(": {
            "embedding on a GPU: gradient lost": "read_gradient → 0 * read_gradient"
        }
    },
    "kernels/dropout.py": {
        "dh = dropout_backward(dy, cache.dropout_mask)": {
            "activation_dropout kernel: dropout skipped": "dh = dy"
        }
    },
    "kernels/gpu/adam.py": {"values -= rate": {"Adam on a GPU: sign": "values += rate"}},
}
