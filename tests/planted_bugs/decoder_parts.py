"""Bugs in the parts of decoder-only models: RMS norm, rotary positions, gates and shared heads."""

from planted_bugs.bug import Bug

_RMS = "functional/rms_norm.py"
_RMS_DX = "dx = rrms * (dxhat - xhat * along)"
_NORM_LAYER = "nn/norm.py"

RMS_NORM = (
    Bug("RMS norm: rrms left out", "missing scale", _RMS, _RMS_DX, "dx = dxhat - xhat * along"),
    Bug("RMS norm: term through the mean square", "dropped branch", _RMS, _RMS_DX, "dx = rrms * dxhat"),
    Bug("RMS norm: sign of the mean square", "sign", _RMS, _RMS_DX, "dx = rrms * (dxhat + xhat * along)"),
    Bug(
        "RMS norm: along summed",
        "missing scale",
        _RMS,
        "along = (dxhat * xhat).mean(-1, keepdims=True)",
        "along = (dxhat * xhat).sum(-1, keepdims=True)",
    ),
    Bug("RMS norm: gain left out", "missing scale", _RMS, "dxhat = dy * gain", "dxhat = dy"),
    Bug(
        "RMS norm: dgain over one axis",
        "missing sum",
        _RMS,
        "dgain = (dy * xhat).sum(rows)",
        "dgain = (dy * xhat).sum(0)",
    ),
    Bug(
        "RMSNorm: gain",
        "= for +=",
        _NORM_LAYER,
        "self.gain.accumulate(dgain)",
        "self.gain.grad = dgain",
        nth=2,
        of=3,
    ),
    Bug(
        "RMSNorm: gain lost",
        "dropped branch",
        _NORM_LAYER,
        "self.gain.accumulate(dgain)",
        "pass",
        nth=2,
        of=3,
    ),
)

_ROTARY = "functional/rotary.py"
_POSITIONS = "nn/positions.py"
_KV_CACHE = "nn/attention/kv_cache.py"

ROTARY = (
    Bug(
        "rotary: backward rotates forward",
        "sign",
        _ROTARY,
        "dx, _ = rotate(dy, cos, -sin, layout)",
        "dx, _ = rotate(dy, cos, sin, layout)",
    ),
    Bug(
        "rotary: backward in the other layout",
        "swapped",
        _ROTARY,
        "dx, _ = rotate(dy, cos, -sin, layout)",
        'dx, _ = rotate(dy, cos, -sin, "halves" if layout == "interleaved" else "interleaved")',
    ),
    Bug(
        "rotary: sine and cosine swapped in the second number",
        "swapped",
        _ROTARY,
        "y[..., second] = a * sin + b * cos",
        "y[..., second] = a * cos + b * sin",
    ),
    Bug(
        "rotary: angles of all columns, not of pairs",
        "wrong term",
        _ROTARY,
        "-np.arange(0, width, 2) / width",
        "-np.arange(width // 2) / width",
    ),
    Bug(
        "RotaryPositions: positions restart at each call",
        "wrong term",
        _POSITIONS,
        "return table[start : start + length]",
        "return table[:length]",
    ),
    Bug(
        "RotaryPositions: backward skipped",
        "dropped branch",
        _POSITIONS,
        "return rotate_backward(dy, cache)",
        "return dy",
    ),
)

_GATED = "functional/gated.py"
_FEED_FORWARD = "nn/feed_forward.py"
_PRODUCT = "dactivated, dvalue = dy * cache.value, dy * cache.activated"
_SWAPPED = "dvalue, dactivated = dy * cache.value, dy * cache.activated"
_BOTH = "return self.gate.backward(dgate, cache.gate) + self.value.backward(dvalue, cache.value)"

GATED = (
    Bug("swiglu: factors swapped", "swapped", _GATED, _PRODUCT, _SWAPPED, nth=1, of=2),
    Bug(
        "swiglu: activation skipped",
        "dropped branch",
        _GATED,
        "return swish_backward(dactivated, cache.activation), dvalue",
        "return dactivated, dvalue",
    ),
    Bug("geglu: factors swapped", "swapped", _GATED, _PRODUCT, _SWAPPED, nth=2, of=2),
    Bug(
        "geglu: gradients swapped",
        "swapped",
        _GATED,
        "return gelu_backward(dactivated, cache.activation), dvalue",
        "return dvalue, gelu_backward(dactivated, cache.activation)",
    ),
    Bug(
        "GatedFeedForward: gradient through the gate",
        "dropped branch",
        _FEED_FORWARD,
        _BOTH,
        "return self.value.backward(dvalue, cache.value)",
    ),
    Bug(
        "GatedFeedForward: gate and value swapped",
        "swapped",
        _FEED_FORWARD,
        _BOTH,
        "return self.gate.backward(dvalue, cache.gate) + self.value.backward(dgate, cache.value)",
    ),
    Bug(
        "GatedFeedForward: dropout skipped",
        "wrong mask",
        _FEED_FORWARD,
        "dh = dropout_backward(dh, cache.dropout_mask)",
        "dh = dh",
    ),
)

