"""Bugs in the layers: lost, overwritten or misplaced gradients of parameters, and the residual."""

from planted_bugs.bug import Bug

_LINEAR = "layers/linear.py"
_NORM = "layers/norm.py"
_EMBEDDING = "layers/embedding.py"
_BIAS = "self.bias.grad += dbias"

LINEAR_AND_NORM = (
    Bug("Linear: weight", "= for +=", _LINEAR, "self.weight.grad += dweight", "self.weight.grad = dweight"),
    Bug("Linear: weight lost", "dropped branch", _LINEAR, "self.weight.grad += dweight", "pass"),
    Bug("Linear: weight sign", "sign", _LINEAR, "self.weight.grad += dweight", "self.weight.grad -= dweight"),
    Bug("Linear: bias", "= for +=", _LINEAR, _BIAS, "self.bias.grad[...] = dbias"),
    Bug("Linear: bias lost", "dropped branch", _LINEAR, _BIAS, "pass"),
    Bug("LayerNorm: gain", "= for +=", _NORM, "self.gain.grad += dgain", "self.gain.grad = dgain"),
    Bug("LayerNorm: gain lost", "dropped branch", _NORM, "self.gain.grad += dgain", "pass"),
    Bug("LayerNorm: bias", "= for +=", _NORM, _BIAS, "self.bias.grad[...] = dbias"),
    Bug("LayerNorm: bias lost", "dropped branch", _NORM, _BIAS, "pass"),
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
        "layers/dropout.py",
        "return dropout_backward(dy, cache)",
        "return dy / (1 - self.rate)",
    ),
)

_TABLE = "dtable = embedding_backward(dy, cache, out=grad)"
_TIED = "self.weight.grad += dweight.T"

EMBEDDINGS = (
    Bug(
        "Embedding: weight",
        "= for +=",
        _EMBEDDING,
        _TABLE,
        "dtable = embedding_backward(dy, cache, out=0 * grad)\n        grad[...] = 0",
    ),
    Bug("Embedding: weight lost", "dropped branch", _EMBEDDING, _TABLE, "dtable = grad"),
    Bug("TiedProjection: weight", "= for +=", _EMBEDDING, _TIED, "self.weight.grad[...] = dweight.T"),
    Bug("TiedProjection: weight lost", "lost tie", _EMBEDDING, _TIED, "pass"),
    Bug(
        "TiedProjection: weight reshaped",
        "transposed",
        _EMBEDDING,
        _TIED,
        "self.weight.grad += dweight.reshape(self.weight.shape)",
    ),
    Bug("TiedProjection: bias lost", "dropped branch", _EMBEDDING, _BIAS, "pass"),
)

_POSITIONS = "layers/positions.py"
_LEARNED = "self.weight.grad[start : start + length] += dy.sum(0)"
_INPUT = "layers/input.py"

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
        "dx = self.dropout.backward(dy, cache.keep)",
        "dx = dy",
    ),
    Bug(
        "InputEmbedding: positions past the dropout",
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
        "InputEmbedding: words lost", "dropped branch", _INPUT, "self.words.backward(dx, cache.words)", "pass"
    ),
)

_RESIDUAL = "layers/residual.py"
_JOIN = "return dy, self.dropout.backward(dy, cache.keep)"
_ENTER = "return dx + dh"
_ENTER_NORM = "dh = self.norm.backward(dh, cache.entered)"

