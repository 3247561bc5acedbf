"""Bugs in relative positions."""

from planted_bugs.bug import Bug

_PAIRS = "functional/relative.py"
_BY_QUERY = "dq, dkeys, dvalues = attention_backward(dy[..., None, :], cache.attention)"
_TO_PAIRS = "return dx, embedding_backward(dy.sum(tuple(range(dy.ndim - 3))), cache)"

PLAIN = (
    Bug(
        "relative: keys and values swapped",
        "swapped",
        _PAIRS,
        _BY_QUERY,
        "dq, dvalues, dkeys = attention_backward(dy[..., None, :], cache.attention)",
    ),
    Bug(
        "relative: the values' position vectors get the keys' gradient",
        "swapped",
        _PAIRS,
        "dv, dvalue_positions = _add_positions_backward(dvalues, cache.value_positions)",
        "dv, dvalue_positions = _add_positions_backward(dvalues, cache.key_positions)",
    ),
    Bug(
        "relative: dk of one query only",
        "missing sum",
        _PAIRS,
        "dx = dy.sum(-3)",
        "dx = dy[..., 0, :, :]",
    ),
    Bug(
        "relative: dk summed over keys",
        "missing sum",
        _PAIRS,
        "dx = dy.sum(-3)",
        "dx = dy.sum(-2)",
    ),
    Bug(
        "relative: position vectors get the gradient of one head",
        "missing sum",
        _PAIRS,
        _TO_PAIRS,
        "return dx, embedding_backward(dy[(0,) * (dy.ndim - 3)], cache)",
    ),
    Bug(
        "relative: position vectors get the mean over heads",
        "missing sum",
        _PAIRS,
        _TO_PAIRS,
        "return dx, embedding_backward(dy.mean(tuple(range(dy.ndim - 3))), cache)",
    ),
    Bug("relative: position vectors get no gradient", "dropped branch", _PAIRS, _TO_PAIRS, "return dx, None"),
)

_OF_VALUES = "ddropped = ddropped + spread_by_distance(dshare, distance)"
_OF_SCORES = "dscores = attention_weights_backward(ddropped, weights_cache) * scale"
_PRODUCTS = "dproducts = collect_by_distance(dscores, distance, key_product.weight.shape[1])"
_BOTH = "dq, dkey_positions = dq + dq_positions, dkey_positions.T"

BY_DISTANCE = (
    Bug(
        "by distance: no gradient from the values' positions to the weights",
        "dropped branch",
        _PAIRS,
        _OF_VALUES,
        "ddropped = ddropped + 0 * spread_by_distance(dshare, distance)",
    ),
    Bug(
        "by distance: weights get a gradient from the values' positions only",
        "= for +=",
        _PAIRS,
        _OF_VALUES,
        "ddropped = spread_by_distance(dshare, distance)",
    ),
    Bug(
        "by distance: spread to the other side",
        "transposed",
        _PAIRS,
        _OF_VALUES,
        "ddropped = ddropped + spread_by_distance(dshare, distance.max() - distance)",
    ),
    Bug(
        "by distance: dv before dropout",
        "wrong term",
        _PAIRS,
        "dv = weights_cache.dropped.swapaxes(-1, -2) @ dy",
        "dv = weights_cache.weights.swapaxes(-1, -2) @ dy",
    ),
    Bug(
        "by distance: scale left out",
        "missing scale",
        _PAIRS,
        _OF_SCORES,
        "dscores = attention_weights_backward(ddropped, weights_cache)",
    ),
    Bug(
        "by distance: softmax skipped",
        "dropped branch",
        _PAIRS,
        _OF_SCORES,
        "dscores = ddropped * scale",
    ),
    Bug(
        "by distance: collected from the other side",
        "transposed",
        _PAIRS,
        _PRODUCTS,
        "dproducts = collect_by_distance(dscores, distance.max() - distance, key_product.weight.shape[1])",
    ),
    Bug(
        "by distance: position vectors get the weights' gradient",
        "wrong term",
        _PAIRS,
        _PRODUCTS,
        "dproducts = collect_by_distance(ddropped, distance, key_product.weight.shape[1])",
    ),
    Bug(
        "by distance: no gradient from the positions to the queries",
        "dropped branch",
        _PAIRS,
        _BOTH,
        "dkey_positions = dkey_positions.T",
    ),
    Bug("by distance: vectors transposed", "transposed", _PAIRS, _BOTH, "dq = dq + dq_positions"),
    Bug(
        "by distance: keys get the queries' gradient",
        "swapped",
        _PAIRS,
        "return dq, dk, dv, dkey_positions, dvalue_positions\n",
        "return dk, dq, dv, dkey_positions, dvalue_positions\n",
    ),
)

_LAYER = "nn/attention/relative.py"

LAYER = (
    Bug(
        "RelativeAttention: keys' vectors overwritten",
        "= for +=",
        _LAYER,
        "self.key_positions.accumulate(dkey_positions)",
        "self.key_positions.grad[...] = dkey_positions",
    ),
    Bug(
        "RelativeAttention: values' vectors overwritten",
        "= for +=",
        _LAYER,
        "self.value_positions.accumulate(dvalue_positions)",
        "self.value_positions.grad[...] = dvalue_positions",
    ),
    Bug(
        "RelativeAttention: keys' vectors get the values' gradient",
        "swapped",
        _LAYER,
        "self.key_positions.accumulate(dkey_positions)",
        "self.key_positions.accumulate(dvalue_positions)",
    ),
    Bug(
        "RelativeAttention: keys and values swapped",
        "swapped",
        _LAYER,
        "return dq, dk, dv",
        "return dq, dv, dk",
    ),
)

RELATIVE = (*PLAIN, *BY_DISTANCE, *LAYER)
