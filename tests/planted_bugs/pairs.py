"""Bugs in the pure pairs: activations, softmax, dropout, linear, layer norm, embedding, similarities."""

BUGS = {
    "functional/activations.py": {
        "return xp.where(y.real > 0, dy, 0)": [
            ("relu: sign", "sign", "return xp.where(y.real > 0, -dy, 0)"),
            ("relu: passes everywhere", "wrong mask", "return xp.where(y.real >= 0, dy, 0)"),
        ],
        "return dy * (phi + x * density)": [
            ("gelu: density left out", "dropped branch", "return dy * phi"),
            ("gelu: density not times x", "missing scale", "return dy * (phi + density)"),
        ],
        "density = xp.exp(-x * x / 2) / math.sqrt(2 * math.pi)": [
            ("gelu: density without √2", "missing scale", "2 * math.pi → math.pi"),
        ],
        "inner_slope = TANH_SCALE * (1 + 3 * 0.044715 * x * x)": [
            (
                "gelu_tanh: x³ without its 3",
                "missing scale",
                "inner_slope = TANH_SCALE * (1 + 0.044715 * x * x)",
            ),
        ],
        "return dy * ((1 + t) + x * (1 - t * t) * inner_slope) / 2": [
            (
                "gelu_tanh: 1 - t for 1 - t²",
                "wrong term",
                "return dy * ((1 + t) + x * (1 - t) * inner_slope) / 2",
            ),
            (
                "gelu_tanh: not halved",
                "missing scale",
                "return dy * ((1 + t) + x * (1 - t * t) * inner_slope)",
            ),
        ],
        "return dy * (s + x * s * (1 - s))": [
            ("swish: sign", "sign", "return dy * (s - x * s * (1 - s))"),
            ("swish: sigmoid's slope left out", "dropped branch", "return dy * s"),
        ],
    },
    "functional/softmax.py": {
        "return y * (dy - (dy * y).sum(-1, keepdims=True))": [
            ("softmax: diagonal only", "dropped branch", "return y * dy"),
            ("softmax: sign", "sign", "return y * (dy + (dy * y).sum(-1, keepdims=True))"),
            ("softmax: not summed", "missing sum", "return y * (dy - dy * y)"),
            ("softmax: dy summed without y", "missing scale", "return y * (dy - dy.sum(-1, keepdims=True))"),
            ("softmax: summed over the wrong axis", "missing sum", "y).sum(-1 → y).sum(-2"),
        ],
        "return dy - xp.exp(y) * dy.sum(-1, keepdims=True)": [
            ("log_softmax: not summed", "missing sum", "return dy - xp.exp(y) * dy"),
            ("log_softmax: dy alone", "dropped branch", "return dy"),
            ("log_softmax: logarithm for probability", "wrong term", "xp.exp(y) → y"),
        ],
        "shifted = x - x.real.max": [
            # the gradient is right, but large numbers overflow
            ("log_softmax: maximum added", "sign", "shifted = x + x.real.max"),
        ],
    },
    "functional/dropout.py": {
        "return dy if dropout_mask is None else dy * dropout_mask": [
            ("dropout: all passes", "wrong mask", "return dy"),
            ("dropout: without 1 / (1 - p)", "missing scale", "dy * dropout_mask → dy * (dropout_mask > 0)"),
            ("dropout: only dropped entries pass", "wrong mask", "* dropout_mask → * (dropout_mask == 0)"),
        ],
    },
    "functional/linear.py": {
        "dx = drows @ weight.T": [
            ("linear: dx sign", "sign", "dx = -drows @ weight.T"),
            ("linear: dx transposed", "transposed", "dx = drows @ weight"),
        ],
        "dweight = rows.T @ drows": [
            ("linear: dweight transposed", "transposed", "dweight = drows.T @ rows"),
            ("linear: dweight divided by the rows", "missing scale", "dweight = rows.T @ drows / len(rows)"),
        ],
        "drows.sum(0) if has_bias": [
            ("linear: dbias averaged", "missing sum", "drows.mean(0) if has_bias"),
            ("linear: dbias of one row", "missing sum", "drows[0] if has_bias"),
        ],
    },
    "functional/norm.py": {
        "dbias = dy.sum(rows)": [
            ("layer norm: dbias over one axis", "missing sum", "dbias = dy.sum(0)"),
            ("layer norm: dbias averaged", "missing sum", "dbias = dy.mean(rows)"),
        ],
        "dgain = (dy * xhat).sum(rows)": [
            ("layer norm: dgain without xhat", "missing scale", "dgain = dy.sum(rows)"),
            ("layer norm: dgain over one axis", "missing sum", "dgain = (dy * xhat).sum(0)"),
        ],
        "dxhat = dy * gain": [("layer norm: gain left out", "missing scale", "dxhat = dy")],
        "along = (dxhat * xhat).mean(-1, keepdims=True)": [
            ("layer norm: along summed", "missing scale", "along = (dxhat * xhat).sum(-1, keepdims=True)"),
        ],
        "dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)": [
            (
                "layer norm: rstd left out",
                "missing scale",
                "dx = dxhat - dxhat.mean(-1, keepdims=True) - xhat * along",
            ),
            ("layer norm: term through the mean", "dropped branch", "dx = rstd * (dxhat - xhat * along)"),
            ("layer norm: term through the variance", "dropped branch", "True) - xhat * along → True)"),
            (
                "layer norm: direct term",
                "dropped branch",
                "dx = -rstd * (dxhat.mean(-1, keepdims=True) + xhat * along)",
            ),
            ("layer norm: sign of the variance", "sign", "- xhat → + xhat"),
        ],
    },
    "functional/embedding.py": {
        "xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)": [
            ("embedding: scale left out", "missing scale", "(-1, dy.shape[-1]) * scale → (-1, dy.shape[-1])"),
            (
                "embedding: repeated tokens overwrite",
                "= for +=",
                "dtable[ids.reshape(-1)] = dy.reshape(-1, dy.shape[-1]) * scale",
            ),
            (
                "embedding: repeated tokens counted once",
                "missing sum",
                "dtable[ids.reshape(-1)] += dy.reshape(-1, dy.shape[-1]) * scale",
            ),
        ],
        "dy = xp.where((ids == zero_id)[..., None], 0, dy)": [
            ("embedding: padding gets a gradient", "wrong mask", "0, dy → dy, dy"),
            ("embedding: only padding gets a gradient", "wrong mask", "ids == zero_id → ids != zero_id"),
        ],
    },
    "functional/similarity.py": {
        "dk = dscores.swapaxes(-1, -2) @ q": [
            (
                "dot similarity: dk transposed",
                "transposed",
                "dk = (q.swapaxes(-1, -2) @ dscores).reshape(k.shape)",
            ),
        ],
        "dk = dscores.swapaxes(-1, -2) @ projected": [
            ("general similarity: dk from the queries before the projection", "wrong term", "projected → q"),
        ],
        "dweight = _rows(q).T @ _rows(dprojected)": [
            (
                "general similarity: dweight of one sentence",
                "missing sum",
                "dweight = q[0].T @ dprojected[0]",
            ),
        ],
        "dhalves = [dof_query.reshape(-1) @ _rows(q), dof_key.reshape(-1) @ _rows(k)]": [
            (
                "concat similarity: sums swapped",
                "swapped",
                "dhalves = [dof_key.reshape(-1) @ _rows(k), dof_query.reshape(-1) @ _rows(q)]",
            ),
        ],
        "dof_query, dof_key = dscores.sum(-1), dscores.sum(-2)": [
            ("concat similarity: averaged over the queries", "missing sum", "sum(-2) → mean(-2)"),
        ],
        "dtotal = dhidden * (1 - hidden * hidden)": [
            (
                "perceptron similarity: tanh's slope without its square",
                "wrong term",
                "hidden * hidden → hidden",
            ),
        ],
        "dv = dscores.reshape(-1) @ _rows(hidden)": [
            ("perceptron similarity: dv of the slope", "wrong term", "hidden → 1 - hidden * hidden"),
        ],
    },
}
