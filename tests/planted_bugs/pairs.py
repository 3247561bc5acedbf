"""Bugs in the pure pairs: activations, softmax, dropout, linear, layer norm, embedding, similarities."""

from planted_bugs.bug import Place

BUGS = {
    "functional/activations.py": {
        "return xp.where(y.real > 0, dy, 0)": {
            "relu: sign": "return xp.where(y.real > 0, -dy, 0)",
            "relu: passes everywhere": "return xp.where(y.real >= 0, dy, 0)",
        },
        "return dy * (1 - y * y)": {"tanh: y not squared": "return dy * (1 - y)"},
        "return dy * (phi + x * density)": {
            "gelu: density left out": "return dy * phi",
            "gelu: density not times x": "return dy * (phi + density)",
        },
        "density = xp.exp(-x * x / 2) / math.sqrt(2 * math.pi)": {
            "gelu: density without √2": "2 * math.pi → math.pi"
        },
        "inner_slope = TANH_SCALE * (1 + 3 * 0.044715 * x * x)": {
            "gelu_tanh: x³ without its 3": "inner_slope = TANH_SCALE * (1 + 0.044715 * x * x)"
        },
        "return dy * ((1 + t) + x * (1 - t * t) * inner_slope) / 2": {
            "gelu_tanh: 1 - t for 1 - t²": "return dy * ((1 + t) + x * (1 - t) * inner_slope) / 2",
            "gelu_tanh: not halved": "return dy * ((1 + t) + x * (1 - t * t) * inner_slope)",
        },
        "return dy * (s + x * s * (1 - s))": {
            "swish: sign": "return dy * (s - x * s * (1 - s))",
            "swish: sigmoid's slope left out": "return dy * s",
        },
    },
    "functional/softmax.py": {
        "return y * (dy - (dy * y).sum(-1, keepdims=True))": {
            "softmax: diagonal only": "return y * dy",
            "softmax: sign": "return y * (dy + (dy * y).sum(-1, keepdims=True))",
            "softmax: not summed": "return y * (dy - dy * y)",
            "softmax: dy summed without y": "return y * (dy - dy.sum(-1, keepdims=True))",
            "softmax: summed over the wrong axis": "y).sum(-1 → y).sum(-2",
        },
        "return dy - xp.exp(y) * dy.sum(-1, keepdims=True)": {
            "log_softmax: not summed": "return dy - xp.exp(y) * dy",
            "log_softmax: dy alone": "return dy",
            "log_softmax: logarithm for probability": "xp.exp(y) → y",
        },
        "shifted = x - x.real.max": {
            # the gradient is right, but large numbers overflow
            "log_softmax: maximum added": "shifted = x + x.real.max"
        },
    },
    "functional/linear_attention.py": {
        "dks.append(_t(dscores) @ q + v @ _t(dstate))": {
            "linear attention: dk without the memory": "dks.append(_t(dscores) @ q)",
            "linear attention: dk of the scores left out": "dks.append(v @ _t(dstate))",
        },
        "dqs.append(dy_c @ _t(state) + dscores @ k)": {
            "linear attention: dq without the memory": "dqs.append(dscores @ k)"
        },
        "dscores = _lower(dy_c @ _t(v))": {
            "linear attention: dscores of later tokens": "dscores = dy_c @ _t(v)"
        },
        "du = _t(_lower(q @ _t(k))) @ dy_c + k @ dstate": {
            "delta rule: du without the memory": "du = _t(_lower(q @ _t(k))) @ dy_c"
        },
        "dk = dk + until * (u @ _t(dstate))": {
            "gated delta rule: decay until the end left out": "until * → "
        },
        "dstate = decay.whole * dstate + _t(since * q) @ dy_c": {
            "gated delta rule: memory not decayed back": "decay.whole * → ",
        },
        "dsince = dsince - (dv * (k @ state)).sum(-1)": {
            "gated delta rule: decay of what is read left out": "pass"
        },
        "dbetween = dbetween + beta * da * (k @ _t(k))": {
            "gated delta rule: decay inside the system left out": "pass"
        },
        "dsince[..., -1] += dwhole": {"gated delta rule: decay of the whole memory left out": "pass"},
        "dtotal[..., -1] += duntil.sum(-1)": {"gated delta rule: the last sum left out": "pass"},
        "cumsum(dtotal[..., ::-1], -1)[..., ::-1]": {
            "gated delta rule: sums of the tokens before": "cumsum(dtotal, -1)"
        },
        "between = xp.exp(_lower(total - _t(total)))": {
            "gated delta rule: overflow above the diagonal": "_lower(total - _t(total)) → total - _t(total)"
        },
        "dw = _t(_inverse(beta, k)) @ du": {
            "delta rule: system not transposed": "dw = _inverse(beta, k) @ du",
            "delta rule: system left out": "dw = du",
        },
        "dstate = dstate - _t(k) @ dv": {"delta rule: memory that is read left out": "pass"},
        Place("da = -_lower(dw @ _t(u), -1)", nth=1, of=2): {
            "delta rule: dA with its diagonal": "da = -_lower(dw @ _t(u))",
            "delta rule: dA sign": "da = _lower(dw @ _t(u), -1)",
        },
        Place("dk = dk + (dproducts + _t(dproducts)) @ k", nth=1, of=2): {
            "delta rule: one side of k kᵀ": "dk = dk + dproducts @ k"
        },
        "(dw * difference).sum(-1) + (da * (k @ _t(k))).sum(-1)": {
            "delta rule: dbeta without A": "(dw * difference).sum(-1)"
        },
        "_lower(beta * (k @ _t(k)) * between, -1)": {
            "delta rule: a token reads itself": "between, -1 → between"
        },
        "inverse = inverse + inverse @ power": {"delta rule: powers of A left out": "pass"},
    },
    "functional/dropout.py": {
        "return dy if dropout_mask is None else dy * dropout_mask": {
            "dropout: all passes": "return dy",
            "dropout: without 1 / (1 - p)": "dy * dropout_mask → dy * (dropout_mask > 0)",
            "dropout: only dropped entries pass": "* dropout_mask → * (dropout_mask == 0)",
        }
    },
    "functional/linear.py": {
        "dx = drows @ weight.T": {
            "linear: dx sign": "dx = -drows @ weight.T",
            "linear: dx transposed": "dx = drows @ weight",
        },
        "dweight = rows.T @ drows": {
            "linear: dweight transposed": "dweight = drows.T @ rows",
            "linear: dweight divided by the rows": "dweight = rows.T @ drows / len(rows)",
        },
        "drows.sum(0) if has_bias": {
            "linear: dbias averaged": "drows.mean(0) if has_bias",
            "linear: dbias of one row": "drows[0] if has_bias",
        },
    },
    "functional/norm.py": {
        "dbias = dy.sum(rows)": {
            "layer norm: dbias over one axis": "dbias = dy.sum(0)",
            "layer norm: dbias averaged": "dbias = dy.mean(rows)",
        },
        "dgain = (dy * xhat).sum(rows)": {
            "layer norm: dgain without xhat": "dgain = dy.sum(rows)",
            "layer norm: dgain over one axis": "dgain = (dy * xhat).sum(0)",
        },
        "dxhat = dy * gain": {"layer norm: gain left out": "dxhat = dy"},
        "along = (dxhat * xhat).mean(-1, keepdims=True)": {
            "layer norm: along summed": "along = (dxhat * xhat).sum(-1, keepdims=True)"
        },
        "dx = rstd * (dxhat - dxhat.mean(-1, keepdims=True) - xhat * along)": {
            "layer norm: rstd left out": "dx = dxhat - dxhat.mean(-1, keepdims=True) - xhat * along",
            "layer norm: term through the mean": "dx = rstd * (dxhat - xhat * along)",
            "layer norm: term through the variance": "True) - xhat * along → True)",
            "layer norm: direct term": "dx = -rstd * (dxhat.mean(-1, keepdims=True) + xhat * along)",
            "layer norm: sign of the variance": "- xhat → + xhat",
        },
    },
    "functional/embedding.py": {
        "xp.add.at(dtable, ids.reshape(-1), dy.reshape(-1, dy.shape[-1]) * scale)": {
            "embedding: scale left out": "(-1, dy.shape[-1]) * scale → (-1, dy.shape[-1])",
            "embedding: repeated tokens overwrite": (
                "dtable[ids.reshape(-1)] = dy.reshape(-1, dy.shape[-1]) * scale"
            ),
            "embedding: repeated tokens counted once": (
                "dtable[ids.reshape(-1)] += dy.reshape(-1, dy.shape[-1]) * scale"
            ),
        },
        "dy = xp.where((ids == zero_id)[..., None], 0, dy)": {
            "embedding: padding gets a gradient": "0, dy → dy, dy",
            "embedding: only padding gets a gradient": "ids == zero_id → ids != zero_id",
        },
    },
    "functional/pooling.py": {
        "shares = shares / shares.sum(-1, keepdims=True)": {
            "mean_pool: divided by the number of all tokens": "shares = shares / shares.shape[1]"
        },
        "dx: Array = shares[:, :, None] * dy[:, None, :]": {
            "mean_pool: every token gets the whole gradient": "shares[:, :, None] → (shares[:, :, None] > 0)"
        },
        "da = ds * (b / b_norm - s * a / a_norm) / a_norm": {
            "cosine_similarity: the part along the vector stays": "da = ds * b / b_norm / a_norm",
            "cosine_similarity: not divided by the length": "da = ds * (b / b_norm - s * a / a_norm)",
        },
        "db = ds * (a / a_norm - s * b / b_norm) / b_norm": {
            "cosine_similarity: lengths exchanged": "db = ds * (a / a_norm - s * b / b_norm) / a_norm"
        },
    },
    "functional/similarity.py": {
        "dk = dscores.swapaxes(-1, -2) @ q": {
            "dot similarity: dk transposed": "dk = (q.swapaxes(-1, -2) @ dscores).reshape(k.shape)"
        },
        "dk = dscores.swapaxes(-1, -2) @ projected": {
            "general similarity: dk from the queries before the projection": "projected → q"
        },
        "dweight = _rows(q).T @ _rows(dprojected)": {
            "general similarity: dweight of one sentence": "dweight = q[0].T @ dprojected[0]"
        },
        "dhalves = [dof_query.reshape(-1) @ _rows(q), dof_key.reshape(-1) @ _rows(k)]": {
            "concat similarity: sums swapped": (
                "dhalves = [dof_key.reshape(-1) @ _rows(k), dof_query.reshape(-1) @ _rows(q)]"
            )
        },
        "dof_query, dof_key = dscores.sum(-1), dscores.sum(-2)": {
            "concat similarity: averaged over the queries": "sum(-2) → mean(-2)"
        },
        "dtotal = dhidden * (1 - hidden * hidden)": {
            "perceptron similarity: tanh's slope without its square": "hidden * hidden → hidden"
        },
        "dv = dscores.reshape(-1) @ _rows(hidden)": {
            "perceptron similarity: dv of the slope": "hidden → 1 - hidden * hidden"
        },
    },
}
