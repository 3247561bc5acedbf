"""Bugs in the layers: lost, overwritten or misplaced gradients of parameters, and the residual."""

from planted_bugs.bug import Bug

_LINEAR = "nn/linear.py"
_NORM = "nn/norm.py"
_EMBEDDING = "nn/embedding.py"
_BIAS = "self.bias.accumulate(dbias)"

LINEAR_AND_NORM = (
    Bug(
        "Linear: weight", "= for +=", _LINEAR, "self.weight.accumulate(dweight)", "self.weight.grad = dweight"
    ),
    Bug("Linear: weight lost", "dropped branch", _LINEAR, "self.weight.accumulate(dweight)", "pass"),
    Bug(
        "Linear: weight sign",
        "sign",
        _LINEAR,
        "self.weight.accumulate(dweight)",
        "self.weight.grad -= dweight",
    ),
    Bug("Linear: bias", "= for +=", _LINEAR, _BIAS, "self.bias.grad[...] = dbias"),
    Bug("Linear: bias lost", "dropped branch", _LINEAR, _BIAS, "pass"),
    Bug(
        "LayerNorm: gain",
        "= for +=",
        _NORM,
        "self.gain.accumulate(dgain)",
        "self.gain.grad = dgain",
        nth=1,
        of=3,
    ),
    Bug("LayerNorm: gain lost", "dropped branch", _NORM, "self.gain.accumulate(dgain)", "pass", nth=1, of=3),
    Bug("LayerNorm: bias", "= for +=", _NORM, _BIAS, "self.bias.grad[...] = dbias", nth=1, of=2),
    Bug("LayerNorm: bias lost", "dropped branch", _NORM, _BIAS, "pass", nth=1, of=2),
    Bug(
        "LayerNorm: gain and bias swapped",
        "swapped",
        _NORM,
        "dx, dgain, dbias = layer_norm_backward(dy, cache)",
        "dx, dbias, dgain = layer_norm_backward(dy, cache)",
    ),
    Bug(
        "Dropout: scaled but not dropped",
        "wrong mask",
        "nn/dropout.py",
        "return dropout_backward(dy, cache)",
        "return dy / (1 - self.p)",
    ),
)

_TABLE = "self.weight.accumulate(embedding_backward(dy, cache))"
_TIED = "self.weight.accumulate(dweight.T)"

EMBEDDINGS = (
    Bug(
        "Embedding: weight",
        "= for +=",
        _EMBEDDING,
        _TABLE,
        "self.weight.grad = embedding_backward(dy, cache)",
    ),
    Bug("Embedding: weight lost", "dropped branch", _EMBEDDING, _TABLE, "pass"),
    Bug("TiedProjection: weight", "= for +=", _EMBEDDING, _TIED, "self.weight.grad[...] = dweight.T"),
    Bug("TiedProjection: weight lost", "lost tie", _EMBEDDING, _TIED, "pass"),
    Bug(
        "TiedProjection: weight reshaped",
        "transposed",
        _EMBEDDING,
        _TIED,
        "self.weight.accumulate(dweight.evaluate().reshape(self.weight.shape))",
    ),
    Bug("TiedProjection: bias lost", "dropped branch", _EMBEDDING, _BIAS, "pass"),
)

_POSITIONS = "nn/positions.py"
_LEARNED = "self.weight.accumulate(dy.sum(0), at=slice(start, start + length))"
_INPUT = "nn/embedding.py"

