"""Bugs in latent attention, and in the models that read recipes."""

from planted_bugs.bug import Bug

_PAIRS = "functional/latent.py"
_LAYER = "nn/attention/latent.py"
_READER = "models/if_then/reader.py"
_BAG = "models/if_then/descriptions.py"
_LOSS = "models/if_then/descriptions.py"

_UNIT = "return (dy - slope * (dy * y).sum(-1, keepdims=True)) / length"
_RETURN = "return softmax_backward(dlatent, latent), softmax_backward(dactive, active), dv"

PAIRS = (
    Bug(
        "unit weights: the length treated as a constant",
        "dropped branch",
        _PAIRS,
        _UNIT,
        "return dy / length",
    ),
    Bug(
        "unit weights: sign of the length's gradient",
        "sign",
        _PAIRS,
        _UNIT,
        _UNIT.replace("(dy - ", "(dy + "),
    ),
    Bug("unit weights: not divided", "missing scale", _PAIRS, _UNIT, _UNIT.removesuffix(" / length")),
    Bug(
        "unit weights: measures swapped",
        "swapped",
        _PAIRS,
        'slope = 1 if measure == "sum" else y',
        'slope = y if measure == "sum" else 1',
    ),
    Bug(
        "latent attend: dv by the latent weights",
        "wrong term",
        _PAIRS,
        "dv = weights[..., None] * dy[..., None, :]",
        "dv = latent[..., None] * dy[..., None, :]",
    ),
    Bug(
        "latent attend: w not divided in backward",
        "dropped branch",
        _PAIRS,
        "dw = unit_weights_backward(dweights, unit)",
        "dw = dweights",
    ),
    Bug(
        "latent attend, rows: D not transposed",
        "transposed",
        _PAIRS,
        "dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]",
        "dlatent = (active @ dw[..., None])[..., 0]",
    ),
    Bug(
        "latent attend, rows: dD transposed",
        "transposed",
        _PAIRS,
        "dactive = dw[..., :, None] * latent[..., None, :]",
        "dactive = latent[..., :, None] * dw[..., None, :]",
    ),
    Bug(
        "latent attend, columns: D transposed",
        "transposed",
        _PAIRS,
        "dlatent = (active @ dw[..., None])[..., 0]",
        "dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]",
    ),
    Bug(
        "latent attend, columns: dD transposed",
        "transposed",
        _PAIRS,
        "dactive = latent[..., :, None] * dw[..., None, :]",
        "dactive = dw[..., :, None] * latent[..., None, :]",
    ),
    Bug(
        "latent attend: first softmax skipped",
        "dropped branch",
        _PAIRS,
        _RETURN,
        "return dlatent, softmax_backward(dactive, active), dv",
    ),
    Bug(
        "latent attend: second softmax skipped",
        "dropped branch",
        _PAIRS,
        _RETURN,
        "return softmax_backward(dlatent, latent), dactive, dv",
    ),
    Bug(
        "latent attend: second softmax of the first's weights",
        "wrong term",
        _PAIRS,
        _RETURN,
        "return softmax_backward(dlatent, latent), softmax_backward(dactive, latent[..., None, :]), dv",
    ),
)

LAYER = (
    Bug(
        "LatentAttention: u overwritten",
        "= for +=",
        _LAYER,
        "self.latent_weight.accumulate(dlatent_weight)",
        "self.latent_weight.grad[...] = dlatent_weight",
    ),
    Bug(
        "LatentAttention: V overwritten",
        "= for +=",
        _LAYER,
        "self.active_weight.accumulate(dactive_weight, at=(slice(None), slice(dactive_scores.shape[-1])))",
        "self.active_weight.grad[:, : dactive_scores.shape[-1]] = dactive_weight",
    ),
    Bug(
        "LatentAttention: V's gradient in the last columns",
        "wrong term",
        _LAYER,
        "self.active_weight.accumulate(dactive_weight, at=(slice(None), slice(dactive_scores.shape[-1])))",
        "self.active_weight.grad[:, -dactive_scores.shape[-1] :] += dactive_weight",
    ),
    Bug(
        "LatentAttention: gradient through V lost",
        "dropped branch",
        _LAYER,
        "de = de + de_active",
        "de = de + 0 * de_active",
    ),
    Bug(
        "LatentAttention: gradient through the values lost",
        "lost tie",
        _LAYER,
        "if cache.has_values else de + dvalues",
        "if cache.has_values else de",
    ),
)

READERS = (
    Bug(
        "Answer: output skipped",
        "dropped branch",
        _READER,
        "do = self.output.backward(dlogits, cache.output)",
        "do = 0 * self.output.backward(dlogits, cache.output)",
    ),
    Bug(
        "RecipeReader: no gradient from the action to the states",
        "missing sum",
        _READER,
        "self.reading.backward(dstates_trigger + dstates_action, cache.reading)",
        "self.reading.backward(dstates, cache.reading)",
    ),
    Bug(
        "RecipeReader: no gradient from the action to the values",
        "missing sum",
        _READER,
        "self.tokens.backward(dx_trigger + dx_action + dx_reading, cache.tokens)",
        "self.tokens.backward(dx_trigger + dx_reading, cache.tokens)",
    ),
    Bug(
        "RecipeReader: the encoder's gradient lost",
        "dropped branch",
        _READER,
        "self.tokens.backward(dx_trigger + dx_action + dx_reading, cache.tokens)",
        "self.tokens.backward(dx_trigger + dx_action, cache.tokens)",
    ),
    Bug(
        "BagOfWords: the action's gradient overwrites the trigger's",
        "= for +=",
        _BAG,
        "dmean = dmean + self.action.backward(",
        "dmean = self.action.backward(",
    ),
    Bug(
        "BagOfWords: sum instead of mean",
        "missing scale",
        _BAG,
        "self.tokens.backward(cache.weights[:, :, None] * dmean[:, None], cache.tokens)",
        "self.tokens.backward((cache.weights[:, :, None] > 0) * dmean[:, None], cache.tokens)",
    ),
    Bug(
        "ProgramLoss: the action's loss without dloss",
        "missing scale",
        _LOSS,
        "cross_entropy_backward(dloss, action_cache)",
        "cross_entropy_backward(1.0, action_cache)",
    ),
)

LATENT = (*PAIRS, *LAYER, *READERS)