RESIDUAL = (
    Bug(
        "Residual: way round lost at the sum",
        "dropped branch",
        _RESIDUAL,
        _JOIN,
        "return 0 * dy, self.dropout.backward(dy, cache.keep)",
    ),
    Bug("Residual: dropout skipped", "wrong mask", _RESIDUAL, _JOIN, "return dy, dy"),
    Bug(
        "Residual: dropout on the way round too",
        "wrong mask",
        _RESIDUAL,
        _JOIN,
        "return 2 * (self.dropout.backward(dy, cache.keep),)",
    ),
    Bug(
        "Residual: sum halved",
        "missing scale",
        _RESIDUAL,
        _JOIN,
        "return dy / 2, self.dropout.backward(dy, cache.keep) / 2",
    ),
    Bug(
        "Residual, post-norm: norm's dx lost",
        "dropped branch",
        _RESIDUAL,
        "return dx, dh\n",
        "return dy, dh\n",
    ),
    Bug(
        "Residual, post-norm: norm skipped",
        "dropped branch",
        _RESIDUAL,
        "dx, dh, dgain, dbias = residual_norm_backward(dy, joined)",
        "_, _, dgain, dbias = residual_norm_backward(dy, joined)\n        dx = dh = dy",
    ),
    Bug(
        "Residual, post-norm: gain lost",
        "dropped branch",
        _RESIDUAL,
        "self.norm.gain.grad += dgain",
        "pass",
    ),
    Bug(
        "Residual, post-norm: bias",
        "= for +=",
        _RESIDUAL,
        "self.norm.bias.grad += dbias",
        "self.norm.bias.grad[...] = dbias",
    ),
    Bug("Residual: way round lost at the start", "dropped branch", _RESIDUAL, _ENTER, "return dh"),
    Bug("Residual: way through lost", "dropped branch", _RESIDUAL, _ENTER, "return dx"),
    Bug("Residual: sign", "sign", _RESIDUAL, _ENTER, "return dx - dh"),
    Bug(
        "Residual, pre-norm: norm's dx lost",
        "dropped branch",
        _RESIDUAL,
        _ENTER_NORM,
        "self.norm.backward(dh, cache.entered)",
    ),
    Bug(
        "Residual, pre-norm: norm over the way round too",
        "wrong term",
        _RESIDUAL,
        _ENTER_NORM,
        "return self.norm.backward(dx + dh, cache.entered)",
    ),
)

_SEQUENCE = "layers/sequence.py"

SEQUENCE = (
    Bug(
        "SequenceResidual: letters in forward order",
        "wrong term",
        _SEQUENCE,
        "for letter in reversed(self.after):",
        "for letter in self.after:",
    ),
    Bug(
        "SequenceResidual: way round lost",
        "dropped branch",
        _SEQUENCE,
        "dx = dh  # a sum",
        "dx = 0 * dh  # a sum",
    ),
    Bug(
        "SequenceResidual: way round halved",
        "missing scale",
        _SEQUENCE,
        "dx = dh  # a sum",
        "dx = dh / 2  # a sum",
    ),
    Bug(
        "SequenceResidual: dropout skipped",
        "wrong mask",
        _SEQUENCE,
        "dh = self.dropout.backward(dh, cache.keep)",
        "dh = dh",
    ),
    Bug(
        "SequenceResidual: norm before skipped",
        "dropped branch",
        _SEQUENCE,
        "dh = self.norm_before.backward(dh, cache.entered)",
        "dh = dh",
    ),
    Bug(
        "SequenceResidual: way through lost",
        "dropped branch",
        _SEQUENCE,
        "return dx + dh",
        "return dx + 0 * dh",
    ),
)

_FEED_FORWARD = "layers/feed_forward.py"

FEED_FORWARD = (
    Bug(
        "FeedForward: activation skipped",
        "dropped branch",
        _FEED_FORWARD,
        "dh = activate_backward(dh, cache.activation)",
        "dh = dh",
    ),
    Bug(
        "FeedForward: dropout skipped",
        "wrong mask",
        _FEED_FORWARD,
        "dh = self.dropout.backward(dh, cache.keep)",
        "dh = dh",
    ),
    Bug(
        "FeedForward: outer and inner swapped",
        "swapped",
        _FEED_FORWARD,
        "dh = self.outer.backward(dy, cache.outer)",
        "dh = self.inner.backward(dy, cache.inner)",
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