INPUT = (
    Bug(
        "LearnedPositions: weight",
        "= for +=",
        _POSITIONS,
        _LEARNED,
        "self.weight.grad[start : start + length] = dy.sum(0)",
    ),
    Bug(
        "LearnedPositions: from one sentence",
        "missing sum",
        _POSITIONS,
        _LEARNED,
        "self.weight.grad[start : start + length] += dy[0]",
    ),
    Bug(
        "LearnedPositions: averaged",
        "missing sum",
        _POSITIONS,
        _LEARNED,
        "self.weight.grad[start : start + length] += dy.mean(0)",
    ),
    Bug(
        "LearnedPositions: as if at the start",
        "wrong term",
        _POSITIONS,
        _LEARNED,
        "self.weight.grad[:length] += dy.sum(0)",
    ),
    Bug(
        "InputEmbedding: dropout skipped",
        "wrong mask",
        _INPUT,
        "dx = self.dropout.backward(dy, cache.dropout_mask)",
        "dx = dy",
    ),
    Bug(
        "InputEmbedding: positions bypass the dropout",
        "wrong mask",
        _INPUT,
        "self.positions.backward(dx, cache.positions)",
        "self.positions.backward(dy, cache.positions)",
    ),
    Bug(
        "InputEmbedding: positions lost",
        "dropped branch",
        _INPUT,
        "self.positions.backward(dx, cache.positions)",
        "pass",
    ),
    Bug(
        "InputEmbedding: tokens lost",
        "dropped branch",
        _INPUT,
        "self.tokens.backward(dx, cache.tokens)",
        "pass",
    ),
)

_RESIDUAL = "nn/residual.py"
_SPLIT = "dh, others = _split(sublayer_backward(dh, cache.sublayer))"

RESIDUAL = (
    Bug(
        "Residual, pre-norm: identity path lost",
        "dropped branch",
        _RESIDUAL,
        "dx = dy + self.norm.backward(dh, cache.norm)",
        "dx = self.norm.backward(dh, cache.norm)",
    ),
    Bug(
        "Residual, pre-norm: sublayer path lost",
        "dropped branch",
        _RESIDUAL,
        "dx = dy + self.norm.backward(dh, cache.norm)",
        "dx = dy",
    ),
    Bug(
        "Residual, pre-norm: sign",
        "sign",
        _RESIDUAL,
        "dx = dy + self.norm.backward(dh, cache.norm)",
        "dx = dy - self.norm.backward(dh, cache.norm)",
    ),
    Bug(
        "Residual, pre-norm: norm's dx lost",
        "dropped branch",
        _RESIDUAL,
        "dx = dy + self.norm.backward(dh, cache.norm)",
        "self.norm.backward(dh, cache.norm)\n        dx = dy + dh",
    ),
    Bug(
        "Residual, pre-norm: norm on the identity path too",
        "wrong term",
        _RESIDUAL,
        "dx = dy + self.norm.backward(dh, cache.norm)",
        "dx = self.norm.backward(dy + dh, cache.norm)",
    ),
    Bug(
        "Residual, pre-norm: dropout skipped",
        "wrong mask",
        _RESIDUAL,
        "dh = self.dropout.backward(dy, cache.dropout_mask)",
        "dh = dy",
    ),
    Bug(
        "Residual, pre-norm: dropout on the identity path too",
        "wrong mask",
        _RESIDUAL,
        "dh = self.dropout.backward(dy, cache.dropout_mask)",
        "dh = dy = self.dropout.backward(dy, cache.dropout_mask)",
    ),
    Bug(
        "Residual, pre-norm: sublayer path halved",
        "missing scale",
        _RESIDUAL,
        "dh = self.dropout.backward(dy, cache.dropout_mask)",
        "dh = self.dropout.backward(dy, cache.dropout_mask) / 2",
    ),
    Bug(
        "Residual, pre-norm: sublayer skipped",
        "dropped branch",
        _RESIDUAL,
        _SPLIT,
        "others = ()",
        nth=1,
        of=3,
    ),
    Bug(
        "Residual, post-norm: identity path lost",
        "dropped branch",
        _RESIDUAL,
        "dx = dx + dh",
        "dx = dh",
        nth=1,
        of=2,
    ),
    Bug(
        "Residual, post-norm: sublayer path lost",
        "dropped branch",
        _RESIDUAL,
        "dx = dx + dh",
        "pass",
        nth=1,
        of=2,
    ),
    Bug("Residual, post-norm: sign", "sign", _RESIDUAL, "dx = dx + dh", "dx = dx - dh", nth=1, of=2),
    Bug(
        "Residual, post-norm: sublayer skipped",
        "dropped branch",
        _RESIDUAL,
        _SPLIT,
        "others = ()",
        nth=2,
        of=3,
    ),
    Bug(
        "Residual, post-norm: norm skipped",
        "dropped branch",
        _RESIDUAL,
        "dx, dh = self.norm.backward(dy, cache.add_norm)",
        "dx = dh = dy",
    ),
    Bug(
        "AddNorm: dx and dh swapped",
        "swapped",
        _RESIDUAL,
        "dx, dh, dgain, dbias = add_norm_backward(dy, cache)",
        "dh, dx, dgain, dbias = add_norm_backward(dy, cache)",
    ),
    Bug(
        "AddNorm: gain and bias swapped",
        "swapped",
        _RESIDUAL,
        "dx, dh, dgain, dbias = add_norm_backward(dy, cache)",
        "dx, dh, dbias, dgain = add_norm_backward(dy, cache)",
    ),
    Bug("AddNorm: gain lost", "dropped branch", _RESIDUAL, "self.gain.accumulate(dgain)", "pass"),
    Bug("AddNorm: bias", "= for +=", _RESIDUAL, _BIAS, "self.bias.grad[...] = dbias"),
    Bug(
        "Residual: other gradients of the sublayer lost",
        "dropped branch",
        _RESIDUAL,
        "return (gradients[0], gradients[1:]) if",
        "return (gradients[0], (0 * gradients[1],)) if",
    ),
)

