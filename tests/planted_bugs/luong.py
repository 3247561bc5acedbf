"""Bugs in similarities as layers, in looking up, and in the attentions of recurrent networks."""

from planted_bugs.bug import Bug

_LOOK_UP = "functional/look_up.py"
_LOOK_UP_DV = "dv = dropped.swapaxes(-1, -2) @ dy"
_LOOK_UP_SOFTMAX = "dscores = softmax_backward(dweights, weights)"

LOOK_UP = (
    Bug("look-up: dv transposed", "transposed", _LOOK_UP, _LOOK_UP_DV, "dv = dropped @ dy"),
    Bug(
        "look-up: dv before dropout",
        "wrong term",
        _LOOK_UP,
        _LOOK_UP_DV,
        "dv = weighed.weights.swapaxes(-1, -2) @ dy",
    ),
    Bug(
        "look-up: dropout skipped",
        "wrong mask",
        _LOOK_UP,
        "dweights = dropout_backward(ddropped, keep)",
        "dweights = ddropped",
    ),
    Bug("look-up: softmax skipped", "dropped branch", _LOOK_UP, _LOOK_UP_SOFTMAX, "dscores = dweights"),
    Bug(
        "look-up: softmax's diagonal only",
        "dropped branch",
        _LOOK_UP,
        _LOOK_UP_SOFTMAX,
        "dscores = dweights * weights",
    ),
    Bug(
        "look-up: mask skipped",
        "wrong mask",
        _LOOK_UP,
        "return mask_scores_backward(dscores, masked)",
        "return dscores",
    ),
)

_WINDOW = "functional/window.py"
_LOGIT = "dlogit = sigmoid_backward(dp * lengths, share)"
_TOTAL = "dtotal = dhidden * (1 - hidden * hidden)"
_BELL = "dweights, dbell = dy * bell, dy * weights"
_DP = "dp = (dbell * bell * away).sum(-1) / sigma**2"

WINDOW = (
    Bug(
        "position: length left out", "missing scale", _WINDOW, _LOGIT, "dlogit = sigmoid_backward(dp, share)"
    ),
    Bug(
        "position: sigmoid's slope at the position",
        "wrong term",
        _WINDOW,
        _LOGIT,
        "dlogit = sigmoid_backward(dp * lengths, share * lengths)",
    ),
    Bug("position: sigmoid skipped", "dropped branch", _WINDOW, _LOGIT, "dlogit = dp * lengths"),
    Bug("position: tanh skipped", "dropped branch", _WINDOW, _TOTAL, "dtotal = dhidden"),
    Bug("position: tanh for its slope", "wrong term", _WINDOW, _TOTAL, "dtotal = dhidden * (1 - hidden)"),
    Bug(
        "position: dh through the wrong side of the weight",
        "transposed",
        _WINDOW,
        "return dtotal @ weight.T, dweight, dv",
        "return dtotal @ weight, dweight, dv",
    ),
    Bug(
        "position: the states stop saying where",
        "dropped branch",
        _WINDOW,
        "return dtotal @ weight.T, dweight, dv",
        "return 0 * h, dweight, dv",
    ),
    Bug("Gaussian: dp sign", "sign", _WINDOW, _DP, "dp = -(dbell * bell * away).sum(-1) / sigma**2"),
    Bug(
        "Gaussian: sigma for its square",
        "missing scale",
        _WINDOW,
        _DP,
        "dp = (dbell * bell * away).sum(-1) / sigma",
    ),
    Bug(
        "Gaussian: the 2 left in",
        "missing scale",
        _WINDOW,
        _DP,
        "dp = (dbell * bell * away).sum(-1) / (2 * sigma**2)",
    ),
    Bug("Gaussian: distance left out", "wrong term", _WINDOW, _DP, "dp = (dbell * bell).sum(-1) / sigma**2"),
    Bug(
        "Gaussian: bell left out of dp", "wrong term", _WINDOW, _DP, "dp = (dbell * away).sum(-1) / sigma**2"
    ),
    Bug(
        "Gaussian: dp averaged over the words",
        "missing sum",
        _WINDOW,
        _DP,
        "dp = (dbell * bell * away).mean(-1) / sigma**2",
    ),
    Bug(
        "Gaussian: bell and weights change places",
        "swapped",
        _WINDOW,
        _BELL,
        "dbell, dweights = dy * bell, dy * weights",
    ),
    Bug(
        "Gaussian: weights let all through",
        "missing scale",
        _WINDOW,
        _BELL,
        "dweights, dbell = dy, dy * weights",
    ),
)

_SIMILARITY = "attention/similarity.py"
_HEADS = "attention/any_similarity.py"
_MULTI_HEAD = "attention/multi_head.py"

