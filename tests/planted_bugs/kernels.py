"""Bugs in the kernels, and in packing, which leaves out the padding."""

from planted_bugs.bug import Bug

_LINEAR = "kernels/cpu/linear.py"
_LAZY = "kernels/lazy.py"
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
        "add and norm: dropout on the identity path too",
        "wrong mask",
        _PLAIN,
        "return dx, dropout_backward(dx, cache.dropout_mask), dgain, dbias",
        "return 2 * (dropout_backward(dx, cache.dropout_mask),) + (dgain, dbias)",
    ),
    Bug(
        "add and norm: dropout skipped",
        "wrong mask",
        _PLAIN,
        "return dx, dropout_backward(dx, cache.dropout_mask), dgain, dbias",
        "return dx, dx, dgain, dbias",
    ),
    Bug(
        "activation and dropout: dropout skipped",
        "wrong mask",
        _PLAIN,
        "return dropout_backward(dh, cache.dropout_mask)",
        "return dh",
    ),
    Bug(
        "activation and dropout: activation skipped",
        "dropped branch",
        _PLAIN,
        "return activate_backward(dh, cache.activation)",
        "return dh",
    ),
    Bug(
        "ReLU and dropout: ReLU skipped",
        "dropped branch",
        _PLAIN,
        "dh = relu_backward(dy, cache.y)",
        "dh = dy",
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
        "add_norm kernel: dropout skipped",
        "wrong mask",
        _NORM,
        "return _backward(dy, cache.norm, cache.dropout_mask)",
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
        "unevaluated product: not transposed",
        "transposed",
        _LAZY,
        "(self.right, self.left) if self.transposed else",
        "(self.right, self.left) if False else",
    ),
    Bug(
        "unevaluated product: overwrites what was added before",
        "= for +=",
        _LAZY,
        "destination += self.evaluate()",
        "destination[...] = self.evaluate()",
    ),
    Bug(
        "unevaluated rows: overwrite what was added before",
        "= for +=",
        _LAZY,
        "destination[self.ids] += self.rows",
        "destination[self.ids] = self.rows",
    ),
    Bug("layer_norm kernel: mean left in", "dropped branch", _NORM, "dxb -= mean[:, None]", "pass"),
    Bug("layer_norm kernel: part along xhat left in", "dropped branch", _NORM, "dxb -= product", "pass"),
    Bug(
        "layer_norm kernel: gain only of the last block",
        "= for +=",
        _NORM,
        "dgain += column_sums(product)",
        "dgain[...] = column_sums(product)",
    ),
    Bug(
        "layer_norm kernel: bias only of the last block",
        "= for +=",
        _NORM,
        "dbias += column_sums(dyb)",
        "dbias[...] = column_sums(dyb)",
    ),
    Bug(
        "layer_norm kernel: not divided by the standard deviation",
        "missing scale",
        _NORM,
        "dxb *= rstd[block]",
        "pass",
    ),
    Bug(
        "add_norm kernel: dropout on the identity path too",
        "wrong mask",
        _NORM,
        "return dx.reshape(dy.shape), dh",
        "return dh.reshape(dy.shape), dh",
    ),
    Bug(
        "add_norm kernel: dropout's factor left out",
        "missing scale",
        _NORM,
        "dh[block] *= dropout_mask.factor",
        "pass",
    ),
    Bug(
        "add_norm kernel: variance over D - 1",
        "missing scale",
        _NORM,
        "np.vecdot(xhat, xhat) / width",
        "np.vecdot(xhat, xhat) / (width - 1)",
    ),
    Bug(
        "activation_dropout kernel: the factor left out",
        "missing scale",
        _DROPOUT,
        "if cache.factor != 1:\n            out[block] *= cache.factor",
        "pass",
    ),
    Bug(
        "activation_dropout kernel: activation skipped",
        "dropped branch",
        "kernels/dropout.py",
        "return activate_backward(dh, cache.activation)",
        "return dh",
    ),
    Bug(
        "relu_dropout kernel: -0 for negative numbers and NaN for infinite ones",
        "wrong term",
        _DROPOUT,
        "np.multiply(x.view(bits), selected, out=out.view(bits))",
        "np.multiply(x, selected, out=out)",
    ),
    Bug(
        "relu_dropout kernel: rows with another memory layout lost",
        "lost tie",
        _DROPOUT,
        "y = np.empty(x.shape, x.dtype)",
        "y = np.empty_like(x)",
    ),
    Bug(
        "attention kernel: the first sentence's keys for all queries",
        "missing sum",
        _ATTENTION,
        "return same and q.ndim == 4",
        "return q.ndim == k.ndim == v.ndim == 4",
    ),
    Bug(
        "attention: gradients of repeated arrays not summed",
        "missing sum",
        "functional/attention.py",
        "(sum_to_shape(dx, x.shape) for dx, x in",
        "(dx for dx, x in",
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
        "attention kernel: weighted mean not subtracted",
        "dropped branch",
        _ATTENTION,
        "dscores -= block_weights * row_sums(dscores)[..., None]",
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
    Bug(
        "attention kernel: mask left out in range",
        "wrong mask",
        _ATTENTION,
        "scores *= mask.astype(scores.dtype)",
        "pass",
    ),
    Bug(
        "attention kernel: masked keys in the sum too",
        "wrong mask",
        _ATTENTION,
        "np.copyto(scores, -np.inf, where=~mask)",
        "pass",
    ),
    Bug(
        "long attention: dk of the last queries only",
        "= for +=",
        _LONG,
        "dk[head] += dscores.T",
        "dk[head] = dscores.T",
    ),
    Bug(
        "long attention: dv of the last queries only",
        "= for +=",
        _LONG,
        "dv[head] += dropped.T",
        "dv[head] = dropped.T",
    ),
    Bug(
        "long attention: another dropout mask in backward",
        "wrong mask",
        _LONG,
        "        dropped = _dropped(weights, cache, index)\n",
        "        dropped = weights\n",
    ),
    Bug(
        "long attention: sign of the weighted mean", "sign", _LONG, "dscores -= weights", "dscores += weights"
    ),
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
        "share * (smoothing / vocab_size)",
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
        "cross-entropy kernel: overwrites without permission",
        "lost tie",
        _LOSSES,
        "rows if overwrite else",
        "rows if True else",
    ),
    Bug("embedding_backward kernel: scale", "missing scale", _EMBEDDING, "sums *= scale", "pass"),
    Bug(
        "embedding_backward kernel: last of equal tokens only",
        "= for +=",
        _EMBEDDING,
        "return LazyRows(tokens[starts], sums, len(table))",
        "return LazyRows(tokens[starts], rows[order][starts] * scale, len(table))",
    ),
    Bug(
        "embedding_backward kernel: padding gets a gradient",
        "wrong mask",
        _EMBEDDING,
        "order = order[ids[order] != zero_id]",
        "pass",
    ),
    Bug("Adam kernel: mean of the last block's buffer", "wrong term", _ADAM, "mb += step", "mb[...] = step"),
    Bug(
        "Adam kernel: eps not scaled",
        "missing scale",
        _ADAM,
        "lr * math.sqrt(c2) / c1, eps * math.sqrt(c2)",
        "lr * math.sqrt(c2) / c1, eps * math.sqrt(c2) * 1e7",
    ),
    Bug("Adam kernel: squares not corrected", "missing scale", _ADAM, "lr * math.sqrt(c2) / c1", "lr / c1"),
    Bug(
        "packing: tokens at the positions of padding",
        "wrong term",
        "functional/packing.py",
        "y[packing.places] = x",
        "y[: len(x)] = x",
    ),
    Bug(
        "multi-head: packed gradients not spread out",
        "dropped branch",
        "nn/attention/multi_head.py",
        "key_packing = mask.packing if n_inputs == 1 else mask.key_packing",
        "key_packing = mask.packing",
    ),
    Bug(
        "workers: one replica's gradients lost",
        "missing sum",
        "training/workers.py",
        "for model in self.models[1:]:\n            grads +=",
        "for model in self.models[2:]:\n            grads +=",
    ),
)

