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
        Place("self.gain.accumulate(dgain)", nth=1, of=3): [
            ("LayerNorm: gain", "= for +=", "self.gain.grad = dgain"),
            ("LayerNorm: gain lost", "dropped branch", "pass"),
        ],
        Place("self.bias.accumulate(dbias)", nth=1, of=2): [
            ("LayerNorm: bias", "= for +=", "self.bias.grad[...] = dbias"),
            ("LayerNorm: bias lost", "dropped branch", "pass"),
        ],
        "dx, dgain, dbias = layer_norm_backward(dy, cache)": [
            ("LayerNorm: gain and bias swapped", "swapped", "dgain, dbias → dbias, dgain"),
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
        "self.weight.accumulate(dy.sum(0), at=slice(start, start + length))": [
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
    "nn/residual.py": {
        "dx = dy + self.norm.backward(dh, cache.norm)": [
            ("Residual, pre-norm: identity path lost", "dropped branch", "dy + self → self"),
            ("Residual, pre-norm: sublayer path lost", "dropped branch", "dx = dy"),
            ("Residual, pre-norm: sign", "sign", "dx = dy - self.norm.backward(dh, cache.norm)"),
            (
                "Residual, pre-norm: norm's dx lost",
                "dropped branch",
                "self.norm.backward(dh, cache.norm)\n        dx = dy + dh",
            ),
            (
                "Residual, pre-norm: norm on the identity path too",
                "wrong term",
                "dx = self.norm.backward(dy + dh, cache.norm)",
            ),
        ],
        "dh = self.dropout.backward(dy, cache.dropout_mask)": [
            ("Residual, pre-norm: dropout skipped", "wrong mask", "dh = dy"),
            ("Residual, pre-norm: dropout on the identity path too", "wrong mask", "self. → dy = self."),
            (
                "Residual, pre-norm: sublayer path halved",
                "missing scale",
                "dropout_mask) → dropout_mask) / 2",
            ),
        ],
        Place("dh, others = _split(sublayer_backward(dh, cache.sublayer))", nth=1, of=3): [
            ("Residual, pre-norm: sublayer skipped", "dropped branch", "others = ()"),
        ],
        Place("dx = dx + dh", nth=1, of=2): [
            ("Residual, post-norm: identity path lost", "dropped branch", "dx = dh"),
            ("Residual, post-norm: sublayer path lost", "dropped branch", "pass"),
            ("Residual, post-norm: sign", "sign", "dx = dx - dh"),
        ],
        Place("dh, others = _split(sublayer_backward(dh, cache.sublayer))", nth=2, of=3): [
            ("Residual, post-norm: sublayer skipped", "dropped branch", "others = ()"),
        ],
        "dx, dh = self.norm.backward(dy, cache.add_norm)": [
            ("Residual, post-norm: norm skipped", "dropped branch", "dx = dh = dy"),
        ],
        "dx, dh, dgain, dbias = add_norm_backward(dy, cache)": [
            ("AddNorm: dx and dh swapped", "swapped", "dh, dx, dgain, dbias = add_norm_backward(dy, cache)"),
            ("AddNorm: gain and bias swapped", "swapped", "dgain, dbias → dbias, dgain"),
        ],
        "self.gain.accumulate(dgain)": [("AddNorm: gain lost", "dropped branch", "pass")],
        "self.bias.accumulate(dbias)": [("AddNorm: bias", "= for +=", "self.bias.grad[...] = dbias")],
        "return (gradients[0], gradients[1:]) if": [
            (
                "Residual: other gradients of the sublayer lost",
                "dropped branch",
                "gradients[1:] → (0 * gradients[1],)",
            ),
        ],
        "for letter in reversed(self.after):": [
            ("SequenceResidual: letters in forward order", "wrong term", "for letter in self.after:"),
        ],
        "dx = dh  # a sum": [
            ("SequenceResidual: identity path lost", "dropped branch", "dx = 0 * dh  # a sum"),
            ("SequenceResidual: identity path halved", "missing scale", "dx = dh / 2  # a sum"),
        ],
        "dh = self.dropout.backward(dh, cache.dropout_mask)": [
            ("SequenceResidual: dropout skipped", "wrong mask", "dh = dh"),
        ],
        "dh = self.norm_before.backward(dh, cache.norm_before)": [
            ("SequenceResidual: norm before skipped", "dropped branch", "dh = dh"),
        ],
        Place("dx = dx + dh", nth=2, of=2): [
            ("SequenceResidual: sublayer path lost", "dropped branch", "dx = dx + 0 * dh"),
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
