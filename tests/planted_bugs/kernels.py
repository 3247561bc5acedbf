"""Bugs in the kernels, and in packing, which spares them the padding."""

from planted_bugs.bug import Bug

_LINEAR = "kernels/cpu/linear.py"
_NORM = "kernels/cpu/norm.py"
_DROPOUT = "kernels/cpu/dropout.py"
_ATTENTION = "kernels/cpu/attention.py"
_LONG = "kernels/cpu/long_attention.py"
_LOSSES = "kernels/cpu/losses.py"
_EMBEDDING = "kernels/cpu/embedding.py"
_ADAM = "kernels/cpu/adam.py"
_PLAIN = "functional/residual.py"
_NORM_ALONE = "dx, _, dgain, dbias = _backward(dy, cache, None)"

PLAIN = (
    Bug(
        "residual and norm: dropout on the way round too",
        "wrong mask",
        _PLAIN,
        "return dx, dropout_backward(dx, cache.keep), dgain, dbias",
        "return 2 * (dropout_backward(dx, cache.keep),) + (dgain, dbias)",
    ),
    Bug(
        "residual and norm: dropout skipped",
        "wrong mask",
        _PLAIN,
        "return dx, dropout_backward(dx, cache.keep), dgain, dbias",
        "return dx, dx, dgain, dbias",
    ),
    Bug(
        "ReLU and dropout: dropout skipped",
        "wrong mask",
        _PLAIN,
        "dh = dropout_backward(dy, cache.keep)",
        "dh = dy",
    ),
    Bug(
        "ReLU and dropout: ReLU skipped",
        "dropped branch",
        _PLAIN,
        "return relu_backward(dh, cache.y)",
        "return dh",
    ),
)

ROWS = (
    Bug(
        "dropout kernel: factor left out",
        "missing scale",
        _DROPOUT,
        "dx *= cache.factor\n    return dx",
        "return dx",
    ),
    Bug(
        "layer_norm kernel: gain and bias swapped",
        "swapped",
        _NORM,
        _NORM_ALONE,
        "dx, _, dbias, dgain = _backward(dy, cache, None)",
    ),
    Bug(
        "residual_norm kernel: dropout skipped",
        "wrong mask",
        _NORM,
        "return _backward(dy, cache.norm, cache.keep)",
        "return _backward(dy, cache.norm, None)",
    ),
    Bug(
        "linear kernel: dx by the weight itself",
        "transposed",
        _LINEAR,
        "dx = drows @ weight.T",
        "dx = drows @ weight.reshape(weight.shape[::-1])",
    ),
    Bug(
        "linear kernel: bias counted twice",
        "missing scale",
        _LINEAR,
        "column_sums(drows)",
        "2 * column_sums(drows)",
    ),
    Bug(
        "linear kernel: weight's gradient beside its room",
        "lost tie",
        _LINEAR,
        "np.matmul(as_rows(x).T, drows, out=out)",
        "as_rows(x).T @ drows",
    ),
    Bug("layer_norm kernel: mean left in", "dropped branch", _NORM, "dxb -= mean[:, None]", "pass"),
    Bug("layer_norm kernel: part along xhat left in", "dropped branch", _NORM, "dxb -= moved", "pass"),
    Bug(
        "layer_norm kernel: gain only of the last block",
        "= for +=",
        _NORM,
        "dgain += column_sums(moved)",
        "dgain[...] = column_sums(moved)",
    ),
    Bug(
        "layer_norm kernel: bias only of the last block",
        "= for +=",
        _NORM,
        "dbias += column_sums(dyb)",
        "dbias[...] = column_sums(dyb)",
    ),
    Bug("layer_norm kernel: not over the spread", "missing scale", _NORM, "dxb *= rstd[block]", "pass"),
    Bug(
        "residual_norm kernel: dropout on the way round too",
        "wrong mask",
        _NORM,
        "return dx.reshape(dy.shape), dh",
        "return dh.reshape(dy.shape), dh",
    ),
    Bug(
        "residual_norm kernel: dropout's factor left out",
        "missing scale",
        _NORM,
        "dh[block] *= keep.factor",
        "pass",
    ),
    Bug(
        "residual_norm kernel: variance over D - 1",
        "missing scale",
        _NORM,
        "np.vecdot(xhat, xhat) / width",
        "np.vecdot(xhat, xhat) / (width - 1)",
    ),
    Bug(
        "relu_dropout kernel: the factor left out",
        "missing scale",
        _DROPOUT,
        "if cache.factor != 1:\n            out[block] *= cache.factor",
        "pass",
    ),
    Bug("relu_dropout kernel: passes at 0", "wrong mask", _DROPOUT, "y[block] > 0", "y[block] >= 0"),
)

