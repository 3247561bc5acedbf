"""Bugs in the layers: lost, overwritten or misplaced gradients of parameters, and the residual."""

from planted_bugs.bug import Place

BUGS = {
    "nn/linear.py": {
        "self.weight.accumulate(dweight)": {
            "Linear: weight": "self.weight.grad = dweight",
            "Linear: weight lost": "pass",
            "Linear: weight sign": "self.weight.grad -= dweight",
        },
        "self.bias.accumulate(dbias)": {
            "Linear: bias": "self.bias.grad[...] = dbias",
            "Linear: bias lost": "pass",
        },
    },
    "nn/norm.py": {
        Place("self.gain.accumulate(dgain)", nth=1, of=4): {
            "LayerNorm: gain": "self.gain.grad = dgain",
            "LayerNorm: gain lost": "pass",
        },
        Place("self.bias.accumulate(dbias)", nth=1, of=3): {
            "LayerNorm: bias": "self.bias.grad[...] = dbias",
            "LayerNorm: bias lost": "pass",
        },
        "dx, dgain, dbias = layer_norm_backward(dy, cache)": {
            "LayerNorm: gain and bias swapped": "dgain, dbias → dbias, dgain"
        },
        "dx, dh, dgain, dbias = add_norm_backward(dy, cache)": {
            "AddNorm: dx and dh swapped": "dh, dx, dgain, dbias = add_norm_backward(dy, cache)",
            "AddNorm: gain and bias swapped": "dgain, dbias → dbias, dgain",
        },
        Place("self.gain.accumulate(dgain)", nth=2, of=4): {"AddNorm: gain lost": "pass"},
        Place("self.bias.accumulate(dbias)", nth=2, of=3): {"AddNorm: bias": "self.bias.grad[...] = dbias"},
    },
    "nn/dropout.py": {
        "return dropout_backward(dy, cache)": {"Dropout: scaled but not dropped": "return dy / (1 - self.p)"}
    },
    "nn/embedding.py": {
        "self.weight.accumulate(embedding_backward(dy, cache))": {
            "Embedding: weight": "self.weight.grad = embedding_backward(dy, cache)",
            "Embedding: weight lost": "pass",
        },
        "self.weight.accumulate(dweight.T)": {
            "TiedProjection: weight": "self.weight.grad[...] = dweight.T",
            "TiedProjection: weight lost": "pass",
            "TiedProjection: weight reshaped": "T → evaluate().reshape(self.weight.shape)",
        },
        "self.bias.accumulate(dbias)": {"TiedProjection: bias lost": "pass"},
        "dx = self.dropout.backward(dy, cache.dropout_mask)": {"InputEmbedding: dropout skipped": "dx = dy"},
        "self.positions.backward(dx, cache.positions)": {
            "InputEmbedding: positions bypass the dropout": "dx → dy",
            "InputEmbedding: positions lost": "pass",
        },
        "self.tokens.backward(dx, cache.tokens)": {"InputEmbedding: tokens lost": "pass"},
    },
    "nn/positions.py": {
        "self.weight.accumulate(total.astype(dy.dtype, copy=False), at=slice(start, start + length))": {
            "LearnedPositions: weight": "self.weight.grad[start : start + length] = dy.sum(0)",
            "LearnedPositions: from one sentence": "self.weight.grad[start : start + length] += dy[0]",
            "LearnedPositions: averaged": "self.weight.grad[start : start + length] += dy.mean(0)",
            "LearnedPositions: as if at the start": "self.weight.grad[:length] += dy.sum(0)",
        }
    },
    "nn/feed_forward.py": {
        "dh = activation_dropout_backward(dh, cache.hidden)": {
            "FeedForward: activation and dropout skipped": "dh = dh"
        },
        Place("dh = self.outer.backward(dy, cache.outer)", nth=1, of=2): {
            "FeedForward: outer and inner swapped": "dh = self.inner.backward(dy, cache.inner)"
        },
        "return self.inner.backward(dh, cache.inner)": {
            "FeedForward: sign of dx": "return -self.inner.backward(dh, cache.inner)"
        },
    },
}
