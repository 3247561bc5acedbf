"""Bugs in the fast steps of decoding: joined weights, the KV cache of all layers, and the shared memory."""

from planted_bugs.bug import Place

BUGS = {
    "generation/fast_layers.py": {
        Place("y += self.bias", nth=1, of=2): {"fast decoding: bias of a linear map left out": "pass"},
        Place("y += self.bias", nth=2, of=2): {"fast decoding: bias of a norm left out": "pass"},
        "y *= self.gain": {"fast decoding: norm without its gain": "pass"},
        "np.vecdot(y, y) / width + self.eps": {
            "fast decoding: variance of a norm not divided by the width": "/ width + → +"
        },
        "scores *= self.scale": {"fast decoding: scores not scaled": "pass"},
        "1 / math.sqrt(attention.d_head) if": {
            "fast decoding: scale of the whole width": "d_head → n_heads * attention.d_head"
        },
        "softmax_in_place(scores, allowed)": {
            "fast decoding: padding of the memory not masked": "allowed → None"
        },
        "z = (scores @ v).swapaxes(1, 2)  # (B, T, H, L)": {
            "fast decoding: heads not side by side": "z = scores @ v"
        },
        "x + sublayer(norm(x)) if self.norm_first else norm(x + sublayer(x))": {
            "fast decoding: norm of post-norm before the sublayer": "x + sublayer(norm(x))"
        },
        "else norm(x + sublayer(x))": {
            "fast decoding: residual connection left out": "else norm(sublayer(x))"
        },
    },
    "generation/fast_state.py": {
        "return self.array[layer, :, : position + 1]": {
            "fast decoding: KV cache of the first layer for all": "layer → 0",
            "fast decoding: the newest position not attended to": "position + 1 → max(1, position)",
        },
        "self.array[:, changed, :length] = self.array[:, rows[changed], :length]": {
            "fast decoding: rows of the KV cache read after they are overwritten": (
                "for row in changed: self.array[:, row, :length] = self.array[:, rows[row], :length]"
            ),
            "fast decoding: last position of the KV cache not moved": (
                "self.array[:, changed, : length - 1] = self.array[:, rows[changed], : length - 1]"
            ),
        },
        "= old[:, rows, :length]": {
            "fast decoding: more rows without the old order": "rows, : → np.sort(rows), :"
        },
        "k, v = heads.split(kv[..., : heads.width]), heads.split(kv[..., heads.width :])": {
            "fast decoding: keys and values swapped": "k, v = → v, k ="
        },
        "self.allowed, self.sentences = self.allowed[kept], live": {
            "fast decoding: mask of the memory not reduced with its sentences": "[kept] → [: len(live)]"
        },
        "return z if self.index is None else z[self.index]": {
            "fast decoding: hypotheses in the order of the sentences": (
                "z[self.index] → z[np.sort(self.index)]"
            )
        },
        "index = row * self.n_queries + query": {
            "fast decoding: all hypotheses of a sentence are its first query": "index = row * self.n_queries"
        },
        "self.memory.place(sentence)": {
            "fast decoding: memory of the old sentences after a selection": "pass"
        },
        "model.target.forward(ids, start=self.length)": {
            "fast decoding: positions restart at each step": "self.length → 0"
        },
        "return self._project(x if self.norm is None else self.norm(x))": {
            "fast decoding: last norm left out": "return self._project(x)"
        },
    },
}
