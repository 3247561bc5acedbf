"""Bugs in attention: the pure pair, masks, heads, and the multi-head layer."""

from planted_bugs.bug import Bug

_PAIR = "functional/attention.py"
_SCALE = "dscores = dscores * scale"
_DQ = "dq = dscores @ k"
_DK = "dk = dscores.swapaxes(-1, -2) @ q"
_DV = "dv = dropped.swapaxes(-1, -2) @ dy"
_SOFTMAX = "dscores = softmax_backward(dweights, weights)"

PAIR = (
    Bug("attention: ddropped sign", "sign", _PAIR, "ddropped = dy @ v.swap", "ddropped = -dy @ v.swap"),
    Bug("attention: dv sign", "sign", _PAIR, _DV, "dv = -dropped.swapaxes(-1, -2) @ dy"),
    Bug("attention: dv transposed", "transposed", _PAIR, _DV, "dv = dropped @ dy"),
    Bug(
        "attention: dv from the weights before dropout",
        "wrong mask",
        _PAIR,
        _DV,
        "dv = weights.swapaxes(-1, -2) @ dy",
    ),
    Bug(
        "attention: dropout skipped",
        "wrong mask",
        _PAIR,
        "dweights = dropout_backward(ddropped, dropout_mask)",
        "dweights = ddropped",
    ),
    Bug(
        "attention: softmax of the dropped weights",
        "wrong term",
        _PAIR,
        _SOFTMAX,
        "dscores = softmax_backward(dweights, dropped)",
    ),
    Bug(
        "attention: softmax's diagonal only",
        "dropped branch",
        _PAIR,
        _SOFTMAX,
        "dscores = dweights * weights",
    ),
    Bug("attention: softmax skipped", "dropped branch", _PAIR, _SOFTMAX, "dscores = dweights"),
    Bug(
        "attention: mask skipped",
        "wrong mask",
        _PAIR,
        "dscores = mask_scores_backward(dscores, masked)",
        "dscores = dscores",
    ),
    Bug("attention: scale left out", "missing scale", _PAIR, _SCALE, "dscores = dscores"),
    Bug("attention: divided by the scale", "missing scale", _PAIR, _SCALE, "dscores = dscores / scale"),
    Bug("attention: dq without scale", "missing scale", _PAIR, _DQ, "dq = dscores / scale @ k"),
    Bug(
        "attention: dk scaled twice", "missing scale", _PAIR, _DK, "dk = dscores.swapaxes(-1, -2) @ q * scale"
    ),
    Bug("attention: dk transposed", "transposed", _PAIR, _DK, "dk = dscores @ q"),
    Bug("attention: dk from the keys", "swapped", _PAIR, _DK, "dk = dscores.swapaxes(-1, -2) @ k"),
    Bug("attention: dq and dk swapped", "swapped", _PAIR, "return dq, dk, dv", "return dk, dq, dv"),
)

_MASKING = "functional/masks.py"
_KEYS = "dscores = xp.where(mask, dscores, 0)"
_QUERIES = "dscores = xp.where(query_mask, dscores, 0)"

MASKS = (
    Bug(
        "masking: replaced scores get a gradient",
        "wrong mask",
        _MASKING,
        _KEYS,
        "dscores = xp.where(mask, dscores, dscores)",
    ),
    Bug(
        "masking: only replaced scores get a gradient",
        "wrong mask",
        _MASKING,
        _KEYS,
        "dscores = xp.where(mask, 0, dscores)",
    ),
    Bug(
        "masking: scores with an added number get no gradient",
        "wrong mask",
        _MASKING,
        'if mask is not None and masking.how == "replace":',
        "if mask is not None:",
    ),
    Bug("masking: masked queries get a gradient", "wrong mask", _MASKING, _QUERIES, "dscores = dscores"),
    Bug(
        "masking: queries always masked before the softmax",
        "wrong mask",
        _MASKING,
        'if query_mask is not None and masking.query == "before":',
        "if query_mask is not None:",
        nth=2,
        of=2,
    ),
    Bug(
        "masking: masked queries attend",
        "wrong mask",
        _MASKING,
        "return array_module(weights).where(query_mask, weights, 0)",
        "return weights",
    ),
)

_HEADS = "functional/heads.py"

HEADS = (
    Bug(
        "heads: split by reshaping only",
        "transposed",
        _HEADS,
        "x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)",
        "x.reshape(batch, n_heads, length, width // n_heads)",
    ),
    Bug(
        "heads: merged by reshaping only",
        "transposed",
        _HEADS,
        "x.swapaxes(1, 2).reshape(batch, length, n_heads * width)",
        "x.reshape(batch, length, n_heads * width)",
    ),
    Bug(
        "heads: merged from the batch axis by reshaping only",
        "transposed",
        _HEADS,
        "xp.concatenate(xp.split(x, n_heads, axis=0), axis=-1)",
        "x.reshape(-1, x.shape[1], n_heads * x.shape[2])",
    ),
)