# mistakes in forward that leave every gradient right
FORWARD = (
    Bug(
        "attention kernel: peak not subtracted if the scores are safe on one side",
        "wrong term",
        _ATTENTION,
        "if scores.max() < SAFE and scores.min() > -SAFE:",
        "if scores.max() < SAFE or scores.min() > -SAFE:",
    ),
    Bug(
        "long attention: mask not checked",
        "dropped branch",
        _LONG,
        'check_mask(mask, (batch, n_heads, n_queries, k.shape[2]), "mask")',
        "pass",
    ),
)

_BLOCKS = "kernels/cpu/block_attention.py"

BLOCK_ATTENTION = (
    Bug(
        "block attention kernel: last key of a range left out",
        "wrong mask",
        _BLOCKS,
        "keys = slice(int(attended[0]), int(attended[-1]) + 1)",
        "keys = slice(int(attended[0]), int(attended[-1]))",
    ),
    Bug("block attention kernel: scale of dq left out", "missing scale", _BLOCKS, "dq *= scale", "pass"),
    Bug(
        "block attention kernel: mean of dscores left in",
        "dropped branch",
        _BLOCKS,
        "dscores -= np.vecdot(cache.y[part.at_queries], dz)[..., None]",
        "pass",
    ),
    Bug(
        "block attention kernel: gradients of one block of queries only",
        "= for +=",
        _BLOCKS,
        "out += left @ right",
        "out[...] = left @ right",
    ),
    Bug(
        "block attention kernel: mask left out in range",
        "wrong mask",
        _BLOCKS,
        "scores *= mask.astype(scores.dtype)",
        "pass",
    ),
    Bug(
        "block attention kernel: peak forgotten when exponentials are computed again",
        "dropped branch",
        _BLOCKS,
        "weights = _exponentiate(scores, part.mask, cache.peaks[number])",
        "weights = _exponentiate(scores, part.mask, 0.0)",
    ),
)

