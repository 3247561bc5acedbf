"""Bugs in the pure pairs: activations, softmax, dropout, linear, layer norm, embedding, similarities."""

from planted_bugs.bug import Bug

_ACTIVATIONS = "functional/activations.py"
_RELU = "return xp.where(y.real > 0, dy, 0)"
_GELU = "return dy * (phi + x * density)"
_GELU_TANH = "return dy * ((1 + t) + x * (1 - t * t) * dinner) / 2"
_SWISH = "return dy * (s + x * s * (1 - s))"

ACTIVATIONS = (
    Bug("relu: sign", "sign", _ACTIVATIONS, _RELU, "return xp.where(y.real > 0, -dy, 0)"),
    Bug("relu: passes everywhere", "wrong mask", _ACTIVATIONS, _RELU, "return xp.where(y.real >= 0, dy, 0)"),
    Bug("gelu: density left out", "dropped branch", _ACTIVATIONS, _GELU, "return dy * phi"),
    Bug("gelu: density not times x", "missing scale", _ACTIVATIONS, _GELU, "return dy * (phi + density)"),
    Bug(
        "gelu: density without √2",
        "missing scale",
        _ACTIVATIONS,
        "density = xp.exp(-x * x / 2) / math.sqrt(2 * math.pi)",
        "density = xp.exp(-x * x / 2) / math.sqrt(math.pi)",
    ),
    Bug(
        "gelu_tanh: x³ without its 3",
        "missing scale",
        _ACTIVATIONS,
        "dinner = TANH_SCALE * (1 + 3 * 0.044715 * x * x)",
        "dinner = TANH_SCALE * (1 + 0.044715 * x * x)",
    ),
    Bug(
        "gelu_tanh: 1 - t for 1 - t²",
        "wrong term",
        _ACTIVATIONS,
        _GELU_TANH,
        "return dy * ((1 + t) + x * (1 - t) * dinner) / 2",
    ),
    Bug(
        "gelu_tanh: not halved",
        "missing scale",
        _ACTIVATIONS,
        _GELU_TANH,
        "return dy * ((1 + t) + x * (1 - t * t) * dinner)",
    ),
    Bug("swish: sign", "sign", _ACTIVATIONS, _SWISH, "return dy * (s - x * s * (1 - s))"),
    Bug("swish: sigmoid's slope left out", "dropped branch", _ACTIVATIONS, _SWISH, "return dy * s"),
)

_SOFTMAX_FILE = "functional/softmax.py"
_SOFTMAX = "return y * (dy - (dy * y).sum(-1, keepdims=True))"
_LOG_SOFTMAX = "return dy - xp.exp(y) * dy.sum(-1, keepdims=True)"

SOFTMAX = (
    Bug("softmax: diagonal only", "dropped branch", _SOFTMAX_FILE, _SOFTMAX, "return y * dy"),
    Bug(
        "softmax: sign", "sign", _SOFTMAX_FILE, _SOFTMAX, "return y * (dy + (dy * y).sum(-1, keepdims=True))"
    ),
    Bug("softmax: not summed", "missing sum", _SOFTMAX_FILE, _SOFTMAX, "return y * (dy - dy * y)"),
    Bug(
        "softmax: dy summed without y",
        "missing scale",
        _SOFTMAX_FILE,
        _SOFTMAX,
        "return y * (dy - dy.sum(-1, keepdims=True))",
    ),
    Bug(
        "softmax: summed over the wrong axis",
        "missing sum",
        _SOFTMAX_FILE,
        _SOFTMAX,
        "return y * (dy - (dy * y).sum(-2, keepdims=True))",
    ),
    Bug("log_softmax: not summed", "missing sum", _SOFTMAX_FILE, _LOG_SOFTMAX, "return dy - xp.exp(y) * dy"),
    Bug("log_softmax: dy alone", "dropped branch", _SOFTMAX_FILE, _LOG_SOFTMAX, "return dy"),
    Bug(
        "log_softmax: logarithm for probability",
        "wrong term",
        _SOFTMAX_FILE,
        _LOG_SOFTMAX,
        "return dy - y * dy.sum(-1, keepdims=True)",
    ),
    Bug(  # the gradient is right, but large numbers overflow
        "log_softmax: maximum added",
        "sign",
        _SOFTMAX_FILE,
        "shifted = x - x.real.max",
        "shifted = x + x.real.max",
    ),
)