ATTENTION = (
    Bug(
        "attention kernel: dropout left out of dv",
        "wrong mask",
        _ATTENTION,
        "np.matmul(dropped.swapaxes(-1, -2), dy[block]",
        "np.matmul(seen.swapaxes(-1, -2), dy[block]",
    ),
    Bug(
        "attention kernel: what keys have in common",
        "dropped branch",
        _ATTENTION,
        "dscores -= seen * row_sums(dscores)[..., None]",
        "pass",
    ),
    Bug(
        "attention kernel: row sums of keys",
        "missing sum",
        _ATTENTION,
        "row_sums(dscores)[..., None]",
        "dscores.mean(-1, keepdims=True)",
    ),
    Bug("attention kernel: scale", "missing scale", _ATTENTION, "dscores *= scale", "pass"),
    Bug(
        "attention kernel: dq and dk swapped", "swapped", _ATTENTION, "return dq, dk, dv", "return dk, dq, dv"
    ),
    Bug(
        "attention kernel: mask not of the block",
        "wrong mask",
        _ATTENTION,
        "else mask[block]",
        "else mask[: block.stop - block.start]",
    ),
    Bug("attention kernel: mask left out in range", "wrong mask", _ATTENTION, "scores *= mask", "pass"),
    Bug(
        "attention kernel: total of what is masked too",
        "wrong mask",
        _ATTENTION,
        "np.copyto(scores, -np.inf, where=~mask)",
        "pass",
    ),
    Bug(
        "long attention: keys of the last queries alone",
        "= for +=",
        _LONG,
        "dk[head] += dscores.T",
        "dk[head] = dscores.T",
    ),
    Bug(
        "long attention: values of the last queries alone",
        "= for +=",
        _LONG,
        "dv[head] += dropped.T",
        "dv[head] = dropped.T",
    ),
    Bug(
        "long attention: other dropout on the way back",
        "wrong mask",
        _LONG,
        "        dropped = _dropped(weights, cache, here)\n",
        "        dropped = weights\n",
    ),
    Bug("long attention: sign of the common part", "sign", _LONG, "dscores -= weights", "dscores += weights"),
)

WORDS = (
    Bug(
        "cross-entropy kernel: target not smoothed",
        "missing scale",
        _LOSSES,
        "dx[at_target] -= share * (1 - smoothing)",
        "dx[at_target] -= share",
    ),
    Bug(
        "cross-entropy kernel: smoothing not over V",
        "missing scale",
        _LOSSES,
        "share * (smoothing / n_words)",
        "share * smoothing",
    ),
    Bug(
        "cross-entropy kernel: padding counts",
        "wrong mask",
        _LOSSES,
        "share = is_real.astype(rows.dtype) / tokens",
        "share = np.ones(len(rows), rows.dtype) / tokens",
    ),
    Bug(
        "cross-entropy kernel: dloss left out",
        "missing scale",
        _LOSSES,
        "cache.dlogits * dloss",
        "cache.dlogits",
    ),
    Bug(
        "cross-entropy kernel: overwrites unasked",
        "lost tie",
        _LOSSES,
        "rows if overwrite else",
        "rows if True else",
    ),
    Bug("embedding_backward kernel: scale", "missing scale", _EMBEDDING, "sums *= scale", "pass"),
    Bug(
        "embedding_backward kernel: last of equal words",
        "= for +=",
        _EMBEDDING,
        "dtable[words[starts]] += sums",
        "dtable[words] = rows[order] * scale",
    ),
    Bug(
        "embedding_backward kernel: padding learns",
        "wrong mask",
        _EMBEDDING,
        "order = order[ids[order] != zero_id]",
        "pass",
    ),
    Bug("Adam kernel: mean of the last block's room", "wrong term", _ADAM, "mb += step", "mb[...] = step"),
    Bug(
        "Adam kernel: eps not scaled",
        "missing scale",
        _ADAM,
        "lr * math.sqrt(c2) / c1, eps * math.sqrt(c2)",
        "lr * math.sqrt(c2) / c1, eps * math.sqrt(c2) * 1e7",
    ),
    Bug("Adam kernel: squares not corrected", "missing scale", _ADAM, "lr * math.sqrt(c2) / c1", "lr / c1"),
    Bug(
        "packing: words in place of padding",
        "wrong term",
        "functional/packing.py",
        "y[packing.places] = x",
        "y[: len(x)] = x",
    ),
    Bug(
        "multi-head: packed gradients not spread out",
        "dropped branch",
        "attention/multi_head.py",
        "key_packing = packing if given == 1 else key_packing",
        "key_packing = packing",
    ),
    Bug(
        "workers: one replica's gradients lost",
        "missing sum",
        "training/workers.py",
        "for model in self.models[1:]:\n            grads +=",
        "for model in self.models[2:]:\n            grads +=",
    ),
)

KERNELS = (*PLAIN, *ROWS, *ATTENTION, *WORDS)
