"""Bugs in the fast steps of decoding: joined weights, the KV cache of all layers, and the shared memory."""

from planted_bugs.bug import Bug

_LAYERS = "generation/fast_layers.py"
_STATE = "generation/fast_state.py"

MAPS = (
    Bug(
        "fast decoding: bias of a linear map left out",
        "dropped branch",
        _LAYERS,
        "y += self.bias",
        "pass",
        1,
        2,
    ),
    Bug("fast decoding: bias of a norm left out", "dropped branch", _LAYERS, "y += self.bias", "pass", 2, 2),
    Bug("fast decoding: norm without its gain", "missing scale", _LAYERS, "y *= self.gain", "pass"),
    Bug(
        "fast decoding: variance of a norm not divided by the width",
        "missing scale",
        _LAYERS,
        "np.vecdot(y, y) / width + self.eps",
        "np.vecdot(y, y) + self.eps",
    ),
    Bug("fast decoding: scores not scaled", "missing scale", _LAYERS, "scores *= self.scale", "pass"),
    Bug(
        "fast decoding: scale of the whole width",
        "missing scale",
        _LAYERS,
        "1 / math.sqrt(attention.d_head) if",
        "1 / math.sqrt(attention.n_heads * attention.d_head) if",
    ),
    Bug(
        "fast decoding: padding of the memory not masked",
        "wrong mask",
        _LAYERS,
        "softmax_in_place(scores, allowed)",
        "softmax_in_place(scores, None)",
    ),
    Bug(
        "fast decoding: heads not side by side",
        "transposed",
        _LAYERS,
        "z = (scores @ v).swapaxes(1, 2)  # (B, T, H, L)",
        "z = scores @ v",
    ),
    Bug(
        "fast decoding: norm of post-norm before the sublayer",
        "swapped",
        _LAYERS,
        "x + sublayer(norm(x)) if self.norm_first else norm(x + sublayer(x))",
        "x + sublayer(norm(x))",
    ),
    Bug(
        "fast decoding: residual connection left out",
        "dropped branch",
        _LAYERS,
        "else norm(x + sublayer(x))",
        "else norm(sublayer(x))",
    ),
)

CACHE = (
    Bug(
        "fast decoding: KV cache of the first layer for all",
        "lost tie",
        _STATE,
        "return self.array[layer, :, : position + 1]",
        "return self.array[0, :, : position + 1]",
    ),
    Bug(
        "fast decoding: the newest position not attended to",
        "wrong mask",
        _STATE,
        "return self.array[layer, :, : position + 1]",
        "return self.array[layer, :, : max(1, position)]",
    ),
    Bug(
        "fast decoding: rows of the KV cache read after they are overwritten",
        "swapped",
        _STATE,
        "self.array[:, changed, :length] = self.array[:, rows[changed], :length]",
        "for row in changed: self.array[:, row, :length] = self.array[:, rows[row], :length]",
    ),
    Bug(
        "fast decoding: last position of the KV cache not moved",
        "wrong term",
        _STATE,
        "self.array[:, changed, :length] = self.array[:, rows[changed], :length]",
        "self.array[:, changed, : length - 1] = self.array[:, rows[changed], : length - 1]",
    ),
    Bug(
        "fast decoding: more rows without the old order",
        "wrong term",
        _STATE,
        "= old[:, rows, :length]",
        "= old[:, np.sort(rows), :length]",
    ),
    Bug(
        "fast decoding: keys and values swapped",
        "swapped",
        _STATE,
        "k, v = heads.split(kv[..., : heads.width]), heads.split(kv[..., heads.width :])",
        "v, k = heads.split(kv[..., : heads.width]), heads.split(kv[..., heads.width :])",
    ),
)

MEMORY = (
    Bug(
        "fast decoding: mask of the memory not reduced with its sentences",
        "wrong mask",
        _STATE,
        "self.allowed, self.sentences = self.allowed[kept], live",
        "self.allowed, self.sentences = self.allowed[: len(live)], live",
    ),
    Bug(
        "fast decoding: hypotheses in the order of the sentences",
        "wrong term",
        _STATE,
        "return z if self.index is None else z[self.index]",
        "return z if self.index is None else z[np.sort(self.index)]",
    ),
    Bug(
        "fast decoding: all hypotheses of a sentence are its first query",
        "wrong term",
        _STATE,
        "index = row * self.n_queries + query",
        "index = row * self.n_queries",
    ),
    Bug(
        "fast decoding: memory of the old sentences after a selection",
        "lost tie",
        _STATE,
        "self.memory.place(sentence)",
        "pass",
    ),
    Bug(
        "fast decoding: positions restart at each step",
        "wrong term",
        _STATE,
        "model.target.forward(ids, start=self.length)",
        "model.target.forward(ids, start=0)",
    ),
    Bug(
        "fast decoding: last norm left out",
        "dropped branch",
        _STATE,
        "return self._project(x if self.norm is None else self.norm(x))",
        "return self._project(x)",
    ),
)

FAST_DECODING = (*MAPS, *CACHE, *MEMORY)