SIMILARITY = (
    Bug(
        "Similarity: scale left out",
        "missing scale",
        _SIMILARITY,
        "dscores = dscores if self.scale is None else dscores * self.scale",
        "dscores = dscores",
    ),
    Bug(
        "Similarity: gradients overwritten",
        "= for +=",
        _SIMILARITY,
        "weight.grad += dweight",
        "weight.grad[...] = dweight",
    ),
    Bug("Similarity: dq and dk change places", "swapped", _SIMILARITY, "return dq, dk\n", "return dk, dq\n"),
    Bug(
        "Similarity: weights in another order",
        "swapped",
        _SIMILARITY,
        "zip(self.weights, dweights, strict=True)",
        "zip(self.weights[::-1], dweights, strict=True)",
    ),
    Bug(
        "heads of any similarity: keys and values change places",
        "swapped",
        _HEADS,
        "return dq, dk, dv",
        "return dq, dv, dk",
    ),
    Bug(
        "heads of any similarity: queries and keys change places",
        "swapped",
        _HEADS,
        "dq, dk = self.similarity.backward",
        "dk, dq = self.similarity.backward",
    ),
    Bug(
        "multi-head: gradients of attention in another order",
        "swapped",
        _MULTI_HEAD,
        "return attention_backward(dz, cache)",
        "return attention_backward(dz, cache)[::-1]",
    ),
)

_LUONG = "attention/luong.py"
_READ = "return dqueries, dvalues + dkeys"
_READ_AND_SAID = "return dqueries + dsaid, dvalues + dkeys"
_JOINED = "dboth = self.join.backward(dy * (1 - cache.y * cache.y), cache.join)"

ATTENTIONS = (
    Bug("global: the memory is only read", "dropped branch", _LUONG, _READ, "return dqueries, dvalues"),
    Bug("global: the memory is only compared", "dropped branch", _LUONG, _READ, "return dqueries, dkeys"),
    Bug(
        "local-p: the memory is only read",
        "dropped branch",
        _LUONG,
        _READ_AND_SAID,
        "return dqueries + dsaid, dvalues",
    ),
    Bug(
        "local-p: the memory is only compared",
        "dropped branch",
        _LUONG,
        _READ_AND_SAID,
        "return dqueries + dsaid, dkeys",
    ),
    Bug(
        "local-p: the queries do not say where",
        "dropped branch",
        _LUONG,
        _READ_AND_SAID,
        "return dqueries, dvalues + dkeys",
    ),
    Bug(
        "local-p: the queries are not compared",
        "dropped branch",
        _LUONG,
        _READ_AND_SAID,
        "return dsaid, dvalues + dkeys",
    ),
    Bug(
        "local-p: read with the weights before the Gaussian",
        "wrong term",
        _LUONG,
        "dvalues = cache.weights.swapaxes(-1, -2) @ dcontext",
        "dvalues = cache.aligned.swapaxes(-1, -2) @ dcontext",
    ),
    Bug(
        "local-p: softmax of the weights after the Gaussian",
        "wrong term",
        _LUONG,
        "dscores = softmax_backward(daligned, cache.aligned)",
        "dscores = softmax_backward(daligned, cache.weights)",
    ),
    Bug(
        "local-p: the Gaussian skipped",
        "dropped branch",
        _LUONG,
        "dscores = softmax_backward(daligned, cache.aligned)",
        "dscores = softmax_backward(dweights, cache.aligned)",
    ),
    Bug(
        "local-p: W_p overwritten",
        "= for +=",
        _LUONG,
        "self.position_weight.grad += dweight",
        "self.position_weight.grad[...] = dweight",
    ),
    Bug(
        "local-p: v_p overwritten",
        "= for +=",
        _LUONG,
        "self.position_v.grad += dv",
        "self.position_v.grad[...] = dv",
    ),
    Bug(
        "attentional state: tanh skipped",
        "dropped branch",
        _LUONG,
        _JOINED,
        "dboth = self.join.backward(dy, cache.join)",
    ),
    Bug(
        "attentional state: tanh for its slope",
        "wrong term",
        _LUONG,
        _JOINED,
        "dboth = self.join.backward(dy * (1 - cache.y), cache.join)",
    ),
    Bug(
        "attentional state: context and state change places",
        "swapped",
        _LUONG,
        "return dboth[..., : self.d_context], dboth[..., self.d_context :]",
        "return dboth[..., -self.d_context :], dboth[..., : -self.d_context]",
    ),
)

LUONG = (*LOOK_UP, *WINDOW, *SIMILARITY, *ATTENTIONS)