_HEADS = "functional/heads.py"
_SUM = "return dy.reshape(batch, n_heads // n_repeats, n_repeats, length, width).sum(2)"
_LAYER = "nn/attention/multi_head.py"
_SHARE = "dk, dv = self.share_backward(dk), self.share_backward(dv)"
_ROTATE = "return self.rotary.backward(dq, cache), self.rotary.backward(dk, cache)"

SHARED_HEADS = (
    Bug("repeat heads: averaged", "missing sum", _HEADS, _SUM, _SUM.replace(".sum(2)", ".mean(2)")),
    Bug("repeat heads: first copy only", "missing sum", _HEADS, _SUM, _SUM.replace(".sum(2)", "[:, :, 0]")),
    Bug(
        "repeat heads: summed over the groups",
        "transposed",
        _HEADS,
        _SUM,
        "return dy.reshape(batch, n_repeats, n_heads // n_repeats, length, width).sum(1)",
    ),
    Bug(
        "multi-head, grouped: dv of the first query head of each group",
        "missing sum",
        _LAYER,
        _SHARE,
        "dk, dv = self.share_backward(dk), dv[:, :: self.n_heads // self.n_kv_heads]",
    ),
    Bug(
        "multi-head: shared heads averaged",
        "missing sum",
        _LAYER,
        "return repeat_heads_backward(dy, self.n_heads // self.n_kv_heads)",
        "return repeat_heads_backward(dy, self.n_heads // self.n_kv_heads) * self.n_kv_heads / self.n_heads",
    ),
    Bug(
        "multi-head, rotary: dk not rotated back",
        "dropped branch",
        _LAYER,
        _ROTATE,
        "return self.rotary.backward(dq, cache), dk",
    ),
    Bug(
        "multi-head, rotary: dq and dk swapped",
        "swapped",
        _LAYER,
        _ROTATE,
        "return self.rotary.backward(dk, cache), self.rotary.backward(dq, cache)",
    ),
    Bug(
        "decoding, rotary: positions restart at each step",
        "wrong term",
        _KV_CACHE,
        "q, k, _ = self.rotate(q, k, start=0 if kv_cache is None else kv_cache.length)",
        "q, k, _ = self.rotate(q, k, start=0)",
    ),
    Bug(
        "KV cache: each step overwrites the first positions",
        "wrong term",
        _KV_CACHE,
        "new = slice(self.length, self.length + n_new)",
        "new = slice(0, n_new)",
    ),
    Bug(
        "KV cache: the lengths of the sentences are not reordered",
        "lost tie",
        _KV_CACHE,
        "else self.length[to_numpy(rows)]",
        "else self.length",
    ),
    Bug(
        "decoding, shared keys: the query heads of a group are interleaved",
        "transposed",
        _KV_CACHE,
        "q = q.reshape(batch, n_groups, n_heads // n_groups, width)  # (B, G, R, K)",
        "q = q.reshape(batch, n_heads // n_groups, n_groups, width).swapaxes(1, 2)",
    ),
)

WINDOW = (
    Bug(
        "causal mask: window one too long",
        "wrong mask",
        "functional/masks.py",
        "return (query >= key) & (query < key + window)",
        "return (query >= key) & (query <= key + window)",
    ),
    Bug(
        "causal mask: the start left out",
        "wrong mask",
        "functional/masks.py",
        "query = xp.arange(start, start + length)[:, None]",
        "query = xp.arange(length)[:, None]",
    ),
)

_GPT = "models/gpt.py"
_FEED = (
    "dx = self.feed_forward_residual.backward(dy, cache.feed_forward_residual, self.feed_forward.backward)"
)

MODEL = (
    Bug("GPT block: feed-forward network skipped", "dropped branch", _GPT, _FEED, "dx = dy"),
    Bug(
        "GPT block: attention skipped",
        "dropped branch",
        _GPT,
        "return self.attention_residual.backward(dx, cache.attention_residual, self.attention.backward)",
        "return dx",
    ),
    Bug("GPT: final norm skipped", "dropped branch", _GPT, "dx = self.norm.backward(dx, cache.norm)", "pass"),
    Bug(
        "GPT: layers in forward order",
        "transposed",
        _GPT,
        "zip(self.layers[::-1], cache.layers[::-1], strict=True)",
        "zip(self.layers, cache.layers, strict=True)",
    ),
    Bug(
        "GPT: embedding lost",
        "dropped branch",
        _GPT,
        "self.embedding.backward(dx, cache.embedding)",
        "pass",
    ),
)

DECODER_PARTS = (*RMS_NORM, *ROTARY, *GATED, *SHARED_HEADS, *WINDOW, *MODEL)
