"""Bugs in the layers: lost, overwritten or misplaced gradients of parameters, and the residual."""

from planted_bugs.bug import Place

BUGS = {
    "nn/linear.py": {
        "self.weight.accumulate(dweight)": [
            ("Linear: weight", "= for +=", "self.weight.grad = dweight"),
            ("Linear: weight lost", "dropped branch", "pass"),
            ("Linear: weight sign", "sign", "self.weight.grad -= dweight"),
        ],
        "self.bias.accumulate(dbias)": [
            ("Linear: bias", "= for +=", "self.bias.grad[...] = dbias"),
            ("Linear: bias lost", "dropped branch", "pass"),
        ],
    },
    "nn/norm.py": {
        Place("self.gain.accumulate(dgain)", nth=1, of=4): [
            ("LayerNorm: gain", "= for +=", "self.gain.grad = dgain"),
            ("LayerNorm: gain lost", "dropped branch", "pass"),
        ],
        Place("self.bias.accumulate(dbias)", nth=1, of=3): [
            ("LayerNorm: bias", "= for +=", "self.bias.grad[...] = dbias"),
            ("LayerNorm: bias lost", "dropped branch", "pass"),
        ],
        "dx, dgain, dbias = layer_norm_backward(dy, cache)": [
            ("LayerNorm: gain and bias swapped", "swapped", "dgain, dbias → dbias, dgain"),
        ],
        "dx, dh, dgain, dbias = add_norm_backward(dy, cache)": [
            ("AddNorm: dx and dh swapped", "swapped", "dh, dx, dgain, dbias = add_norm_backward(dy, cache)"),
            ("AddNorm: gain and bias swapped", "swapped", "dgain, dbias → dbias, dgain"),
        ],
        Place("self.gain.accumulate(dgain)", nth=2, of=4): [("AddNorm: gain lost", "dropped branch", "pass")],
        Place("self.bias.accumulate(dbias)", nth=2, of=3): [
            ("AddNorm: bias", "= for +=", "self.bias.grad[...] = dbias")
        ],
    },
    "nn/dropout.py": {
        "return dropout_backward(dy, cache)": [
            ("Dropout: scaled but not dropped", "wrong mask", "return dy / (1 - self.p)"),
        ],
    },
    "nn/embedding.py": {
        "self.weight.accumulate(embedding_backward(dy, cache))": [
            ("Embedding: weight", "= for +=", "self.weight.grad = embedding_backward(dy, cache)"),
            ("Embedding: weight lost", "dropped branch", "pass"),
        ],
        "self.weight.accumulate(dweight.T)": [
            ("TiedProjection: weight", "= for +=", "self.weight.grad[...] = dweight.T"),
            ("TiedProjection: weight lost", "lost tie", "pass"),
            ("TiedProjection: weight reshaped", "transposed", "T → evaluate().reshape(self.weight.shape)"),
        ],
        "self.bias.accumulate(dbias)": [("TiedProjection: bias lost", "dropped branch", "pass")],
        "dx = self.dropout.backward(dy, cache.dropout_mask)": [
            ("InputEmbedding: dropout skipped", "wrong mask", "dx = dy"),
        ],
        "self.positions.backward(dx, cache.positions)": [
            ("InputEmbedding: positions bypass the dropout", "wrong mask", "dx → dy"),
            ("InputEmbedding: positions lost", "dropped branch", "pass"),
        ],
        "self.tokens.backward(dx, cache.tokens)": [("InputEmbedding: tokens lost", "dropped branch", "pass")],
    },
    "nn/positions.py": {
        "self.weight.accumulate(total.astype(dy.dtype, copy=False), at=slice(start, start + length))": [
            ("LearnedPositions: weight", "= for +=", "self.weight.grad[start : start + length] = dy.sum(0)"),
            (
                "LearnedPositions: from one sentence",
                "missing sum",
                "self.weight.grad[start : start + length] += dy[0]",
            ),
            (
                "LearnedPositions: averaged",
                "missing sum",
                "self.weight.grad[start : start + length] += dy.mean(0)",
            ),
            ("LearnedPositions: as if at the start", "wrong term", "self.weight.grad[:length] += dy.sum(0)"),
        ],
    },
    "nn/feed_forward.py": {
        "dh = activation_dropout_backward(dh, cache.hidden)": [
            ("FeedForward: activation and dropout skipped", "dropped branch", "dh = dh"),
        ],
        Place("dh = self.outer.backward(dy, cache.outer)", nth=1, of=2): [
            ("FeedForward: outer and inner swapped", "swapped", "dh = self.inner.backward(dy, cache.inner)"),
        ],
        "return self.inner.backward(dh, cache.inner)": [
            ("FeedForward: sign of dx", "sign", "return -self.inner.backward(dh, cache.inner)"),
        ],
    },
}