_MULTI_HEAD = "nn/attention/multi_head.py"
_ONE = "return _total(grads)"
_TWO = "return grads[0], _total(grads[1:])"
_PROJECTION = "nn/attention/projections.py"
_PARTS = "array_module(merged[0]).concatenate(merged, -1)"

MULTI_HEAD = (
    Bug(
        "multi-head: Wo skipped",
        "dropped branch",
        _MULTI_HEAD,
        "dy = self.output.backward(dy, cache.output)",
        "self.output.backward(dy, cache.output)",
    ),
    Bug(
        "multi-head: dz reshaped, not split",
        "transposed",
        _MULTI_HEAD,
        "return split_heads(unpack(dy, cache.packing), self.n_heads)",
        "return dy.reshape(len(dy), self.n_heads, dy.shape[1], -1)",
    ),
    Bug(
        "multi-head: dq reshaped, not merged",
        "transposed",
        _PROJECTION,
        "[merge_heads(dpart) for dpart in dparts]",
        "[dpart.reshape(len(dpart), dpart.shape[2], -1) for dpart in dparts]",
    ),
    Bug(
        "multi-head: activation skipped",
        "dropped branch",
        _PROJECTION,
        "activate_backward(pack(dy, cache.packing), cache.activation)",
        "pack(dy, cache.packing)",
    ),
    Bug(
        "multi-head self: gradient through the queries",
        "dropped branch",
        _MULTI_HEAD,
        _ONE,
        "return _total(grads[1:])",
    ),
    Bug(
        "multi-head self: gradient through the keys",
        "dropped branch",
        _MULTI_HEAD,
        _ONE,
        "return _total(grads[::2])",
    ),
    Bug(
        "multi-head self: gradient through the values",
        "dropped branch",
        _MULTI_HEAD,
        _ONE,
        "return _total(grads[:2])",
    ),
    Bug(
        "multi-head cross: gradient through the keys",
        "missing sum",
        _MULTI_HEAD,
        _TWO,
        "return grads[0], grads[-1]",
    ),
    Bug(
        "multi-head cross: gradient through the values",
        "missing sum",
        _MULTI_HEAD,
        _TWO,
        "return grads[0], grads[1]",
    ),
    Bug("multi-head: sum overwritten", "= for +=", _MULTI_HEAD, "total = total + grad", "total = grad"),
    Bug("multi-head: sum sign", "sign", _MULTI_HEAD, "total = total + grad", "total = total - grad"),
    Bug(
        "multi-head, separate values: keys and values swapped",
        "swapped",
        _MULTI_HEAD,
        "return tuple(grads)",
        "return grads[0], grads[2], grads[1]",
    ),
    Bug(
        "multi-head: dq and dk swapped",
        "swapped",
        _MULTI_HEAD,
        "dheads, grads = [dq, dk, dv], []",
        "dheads, grads = [dk, dq, dv], []",
    ),
    Bug(
        "multi-head: projections of keys and values swapped",
        "swapped",
        _MULTI_HEAD,
        "zip(self._projections(), cache.projections, strict=True)",
        "zip(self._projections(), (*cache.projections[:1], *cache.projections[:0:-1]), strict=True)",
    ),
    Bug(
        "multi-head, fused: parts in the wrong order",
        "swapped",
        _PROJECTION,
        _PARTS,
        "array_module(merged[0]).concatenate(merged[::-1], -1)",
    ),
    Bug(
        "multi-head, fused: last part lost",
        "dropped branch",
        _PROJECTION,
        _PARTS,
        "array_module(merged[0]).concatenate([*merged[:-1], 0 * merged[-1]], -1)",
    ),
    Bug(
        "multi-head, fused: first part lost",
        "dropped branch",
        _PROJECTION,
        _PARTS,
        "array_module(merged[0]).concatenate([0 * merged[0], *merged[1:]], -1)",
    ),
    Bug(
        "multi-head, fused: the parts of another projection",
        "wrong term",
        _MULTI_HEAD,
        "projection.project_backward(dheads[:n], projection_cache)",
        "projection.project_backward(dheads[-n:], projection_cache)",
    ),
)

_BASIC = "nn/attention/similarity.py"

BASIC = (
    Bug(
        "bare self-attention: gradient as query only",
        "dropped branch",
        _BASIC,
        "return dq + dk + dv",
        "return dq",
    ),
    Bug(
        "bare self-attention: no gradient as value",
        "dropped branch",
        _BASIC,
        "return dq + dk + dv",
        "return dq + dk",
    ),
)

ATTENTION = (*PAIR, *MASKS, *HEADS, *MULTI_HEAD, *BASIC)