_DROPOUT = "return dy if dropout_mask is None else dy * dropout_mask"

DROPOUT = (
    Bug("dropout: all passes", "wrong mask", "functional/dropout.py", _DROPOUT, "return dy"),
    Bug(
        "dropout: without 1 / (1 - p)",
        "missing scale",
        "functional/dropout.py",
        _DROPOUT,
        "return dy if dropout_mask is None else dy * (dropout_mask > 0)",
    ),
    Bug(
        "dropout: only dropped entries pass",
        "wrong mask",
        "functional/dropout.py",
        _DROPOUT,
        "return dy if dropout_mask is None else dy * (dropout_mask == 0)",
    ),
)

_LINEAR = "functional/linear.py"

LINEAR = (
    Bug("linear: dx sign", "sign", _LINEAR, "dx = drows @ weight.T", "dx = -drows @ weight.T"),
    Bug("linear: dx transposed", "transposed", _LINEAR, "dx = drows @ weight.T", "dx = drows @ weight"),
    Bug(
        "linear: dweight transposed",
        "transposed",
        _LINEAR,
        "dweight = rows.T @ drows",
        "dweight = drows.T @ rows",
    ),
    Bug(
        "linear: dweight divided by the rows",
        "missing scale",
        _LINEAR,
        "dweight = rows.T @ drows",
        "dweight = rows.T @ drows / len(rows)",
    ),
    Bug(
        "linear: dbias averaged",
        "missing sum",
        _LINEAR,
        "drows.sum(0) if has_bias",
        "drows.mean(0) if has_bias",
    ),
    Bug(
        "linear: dbias of one row", "missing sum", _LINEAR, "drows.sum(0) if has_bias", "drows[0] if has_bias"
    ),
)

_NORM = "functional/norm.py"
_NORM_DX = "dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)"

NORM = (
    Bug("layer norm: dbias over one axis", "missing sum", _NORM, "dbias = dy.sum(rows)", "dbias = dy.sum(0)"),
    Bug("layer norm: dbias averaged", "missing sum", _NORM, "dbias = dy.sum(rows)", "dbias = dy.mean(rows)"),
    Bug(
        "layer norm: dgain without xhat",
        "missing scale",
        _NORM,
        "dgain = (dy * xhat).sum(rows)",
        "dgain = dy.sum(rows)",
    ),
    Bug(
        "layer norm: dgain over one axis",
        "missing sum",
        _NORM,
        "dgain = (dy * xhat).sum(rows)",
        "dgain = (dy * xhat).sum(0)",
    ),
    Bug("layer norm: gain left out", "missing scale", _NORM, "dxhat = dy * gain", "dxhat = dy"),
    Bug(
        "layer norm: along summed",
        "missing scale",
        _NORM,
        "along = (dxhat * xhat).mean(-1, keepdims=True)",
        "along = (dxhat * xhat).sum(-1, keepdims=True)",
    ),
    Bug(
        "layer norm: rstd left out",
        "missing scale",
        _NORM,
        _NORM_DX,
        "dx = dxhat - dxhat.mean(-1, keepdims=True) - xhat * along",
    ),
    Bug(
        "layer norm: term through the mean",
        "dropped branch",
        _NORM,
        _NORM_DX,
        "dx = rstd * (dxhat - xhat * along)",
    ),
    Bug(
        "layer norm: term through the variance",
        "dropped branch",
        _NORM,
        _NORM_DX,
        "dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True))",
    ),
    Bug(
        "layer norm: direct term",
        "dropped branch",
        _NORM,
        _NORM_DX,
        "dx = -rstd * (dxhat.mean(-1, keepdims=True) + xhat * along)",
    ),
    Bug(
        "layer norm: sign of the variance",
        "sign",
        _NORM,
        _NORM_DX,
        "dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) + xhat * along)",
    ),
)