_ACTIVATIONS = "kernels/cpu/activations.py"

ACTIVATIONS = (
    Bug(
        "gelu kernel: density left out",
        "dropped branch",
        _ACTIVATIONS,
        "np.add(phi, density, out=slope)",
        "np.copyto(slope, phi)",
    ),
    Bug(
        "gelu kernel: derivative left out",
        "dropped branch",
        _ACTIVATIONS,
        "return dy * cache.slope if isinstance(cache, GeluCache)",
        "return dy * 1 if isinstance(cache, GeluCache)",
    ),
    Bug(
        "gelu_tanh kernel: derivative left out",
        "dropped branch",
        _ACTIVATIONS,
        "return dy * cache.slope if isinstance(cache, GeluTanhCache)",
        "return dy * 1 if isinstance(cache, GeluTanhCache)",
    ),
    Bug(
        "gelu_tanh kernel: inner' not doubled",
        "missing scale",
        _ACTIVATIONS,
        "square *= 6 *",
        "square *= 3 *",
    ),
    Bug("swiglu kernel: derivative left out", "dropped branch", _ACTIVATIONS, "dgate *= cache.slope", "pass"),
    Bug(
        "swiglu kernel: value and activation swapped",
        "swapped",
        _ACTIVATIONS,
        "return dgate, dy * cache.activated",
        "return dgate, dy * cache.value",
    ),
)

_RMS_NORM, _ROTARY = "kernels/cpu/rms_norm.py", "kernels/cpu/rotary.py"

DECODER_KERNELS = (
    Bug(
        "rms_norm kernel: part along xhat left in",
        "dropped branch",
        _RMS_NORM,
        "dx[block] -= product",
        "pass",
    ),
    Bug(
        "rms_norm kernel: gain only of the last block",
        "= for +=",
        _RMS_NORM,
        "dgain += column_sums(product)",
        "dgain[...] = column_sums(product)",
    ),
    Bug(
        "rotary kernel: rotated forward again",
        "sign",
        _ROTARY,
        "dx, _ = rotate(dy, cos, -sin, layout)",
        "dx, _ = rotate(dy, cos, sin, layout)",
    ),
)

KERNELS = (
    *FORWARD,
    *PLAIN,
    *ROWS,
    *ATTENTION,
    *WORDS,
    *BLOCK_ATTENTION,
    *ACTIVATIONS,
    *DECODER_KERNELS,
)
