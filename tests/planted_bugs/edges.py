"""Bugs at the edges: empty sequences, sizes that are no whole numbers, a wrong dy, and sums in float16."""

from planted_bugs.bug import Place

BUGS = {
    "functional/softmax.py": {"if x.shape[-1] == 0:": {"softmax: rows without entries": "if False:"}},
    "functional/attention.py": {"if k.shape[-2] == 0:": {"attention: no keys": "if False:"}},
    "nn/context.py": {
        'given is not None and getattr(given, "ndim", None) == 3': {
            "masks: three axes for those of the heads": "False",
            "masks: three axes of the queries": "name == 'mask' and given is not None and given.ndim == 3",
        }
    },
    "nn/recurrent.py": {"if x.shape[1] == 0:": {"Recurrent: no positions": "if False:"}},
    "validation.py": {
        Place("not isinstance(value, Integral) or isinstance(value, bool) or value < 1", 1, 1): {
            "sizes: 2.0 heads": "Integral → Real",
            "sizes: True heads": "not isinstance(value, Integral) or value < 1",
            "sizes: no heads": "value < 1 → value < 0",
        }
    },
    "nn/checks.py": {
        'dy.shape == shape and dy.dtype.kind in "fc"': {
            "dy: integers of the right shape": "dy.shape == shape"
        },
        'check_floats(dy, shape, f"{layer}.backward", "dy")': {
            "dy: not checked": "pass",
            "dy: any shape": "shape → (...,)",
        },
        'x.dtype.kind in "fc" and _fits(x.shape, shape)': {
            "dy: integers of any shape that fits": "_fits(x.shape, shape)"
        },
    },
    "functional/linear.py": {
        "@sums_in_float32\ndef linear_backward(": {
            "linear: bias gradient in float16": "def linear_backward("
        },
        "@sums_in_float32\ndef _summed(": {"broadcast arrays: gradient in float16": "def _summed("},
    },
    "functional/embedding.py": {
        "@sums_in_float32\ndef embedding_backward(": {
            "embedding: gradient in float16": "def embedding_backward("
        }
    },
    "functional/heads.py": {
        "@sums_in_float32\ndef repeat_heads_backward(": {
            "shared heads: gradient in float16": "def repeat_heads_backward("
        }
    },
    "functional/hard.py": {
        "@sums_in_float32\ndef one_hot_sample(": {"sampling: intervals in float16": "def one_hot_sample("}
    },
    "functional/losses.py": {
        "@sums_in_float32\ndef cross_entropy(": {
            "cross-entropy: tokens counted in float16": "def cross_entropy("
        }
    },
    "functional/norm.py": {
        "@sums_in_float32\ndef layer_norm(": {"layer norm: squares in float16": "def layer_norm("}
    },
    "functional/latent.py": {
        'w.sum(-1, keepdims=True) if measure == "sum" else (w * w).sum(-1, keepdims=True)': {
            "unit weights: sum over another axis": "w.sum(-1 → w.sum(1",
            "unit weights: squares over another axis": "(w * w).sum(-1 → (w * w).sum(1",
        },
        "(dy * y).sum(-1, keepdims=True)": {"unit weights: gradient over another axis": "-1 → 1"},
    },
    "nn/attention/hard.py": {
        "baseline=expected, **settings)": {"baselines: none": "expected → 0.0"},
        "baseline=0.0, **settings)": {"baselines: 1 for none": "0.0 → 1.0"},
    },
    "nn/show.py": {
        "def show(cache: Any, *, numbers: int = 3)": {"show: four numbers": "3 → 4"},
        "print(as_text(cache, numbers=numbers))": {"show: always three numbers": "print(as_text(cache))"},
    },
}