_EMBEDDING = "functional/embedding.py"
_ADD_AT = "xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)"

EMBEDDING = (
    Bug(
        "embedding: scale left out",
        "missing scale",
        _EMBEDDING,
        _ADD_AT,
        "xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]))",
    ),
    Bug(
        "embedding: repeated tokens overwrite",
        "= for +=",
        _EMBEDDING,
        _ADD_AT,
        "dtable[ids.reshape(-1)] = dy.reshape(-1, dy.shape[-1]) * scale",
    ),
    Bug(
        "embedding: repeated tokens counted once",
        "missing sum",
        _EMBEDDING,
        _ADD_AT,
        "dtable[ids.reshape(-1)] += dy.reshape(-1, dy.shape[-1]) * scale",
    ),
    Bug(
        "embedding: padding gets a gradient",
        "wrong mask",
        _EMBEDDING,
        "dy = xp.where((ids == zero_id)[..., None], 0, dy)",
        "dy = xp.where((ids == zero_id)[..., None], dy, dy)",
    ),
    Bug(
        "embedding: only padding gets a gradient",
        "wrong mask",
        _EMBEDDING,
        "dy = xp.where((ids == zero_id)[..., None], 0, dy)",
        "dy = xp.where((ids != zero_id)[..., None], 0, dy)",
    ),
)

_SIMILARITY = "functional/similarity.py"

SIMILARITY = (
    Bug(
        "dot similarity: dk transposed",
        "transposed",
        _SIMILARITY,
        "dk = dscores.swapaxes(-1, -2) @ q",
        "dk = (q.swapaxes(-1, -2) @ dscores).reshape(k.shape)",
    ),
    Bug(
        "general similarity: dk from the queries before the projection",
        "wrong term",
        _SIMILARITY,
        "dk = dscores.swapaxes(-1, -2) @ projected",
        "dk = dscores.swapaxes(-1, -2) @ q",
    ),
    Bug(
        "general similarity: dweight of one sentence",
        "missing sum",
        _SIMILARITY,
        "dweight = _rows(q).T @ _rows(dprojected)",
        "dweight = q[0].T @ dprojected[0]",
    ),
    Bug(
        "concat similarity: sums swapped",
        "swapped",
        _SIMILARITY,
        "dhalves = [dof_query.reshape(-1) @ _rows(q), dof_key.reshape(-1) @ _rows(k)]",
        "dhalves = [dof_key.reshape(-1) @ _rows(k), dof_query.reshape(-1) @ _rows(q)]",
    ),
    Bug(
        "concat similarity: averaged over the queries",
        "missing sum",
        _SIMILARITY,
        "dof_query, dof_key = dscores.sum(-1), dscores.sum(-2)",
        "dof_query, dof_key = dscores.sum(-1), dscores.mean(-2)",
    ),
    Bug(
        "perceptron similarity: tanh's slope without its square",
        "wrong term",
        _SIMILARITY,
        "dtotal = dhidden * (1 - hidden * hidden)",
        "dtotal = dhidden * (1 - hidden)",
    ),
    Bug(
        "perceptron similarity: dv of the slope",
        "wrong term",
        _SIMILARITY,
        "dv = dscores.reshape(-1) @ _rows(hidden)",
        "dv = dscores.reshape(-1) @ _rows(1 - hidden * hidden)",
    ),
)

PAIRS = (*ACTIVATIONS, *SOFTMAX, *DROPOUT, *LINEAR, *NORM, *EMBEDDING, *SIMILARITY)
