"""Wrong backward functions of the pure pairs."""

from wrong_solutions.wrong import Wrong

SUM = "(dy - (dy * y).sum(-1, keepdims=True))"
SOFTMAX = (
    Wrong("softmax-backward", SUM, "dy", "sum over that axis is missing"),
    Wrong("softmax-backward", SUM, "(dy + (dy * y).sum(-1, keepdims=True))", "wrong sign"),
    Wrong("softmax-backward", SUM, "(dy - 2 * (dy * y).sum(-1, keepdims=True))", "twice"),
    Wrong("softmax-backward", SUM, "(dy - (dy * y).sum())", "one number for all rows|wrong axis"),
    Wrong("softmax-backward", SUM, "(dy - (dy * y).sum(0, keepdims=True))", "wrong axis|another axis|axis 0"),
    Wrong("softmax-backward", SUM, "(dy - (dy * y).mean(-1, keepdims=True))", "averaged"),
    Wrong("softmax-backward", "return y * (", "return -y * (", "sign is wrong"),
    Wrong("softmax-backward", "return y * (", "return 2 * y * (", "counted twice"),
    Wrong("softmax-backward", "return y * (", "return (", "factor y is left out"),
    Wrong("softmax-backward", "return y * (", "return y / len(y) * (", "averaged"),
    Wrong("softmax-backward", "    y = cache", "    y = cache\n    dy *= y\n    dy /= y", "input modified"),
    Wrong(
        "softmax-backward", "    y = cache", "    y = cache\n    y *= 2\n    y /= 4", "input modified|cache"
    ),
    Wrong("softmax-backward", "return y * (", "return array_module(y).ones(1) * y * (", "dtype"),
    Wrong("softmax-backward", "return y * (", "return (y / 0) * (", "NaN"),
    Wrong("softmax-backward", "", "def softmax_backward(dy, cache):\n    return dy", "dy itself"),
    Wrong("softmax-backward", "", "def softmax_backward(dy, cache):\n    return 0 * dy", "every entry is 0"),
    Wrong(
        "softmax-backward",
        "",
        "def softmax_backward(dy, y):\n    return (y * (dy - (dy * y).sum(-1, keepdims=True))).sum(0)",
        "shape.*axis 0|axis 0.*must not",
    ),
)
LINEAR = (
    Wrong("swish-backward", "(s + x * s * (1 - s))", "s", "term.*(missing|left out)"),
    Wrong("swish-backward", "(s + x * s * (1 - s))", "(s + x * (1 - s))", "factor.* s .*left out"),
    Wrong("swish-backward", "(s + x * s * (1 - s))", "(s - x * s * (1 - s))", "sign"),
    Wrong("linear-backward", "drows.sum(0) if", "drows if", "axis 0.*not summed"),
    Wrong("linear-backward", "drows.sum(0) if", "drows.mean(0) if", "averaged"),
    Wrong("linear-backward", "drows.sum(0) if", "drows.sum() if", "over axis 0, but"),
    Wrong("linear-backward", "rows.T @ drows", "drows.T @ rows", "transposed"),
    Wrong("linear-backward", "rows.T @ drows", "rows.T @ drows / len(rows)", "averaged"),
    Wrong("linear-backward", "drows @ weight.T", "-drows @ weight.T", "sign is wrong"),
    Wrong("linear-backward", "dx.reshape(x.shape)", "dx", "another shape"),
    Wrong("derivative", "np.imag(y) / h", "np.imag(y)", "times the correct one|divisor h"),
    Wrong("embedding-backward", "* scale)", ")", "factor scale|1/1.7|0.588"),
    Wrong(
        "embedding-backward",
        "xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)",
        "dtable[ids] = dy * scale",
        "overwr",
    ),
    Wrong(
        "embedding-backward",
        "xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)",
        "dtable[ids] += dy * scale",
        "overwr",
    ),
    Wrong("embedding-backward", "zero_id is not None", "False", "should be 0"),
    Wrong("embedding-backward", "dy.dtype)", "xp.float64)", "dtype"),
    Wrong("dot-similarity-backward", "dscores @ k ", "dscores @ k / 5**0.5 ", "√5"),
    Wrong(
        "dot-similarity-backward",
        "return sum_to_shape(dq, q.shape), sum_to_shape(dk, k.shape)",
        "return dk, dq",
        "shape",
    ),
    Wrong("general-similarity-backward", "dprojected @ weight.T", "dscores @ k", "shape"),
    Wrong(
        "general-similarity-backward",
        "_rows(q).T @ _rows(dprojected)",
        "_rows(dprojected).T @ _rows(q)",
        "transposed",
    ),
    Wrong(
        "general-similarity-backward",
        "_rows(q).T @ _rows(dprojected)",
        "q.swapaxes(-1, -2) @ dprojected",
        "not summed",
    ),
    Wrong("mask-scores-backward", "xp.where(mask, dscores, 0)", "dscores", "should be 0"),
    Wrong(
        "mask-scores-backward",
        "xp.where(mask, dscores, 0)",
        "xp.where(mask, 0, dscores)",
        "exchanged",
    ),
    Wrong("dropout-backward", "dy * dropout_mask", "dy", "factor (the cache|dropout_mask)"),
    Wrong(
        "dropout-backward",
        "dy * dropout_mask",
        "dy * (dropout_mask > 0)",
        r"times the correct one|factor 0\.6",
    ),
    Wrong("relu-backward", "xp.where(y.real > 0, dy, 0)", "dy", "should be 0"),
    Wrong("relu-backward", "xp.where(y.real > 0, dy, 0)", "xp.where(y > 0, y, 0)", "dy|left out"),
    Wrong("gelu-backward", "(phi + x * density)", "phi", "term"),
    Wrong("gelu-backward", "(phi + x * density)", "(phi + density)", "factor x"),
    Wrong("gelu-backward", "-x * x / 2", "-x * x", "divisor 2"),
    Wrong("gelu-backward", "math.sqrt(2 * math.pi)", "math.sqrt(math.pi)", "factor 2"),
)
NORM = (
    Wrong("layer-norm-backward", " - dxhat.mean(-1, keepdims=True)", "", "mean or the sum.* missing"),
    Wrong("layer-norm-backward", " - xhat * along", "", "variance.*missing"),
    Wrong(
        "layer-norm-backward",
        " - dxhat.mean(-1, keepdims=True) - xhat * along",
        "",
        "mean and through the variance",
    ),
    Wrong("layer-norm-backward", "rstd * (", "(", "rstd"),
    Wrong("layer-norm-backward", "dxhat = dy * gain", "dxhat = dy", "gain.*left out"),
    Wrong(
        "layer-norm-backward",
        "(dy * xhat).sum(rows)",
        "dy.sum(rows)",
        "gradient of dbias|xhat.*left out|dbias",
    ),
    Wrong("layer-norm-backward", "(dy * xhat).sum(rows)", "(dy * xhat).mean(rows)", "averaged"),
    Wrong("layer-norm-backward", "(dy * xhat).sum(rows)", "dy * xhat", "not summed"),
    Wrong("layer-norm-backward", "dy.sum(rows)", "dy.sum(0)", "not summed"),
    Wrong("layer-norm-backward", "dy.sum(rows)", "dy.sum(rows, keepdims=True)", "shape"),
    Wrong("layer-norm-backward", "return dx, dgain, dbias", "return dx, dbias, dgain", "are the two swapped"),
    Wrong(
        "layer-norm-backward",
        "dxhat.mean(-1, keepdims=True)",
        "dxhat.sum(-1, keepdims=True)",
        "mean or the sum|summed",
    ),
    Wrong("layer-norm-backward", "return dx, dgain, dbias", "return dx", "1 gradient .*must return 3"),
)
ATTENTION = (
    Wrong("attention-backward", "dscores = dscores * scale", "pass", "√5"),
    Wrong("attention-backward", "dscores = dscores * scale", "dscores = dscores * scale * scale", "√5"),
    Wrong(
        "attention-backward", "softmax_backward(dweights, weights)", "dweights", "softmax_backward is skipped"
    ),
    Wrong(
        "attention-backward",
        "softmax_backward(dweights, weights)",
        "dweights * weights",
        "sum|softmax",
    ),
    Wrong("attention-backward", "return dq, dk, dv", "return dv, dk, dq", "shape|are the two swapped"),
    Wrong(
        "attention-backward",
        "dv = dropped.swapaxes(-1, -2) @ dy",
        "dv = -dropped.swapaxes(-1, -2) @ dy",
        "sign",
    ),
    Wrong(
        "attention-backward",
        "dk = dscores.swapaxes(-1, -2) @ q",
        "dk = dscores.swapaxes(-1, -2) @ q / scale",
        "√5",
    ),
    Wrong(
        "attention-backward",
        "dk = dscores.swapaxes(-1, -2) @ q",
        "dk = dscores.swapaxes(-1, -2) @ (q * scale)",
        "√5",
    ),
    Wrong(
        "log-softmax-backward",
        " - xp.exp(y) * dy.sum(-1, keepdims=True)",
        "",
        "sum over that axis is missing",
    ),
    Wrong("log-softmax-backward", "xp.exp(y) * dy.sum(", "xp.exp(y) * dy.mean(", "averaged"),
    Wrong("log-softmax-backward", "xp.exp(y)", "y", "exp is skipped"),
    Wrong(
        "log-softmax-backward", "dy.sum(-1, keepdims=True)", "dy.sum()", "one number for all rows|wrong axis"
    ),
    Wrong("log-softmax-backward", "dy - xp", "dy + xp", "sign"),
    Wrong(
        "cross-entropy-backward",
        "drows[xp.arange(len(targets)), targets] -= 1 - smoothing",
        "pass",
        "targets",
    ),
    Wrong("cross-entropy-backward", "(dloss / tokens)", "dloss", r"tokens|12 \(all"),
    Wrong("cross-entropy-backward", "dloss / tokens)", "dloss / len(targets))", "one count where|not 0"),
    Wrong("cross-entropy-backward", "real[:, None] * ", "", "should be 0"),
    Wrong("cross-entropy-backward", " - smoothing / shape[-1]", "", "smoothing"),
    Wrong("cross-entropy-backward", "-= 1 - smoothing", "-= 1", "smoothing|one in each row"),
    Wrong("cross-entropy-backward", "(dloss / tokens)", "(-dloss / tokens)", "sign is wrong"),
    Wrong("cross-entropy-backward", "drows.reshape(shape)", "drows", "another shape"),
    Wrong("cross-entropy-backward", "xp.exp(log_probs)", "log_probs", "exp is skipped"),
    Wrong("kl-backward", "-q * (", "q * (", "sign is wrong"),
    Wrong("kl-backward", "(q.size // q.shape[-1])", "q.size", "1/7"),
    Wrong(
        "kl-backward", "log_softmax_backward(dlog_p, log_p)", "dlog_p", "log_softmax_backward is skipped|sum"
    ),
)
PAIRS = (*SOFTMAX, *LINEAR, *NORM, *ATTENTION)
