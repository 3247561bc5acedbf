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
        "dweights = dropout_backward(ddropped, keep)",
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

_MASKING = "functional/masking.py"
_KEYS = "dscores = xp.where(mask, dscores, 0)"
_QUERIES = "dscores = xp.where(query_mask, dscores, 0)"

MASKS = (
    Bug(
        "masking: replaced scores learn",
        "wrong mask",
        _MASKING,
        _KEYS,
        "dscores = xp.where(mask, dscores, dscores)",
    ),
    Bug(
        "masking: only replaced scores learn",
        "wrong mask",
        _MASKING,
        _KEYS,
        "dscores = xp.where(mask, 0, dscores)",
    ),
    Bug(
        "masking: scores added to do not learn",
        "wrong mask",
        _MASKING,
        'if mask is not None and masking.how == "replace":',
        "if mask is not None:",
    ),
    Bug("masking: masked queries learn", "wrong mask", _MASKING, _QUERIES, "dscores = dscores"),
    Bug(
        "masking: queries masked before, whatever the masking says",
        "wrong mask",
        _MASKING,
        'if query_mask is not None and masking.query == "before":',
        "if query_mask is not None:",
        nth=2,
        of=2,
    ),
    Bug(
        "masking: masked queries look",
        "wrong mask",
        _MASKING,
        "return array_module(weights).where(query_mask, weights, 0)",
        "return weights",
    ),
)

_HEADS = "functional/heads.py"

HEADS = (
    Bug(
        "heads: split by reshaping alone",
        "transposed",
        _HEADS,
        "x.reshape(batch, length, n_heads, width // n_heads).swapaxes(1, 2)",
        "x.reshape(batch, n_heads, length, width // n_heads)",
    ),
    Bug(
        "heads: merged by reshaping alone",
        "transposed",
        _HEADS,
        "x.swapaxes(1, 2).reshape(batch, length, n_heads * width)",
        "x.reshape(batch, length, n_heads * width)",
    ),
    Bug(
        "heads: merged from the batch by reshaping alone",
        "transposed",
        _HEADS,
        "xp.concatenate(xp.split(x, n_heads, axis=0), axis=-1)",
        "x.reshape(-1, x.shape[1], n_heads * x.shape[2])",
    ),
)

_MULTI_HEAD = "attention/multi_head.py"
_ONE = "return _total(grads)"
_TWO = "return grads[0], _total(grads[1:])"
_FUSED = "return [xp.concatenate(dparts, -1)]"
_FUSED_PAIR = "return [dparts[0], xp.concatenate(dparts[1:], -1)]"

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
        "dz = split_heads(unpack(dy, cache.packings[0]), self.n_heads)",
        "dz = dy.reshape(len(dy), self.n_heads, dy.shape[1], -1)",
    ),
    Bug(
        "multi-head: dq reshaped, not merged",
        "transposed",
        _MULTI_HEAD,
        "[merge_heads(dpart) for dpart in (dq, dk, dv)]",
        "[dpart.reshape(len(dpart), dpart.shape[2], -1) for dpart in (dq, dk, dv)]",
    ),
    Bug(
        "multi-head: activation skipped",
        "dropped branch",
        _MULTI_HEAD,
        "dy = activate_backward(dy, cache.activations[i])",
        "pass",
    ),
    Bug(
        "multi-head self: way through the queries",
        "dropped branch",
        _MULTI_HEAD,
        _ONE,
        "return _total(grads[1:])",
    ),
    Bug(
        "multi-head self: way through the keys",
        "dropped branch",
        _MULTI_HEAD,
        _ONE,
        "return _total(grads[::2])",
    ),
    Bug(
        "multi-head self: way through the values",
        "dropped branch",
        _MULTI_HEAD,
        _ONE,
        "return _total(grads[:2])",
    ),
    Bug(
        "multi-head cross: way through the keys",
        "missing sum",
        _MULTI_HEAD,
        _TWO,
        "return grads[0], grads[-1]",
    ),
    Bug(
        "multi-head cross: way through the values",
        "missing sum",
        _MULTI_HEAD,
        _TWO,
        "return grads[0], grads[1]",
    ),
    Bug("multi-head: sum overwritten", "= for +=", _MULTI_HEAD, "total = total + grad", "total = grad"),
    Bug("multi-head: sum sign", "sign", _MULTI_HEAD, "total = total + grad", "total = total - grad"),
    Bug(
        "multi-head, values apart: keys and values swapped",
        "swapped",
        _MULTI_HEAD,
        "return tuple(grads)",
        "return grads[0], grads[2], grads[1]",
    ),
    Bug(
        "multi-head: dq and dk swapped",
        "swapped",
        _MULTI_HEAD,
        "for dpart in (dq, dk, dv)",
        "for dpart in (dk, dq, dv)",
    ),
    Bug(
        "multi-head: projections of keys and values swapped",
        "swapped",
        _MULTI_HEAD,
        "grads.append(layer.backward(dy, cache.projections[i]))",
        "grads.append(layer.backward(dy, (*cache.projections[:1], *cache.projections[:0:-1])[i]))",
    ),
    Bug(
        "multi-head, fused: cut in the wrong order",
        "swapped",
        _MULTI_HEAD,
        _FUSED,
        "return [xp.concatenate(dparts[::-1], -1)]",
    ),
    Bug(
        "multi-head, fused: dv lost",
        "dropped branch",
        _MULTI_HEAD,
        _FUSED,
        "return [xp.concatenate([*dparts[:2], 0 * dparts[2]], -1)]",
    ),
    Bug(
        "multi-head, keys and values fused: cut in the wrong order",
        "swapped",
        _MULTI_HEAD,
        _FUSED_PAIR,
        "return [dparts[0], xp.concatenate(dparts[:0:-1], -1)]",
    ),
    Bug(
        "multi-head, keys and values fused: dkey lost",
        "dropped branch",
        _MULTI_HEAD,
        _FUSED_PAIR,
        "return [dparts[0], xp.concatenate([0 * dparts[1], dparts[2]], -1)]",
    ),
)

_BASIC = "attention/basic.py"

BASIC = (
    Bug("bare self-attention: as query alone", "dropped branch", _BASIC, "return dq + dk + dv", "return dq"),
    Bug(
        "bare self-attention: not as value", "dropped branch", _BASIC, "return dq + dk + dv", "return dq + dk"
    ),
)

ATTENTION = (*PAIR, *MASKS, *HEADS, *MULTI_HEAD, *BASIC)
