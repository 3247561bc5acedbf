"""Multi-head attention: Vaswani et al. 2017, section 3.2.2."""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module
from npformer.errors import UserError
from npformer.functional.activations import ACTIVATIONS
from npformer.functional.attention import AttentionCache
from npformer.functional.heads import merge_heads, split_heads
from npformer.functional.linear import LinearCache
from npformer.functional.masking import EXACT
from npformer.functional.packing import pack, unpack
from npformer.kernels import attention, attention_backward
from npformer.layers.init import default_rng
from npformer.layers.linear import Linear
from npformer.module import Module

FUSED = ("no", "kv", "qkv")


class MultiHeadCache(NamedTuple):
    """The cache of MultiHeadAttention."""

    projections: tuple  # of LinearCache: query, key, value; or query, key_value; or query_key_value
    activations: tuple  # of each product
    attention: AttentionCache
    output: LinearCache | None
    given: int  # how many of query, key, value the caller gave
    packings: tuple  # of queries, keys and values; None where nothing is packed


class KeysValues(NamedTuple):
    """Keys and values that decoding keeps, so that no position is projected twice."""

    k: Any  # (B, H, S, K)
    v: Any  # (B, H, S, L)


class MultiHeadAttention(Module):
    """y = Concat(head_1 .. head_H) Wo, with head_h = attention(query Wq_h, key Wk_h, value Wv_h).

    Self-attention is forward(x); cross-attention is forward(x, memory): keys and values from memory.
    d_head and d_value are the widths of a head's keys and values, d_model / n_heads unless given.
    fused lays weights side by side so that one product makes several: "qkv" for self-attention, "kv"
    where keys and values come from elsewhere than queries, "no" for three products.
    output=False leaves out Wo, activation is applied to q, k and v (the first document has a ReLU),
    rate is the dropout on the attention weights, scale=False leaves out 1 / sqrt(K).
    Shapes: query (B, T, D), key and value (B, S, D), mask bool broadcastable to (B, H, T, S),
    query_mask to (B, H, T, 1) -> y (B, T, D), or (B, T, H·L) without Wo.
    Errors: UserError for settings or arrays that do not fit, or a mask of another dtype or shape.
    """

    def __init__(
        self,
        d_model,
        n_heads,
        *,
        d_head=None,
        d_value=None,
        bias=True,
        output=True,
        fused="no",
        activation="none",
        rate=0.0,
        scale=True,
        masking=EXACT,
        rng=None,
        dtype=np.float32,
    ):
        rng = default_rng(rng)
        if d_head is None and (n_heads < 1 or d_model % n_heads):
            raise UserError(
                f"d_model {d_model} is not divisible by {n_heads} heads: change one of them, or give d_head"
            )
        if fused not in FUSED:
            raise UserError(f"fused is {fused!r}: choose one of {', '.join(FUSED)}")
        self.n_heads = n_heads
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.d_value = self.d_head if d_value is None else d_value
        self.fused, self.activation, self.rate, self.masking = fused, activation, rate, masking
        self.scale = None if scale else 1.0  # None is attention's own 1 / sqrt(K)

        def project(width):
            return Linear(d_model, width, bias=bias, rng=rng, dtype=dtype)

        keys, values = n_heads * self.d_head, n_heads * self.d_value  # H·K, H·L
        self.cuts = (keys, 2 * keys)  # where q ends and k ends in a product that makes all three
        if fused == "qkv":
            self.query_key_value = project(2 * keys + values)
        elif fused == "kv":
            self.query, self.key_value = project(keys), project(keys + values)
        else:
            self.query, self.key, self.value = project(keys), project(keys), project(values)
        self.output = Linear(values, d_model, bias=bias, rng=rng, dtype=dtype) if output else None

    def forward(
        self,
        query,
        key=None,
        value=None,
        mask=None,
        *,
        query_mask=None,
        train=False,
        rng=None,
        packing=None,
        key_packing=None,
    ):
        """Without value, values come from key; without key, both come from query. Returns (y, cache).

        packing and key_packing: where the words stand, when query and key are packed rows (N, D).
        """
        given = 1 + (key is not None) + (value is not None)
        self._check_given(key, value, given)
        key = query if key is None else key
        value = key if value is None else value
        key_packing = packing if given == 1 else key_packing
        packings = (packing, key_packing, key_packing)
        (q, k, v), projections, activations = self.project(query, key, value, packings)
        rate = self.rate if train else 0
        z, attended = self.attend(q, k, v, mask, query_mask=query_mask, rate=rate, rng=rng)  # (B, H, T, L)
        y, output = pack(merge_heads(z), packing), None  # (B, T, H·L)
        if self.output is not None:
            y, output = self.output.forward(y)  # (B, T, D)
        return y, MultiHeadCache(projections, activations, attended, output, given, packings)

    def backward(self, dy, cache):
        """Returns dquery, or (dquery, dkey), or (dquery, dkey, dvalue): one for each array given."""
        # y = Concat(heads) Wo
        if self.output is not None:
            dy = self.output.backward(dy, cache.output)  # (B, T, H·L)
        dz = split_heads(unpack(dy, cache.packings[0]), self.n_heads)  # (B, H, T, L)
        # z = softmax(q kᵀ / sqrt(K)) v
        dq, dk, dv = self.attend_backward(dz, cache.attention)
        grads = self.project_backward(dq, dk, dv, cache)  # one for each product
        if cache.given == 3:
            return tuple(grads)
        if cache.given == 2:  # one array gave keys and values: its gradients add up
            return grads[0], _total(grads[1:])
        return _total(grads)  # one array gave all three

    def attend(self, q, k, v, mask=None, *, query_mask=None, rate=0.0, rng=None):
        """What each head does; another kind of attention does something else here. Returns (z, cache)."""
        return attention(
            q, k, v, mask, query_mask=query_mask, masking=self.masking, scale=self.scale, rate=rate, rng=rng
        )

    def attend_backward(self, dz, cache):
        """Returns (dq, dk, dv)."""
        return attention_backward(dz, cache)

    def project(self, query, key, value, packings=(None, None, None)):
        """Returns ((q, k, v), linear caches, activation caches), the three split into heads."""
        activate, _ = ACTIVATIONS[self.activation]
        given = (query, key, value)
        products, projections, activations = [], [], []
        for layer, which in self._products():
            y, projection = layer.forward(given[which])
            y, activation = activate(y)
            products.append(unpack(y, packings[which]))
            projections.append(projection)
            activations.append(activation)
        heads = [split_heads(part, self.n_heads) for part in self._cut(products)]
        return heads, tuple(projections), tuple(activations)

    def project_backward(self, dq, dk, dv, cache):
        """Returns the gradients through each product: of three arrays, or of fewer where they are fused."""
        _, activate_backward = ACTIVATIONS[self.activation]
        dproducts = self._join([merge_heads(dpart) for dpart in (dq, dk, dv)])
        grads = []
        for i, (layer, which) in enumerate(self._products()):
            dy = pack(dproducts[i], cache.packings[which])
            dy = activate_backward(dy, cache.activations[i])
            grads.append(layer.backward(dy, cache.projections[i]))
        return grads

    def _products(self):
        """The linear layers, each with the place of its input among (query, key, value)."""
        if self.fused == "qkv":
            return [(self.query_key_value, 0)]
        if self.fused == "kv":
            return [(self.query, 0), (self.key_value, 1)]
        return [(self.query, 0), (self.key, 1), (self.value, 2)]

    def _cut(self, products):
        """q, k and v, which the products hold side by side. Shapes: (B, T, ...) -> three of (B, T, H·K)."""
        q_end, k_end = self.cuts
        if self.fused == "qkv":
            (y,) = products  # (B, T, 2·H·K + H·L)
            return [y[..., :q_end], y[..., q_end:k_end], y[..., k_end:]]
        if self.fused == "kv":
            q, y = products  # y (B, S, H·K + H·L)
            return [q, y[..., :q_end], y[..., q_end:]]
        return products

    def _join(self, dparts):
        """The gradients of q, k and v as gradients of the products: _cut's backward pass."""
        xp = array_module(dparts[0])
        if self.fused == "qkv":
            return [xp.concatenate(dparts, -1)]
        if self.fused == "kv":
            return [dparts[0], xp.concatenate(dparts[1:], -1)]
        return dparts

    def _check_given(self, key, value, given):
        if key is None and value is not None:
            raise UserError("value was given without key: give both, or neither")
        most = {"no": 3, "kv": 2, "qkv": 1}[self.fused]
        if given > most:
            raise UserError(
                f'projections fused as "{self.fused}" take {most} of query, key and value, and {given} were '
                'given: use fused="no"'
            )

    # Inference, one position after another: keys and values of earlier positions are kept.

    def remember(self, memory):
        """Keys and values of an encoder's output, made once a sentence. Shapes: memory (B, S, D)."""
        (_, k, v), _, _ = self.project(memory[:, :0], memory, memory)  # no queries yet
        return KeysValues(k, v)

    def step(self, x, past=None, mask=None):
        """Self-attention for the positions that come next, after those in `past`.

        Shapes: x (B, T, D), past (B, H, S, K), mask broadcastable to (B, H, T, S + T).
        Returns (y, past and x's own keys and values).
        """
        (q, k, v), _, _ = self.project(x, x, x)
        if past is not None:
            xp = array_module(k)
            k, v = xp.concatenate([past.k, k], 2), xp.concatenate([past.v, v], 2)
        return self._look(q, k, v, mask), KeysValues(k, v)

    def recall(self, x, memory: KeysValues, mask=None):
        """Cross-attention of x to what `remember` kept. Shapes: x (B, T, D) -> y (B, T, D)."""
        activate, _ = ACTIVATIONS[self.activation]
        q, _ = self.query.forward(x)
        q, _ = activate(q)
        return self._look(split_heads(q, self.n_heads), memory.k, memory.v, mask)

    def _look(self, q, k, v, mask):
        z, _ = self.attend(q, k, v, mask)
        y = merge_heads(z)
        return y if self.output is None else self.output.forward(y)[0]


def _total(grads):
    """The sum of the gradients that reach one array along several ways."""
    total = grads[0]
    for grad in grads[1:]:
        total = total + grad
    return total
