"""Bugs in latent attention, and in the models that read recipes."""

from planted_bugs.bug import Bug

_PAIRS = "functional/latent.py"
_LAYER = "attention/latent.py"
_READER = "ifthen/reader.py"
_BAG = "ifthen/bag.py"
_LOSS = "ifthen/loss.py"

_UNIT = "return (dy - slope * (dy * y).sum(-1, keepdims=True)) / length"
_RETURN = "return softmax_backward(dlatent, latent), softmax_backward(dactive, active), dv"

PAIRS = (
    Bug(
        "unit weights: the length taken as given",
        "dropped branch",
        _PAIRS,
        _UNIT,
        "return dy / length",
    ),
    Bug("unit weights: sign of the length's share", "sign", _PAIRS, _UNIT, _UNIT.replace("(dy - ", "(dy + ")),
    Bug("unit weights: not divided", "missing scale", _PAIRS, _UNIT, _UNIT.removesuffix(" / length")),
    Bug(
        "unit weights: measures change places",
        "swapped",
        _PAIRS,
        'slope = 1 if measure == "sum" else y',
        'slope = y if measure == "sum" else 1',
    ),
    Bug(
        "latent look-up: dv by the latent weights",
        "wrong term",
        _PAIRS,
        "dv = weights[..., None] * dy[..., None, :]",
        "dv = latent[..., None] * dy[..., None, :]",
    ),
    Bug(
        "latent look-up: w not divided in backward",
        "dropped branch",
        _PAIRS,
        "dw = unit_weights_backward(dweights, unit)",
        "dw = dweights",
    ),
    Bug(
        "latent look-up, rows: D not transposed",
        "transposed",
        _PAIRS,
        "dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]",
        "dlatent = (active @ dw[..., None])[..., 0]",
    ),
    Bug(
        "latent look-up, rows: dD transposed",
        "transposed",
        _PAIRS,
        "dactive = dw[..., :, None] * latent[..., None, :]",
        "dactive = latent[..., :, None] * dw[..., None, :]",
    ),
    Bug(
        "latent look-up, columns: D transposed",
        "transposed",
        _PAIRS,
        "dlatent = (active @ dw[..., None])[..., 0]",
        "dlatent = (active.swapaxes(-1, -2) @ dw[..., None])[..., 0]",
    ),
    Bug(
        "latent look-up, columns: dD transposed",
        "transposed",
        _PAIRS,
        "dactive = latent[..., :, None] * dw[..., None, :]",
        "dactive = dw[..., :, None] * latent[..., None, :]",
    ),
    Bug(
        "latent look-up: first softmax skipped",
        "dropped branch",
        _PAIRS,
        _RETURN,
        "return dlatent, softmax_backward(dactive, active), dv",
    ),
    Bug(
        "latent look-up: second softmax skipped",
        "dropped branch",
        _PAIRS,
        _RETURN,
        "return softmax_backward(dlatent, latent), dactive, dv",
    ),
    Bug(
        "latent look-up: second softmax of the first's weights",
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
        "self.latent_weight.grad += dlatent_weight",
        "self.latent_weight.grad[...] = dlatent_weight",
    ),
    Bug(
        "LatentAttention: V overwritten",
        "= for +=",
        _LAYER,
        "self.active_weight.grad[:, : dplaces.shape[-1]] += dactive_weight",
        "self.active_weight.grad[:, : dplaces.shape[-1]] = dactive_weight",
    ),
    Bug(
        "LatentAttention: V's gradient in the last columns",
        "wrong term",
        _LAYER,
        "self.active_weight.grad[:, : dplaces.shape[-1]] += dactive_weight",
        "self.active_weight.grad[:, -dplaces.shape[-1] :] += dactive_weight",
    ),
    Bug(
        "LatentAttention: way through V lost",
        "dropped branch",
        _LAYER,
        "de = de + dpointing",
        "de = de + 0 * dpointing",
    ),
    Bug(
        "LatentAttention: way through the values lost",
        "lost tie",
        _LAYER,
        "if cache.given else de + dvalues",
        "if cache.given else de",
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
        "RecipeReader: the action asks no states",
        "missing sum",
        _READER,
        "self.reading.backward(dstates + dmore_states, cache.reading)",
        "self.reading.backward(dstates, cache.reading)",
    ),
    Bug(
        "RecipeReader: the action weights no words",
        "missing sum",
        _READER,
        "self.words.backward(dx + dmore_x + dread, cache.words)",
        "self.words.backward(dx + dread, cache.words)",
    ),
    Bug(
        "RecipeReader: the words were not read",
        "dropped branch",
        _READER,
        "self.words.backward(dx + dmore_x + dread, cache.words)",
        "self.words.backward(dx + dmore_x, cache.words)",
    ),
    Bug(
        "BagOfWords: the action's gradient overwrites the trigger's",
        "= for +=",
        _BAG,
        "dmean = dmean + self.action.backward(",
        "dmean = self.action.backward(",
    ),
    Bug(
        "BagOfWords: sum for mean",
        "missing scale",
        _BAG,
        "self.words.backward(cache.weights[:, :, None] * dmean[:, None], cache.words)",
        "self.words.backward((cache.weights[:, :, None] > 0) * dmean[:, None], cache.words)",
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