SEQUENCE = (
    Bug(
        "SequenceResidual: letters in forward order",
        "wrong term",
        _RESIDUAL,
        "for letter in reversed(self.after):",
        "for letter in self.after:",
    ),
    Bug(
        "SequenceResidual: identity path lost",
        "dropped branch",
        _RESIDUAL,
        "dx = dh  # a sum",
        "dx = 0 * dh  # a sum",
    ),
    Bug(
        "SequenceResidual: identity path halved",
        "missing scale",
        _RESIDUAL,
        "dx = dh  # a sum",
        "dx = dh / 2  # a sum",
    ),
    Bug(
        "SequenceResidual: dropout skipped",
        "wrong mask",
        _RESIDUAL,
        "dh = self.dropout.backward(dh, cache.dropout_mask)",
        "dh = dh",
    ),
    Bug(
        "SequenceResidual: norm before skipped",
        "dropped branch",
        _RESIDUAL,
        "dh = self.norm_before.backward(dh, cache.norm_before)",
        "dh = dh",
    ),
    Bug(
        "SequenceResidual: sublayer path lost",
        "dropped branch",
        _RESIDUAL,
        "dx = dx + dh",
        "dx = dx + 0 * dh",
        nth=2,
        of=2,
    ),
)

_FEED_FORWARD = "nn/feed_forward.py"

FEED_FORWARD = (
    Bug(
        "FeedForward: activation and dropout skipped",
        "dropped branch",
        _FEED_FORWARD,
        "dh = activation_dropout_backward(dh, cache.hidden)",
        "dh = dh",
    ),
    Bug(
        "FeedForward: outer and inner swapped",
        "swapped",
        _FEED_FORWARD,
        "dh = self.outer.backward(dy, cache.outer)",
        "dh = self.inner.backward(dy, cache.inner)",
        nth=1,
        of=2,
    ),
    Bug(
        "FeedForward: sign of dx",
        "sign",
        _FEED_FORWARD,
        "return self.inner.backward(dh, cache.inner)",
        "return -self.inner.backward(dh, cache.inner)",
    ),
)

LAYERS = (*LINEAR_AND_NORM, *EMBEDDINGS, *INPUT, *RESIDUAL, *SEQUENCE, *FEED_FORWARD)
