"""Bugs in similarities as layers, in attention by given scores, and in recurrent attention."""

from planted_bugs.bug import Bug

_ATTEND = "functional/attend.py"
_ATTEND_DV = "dv = dropped.swapaxes(-1, -2) @ dy"
_ATTEND_SOFTMAX = "dscores = softmax_backward(dweights, weights)"

LOOK_UP = (
    Bug("attend: dv transposed", "transposed", _ATTEND, _ATTEND_DV, "dv = dropped @ dy"),
    Bug(
        "attend: dv before dropout",
        "wrong term",
        _ATTEND,
        _ATTEND_DV,
        "dv = weights_cache.weights.swapaxes(-1, -2) @ dy",
    ),
    Bug(
        "attend: dropout skipped",
        "wrong mask",
        _ATTEND,
        "dweights = dropout_backward(ddropped, dropout_mask)",
        "dweights = ddropped",
    ),
    Bug("attend: softmax skipped", "dropped branch", _ATTEND, _ATTEND_SOFTMAX, "dscores = dweights"),
    Bug(
        "attend: softmax's diagonal only",
        "dropped branch",
        _ATTEND,
        _ATTEND_SOFTMAX,
        "dscores = dweights * weights",
    ),
    Bug(
        "attend: mask skipped",
        "wrong mask",
        _ATTEND,
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
    Bug(
        "position: tanh instead of its slope",
        "wrong term",
        _WINDOW,
        _TOTAL,
        "dtotal = dhidden * (1 - hidden)",
    ),
    Bug(
        "position: dh through the wrong side of the weight",
        "transposed",
        _WINDOW,
        "return dtotal @ weight.T, dweight, dv",
        "return dtotal @ weight, dweight, dv",
    ),
    Bug(
        "position: no gradient to the states",
        "dropped branch",
        _WINDOW,
        "return dtotal @ weight.T, dweight, dv",
        "return 0 * h, dweight, dv",
    ),
    Bug("Gaussian: dp sign", "sign", _WINDOW, _DP, "dp = -(dbell * bell * away).sum(-1) / sigma**2"),
    Bug(
        "Gaussian: sigma instead of its square",
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
        "Gaussian: dp averaged over the tokens",
        "missing sum",
        _WINDOW,
        _DP,
        "dp = (dbell * bell * away).mean(-1) / sigma**2",
    ),
    Bug(
        "Gaussian: bell and weights swapped",
        "swapped",
        _WINDOW,
        _BELL,
        "dbell, dweights = dy * bell, dy * weights",
    ),
    Bug(
        "Gaussian: the bell left out of the weights' gradient",
        "missing scale",
        _WINDOW,
        _BELL,
        "dweights, dbell = dy, dy * weights",
    ),
)

_SIMILARITY = "nn/attention/similarity.py"
_HEADS = "nn/attention/similarity.py"
_MULTI_HEAD = "nn/attention/multi_head.py"

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
        "weight.accumulate(dweight)",
        "weight.grad[...] = dweight",
    ),
    Bug("Similarity: dq and dk swapped", "swapped", _SIMILARITY, "return dq, dk\n", "return dk, dq\n"),
    Bug(
        "Similarity: weights in another order",
        "swapped",
        _SIMILARITY,
        "zip(self.weights, dweights, strict=True)",
        "zip(self.weights[::-1], dweights, strict=True)",
    ),
    Bug(
        "heads of any similarity: keys and values swapped",
        "swapped",
        _HEADS,
        "return dq, dk, dv",
        "return dq, dv, dk",
    ),
    Bug(
        "heads of any similarity: queries and keys swapped",
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

_LUONG = "nn/attention/luong.py"
_READ = "return dqueries, dvalues + dkeys"
_BOTH_GRADIENTS = "return dqueries + dqueries_position, dvalues + dkeys"
_JOINED = "dboth = self.join.backward(dy * (1 - cache.y * cache.y), cache.join)"

ATTENTIONS = (
    Bug(
        "global: the memory gets a gradient as values only",
        "dropped branch",
        _LUONG,
        _READ,
        "return dqueries, dvalues",
    ),
    Bug(
        "global: the memory gets a gradient as keys only",
        "dropped branch",
        _LUONG,
        _READ,
        "return dqueries, dkeys",
    ),
    Bug(
        "local-p: the memory gets a gradient as values only",
        "dropped branch",
        _LUONG,
        _BOTH_GRADIENTS,
        "return dqueries + dqueries_position, dvalues",
    ),
    Bug(
        "local-p: the memory gets a gradient as keys only",
        "dropped branch",
        _LUONG,
        _BOTH_GRADIENTS,
        "return dqueries + dqueries_position, dkeys",
    ),
    Bug(
        "local-p: no gradient from the position to the queries",
        "dropped branch",
        _LUONG,
        _BOTH_GRADIENTS,
        "return dqueries, dvalues + dkeys",
    ),
    Bug(
        "local-p: no gradient from the scores to the queries",
        "dropped branch",
        _LUONG,
        _BOTH_GRADIENTS,
        "return dqueries_position, dvalues + dkeys",
    ),
    Bug(
        "local-p: values weighted before the Gaussian",
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
        "self.position_weight.accumulate(dweight)",
        "self.position_weight.grad[...] = dweight",
    ),
    Bug(
        "local-p: v_p overwritten",
        "= for +=",
        _LUONG,
        "self.position_v.accumulate(dv)",
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
        "attentional state: tanh instead of its slope",
        "wrong term",
        _LUONG,
        _JOINED,
        "dboth = self.join.backward(dy * (1 - cache.y), cache.join)",
    ),
    Bug(
        "attentional state: context and state swapped",
        "swapped",
        _LUONG,
        "return dboth[..., : self.d_context], dboth[..., self.d_context :]",
        "return dboth[..., -self.d_context :], dboth[..., : -self.d_context]",
    ),
)

LUONG = (*LOOK_UP, *WINDOW, *SIMILARITY, *ATTENTIONS)
