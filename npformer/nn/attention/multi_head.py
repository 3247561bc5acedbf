"""Multi-head attention: Vaswani et al. 2017, section 3.2.2."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.attention import AttentionCache
from npformer.functional.caches import cache_class
from npformer.functional.heads import merge_heads, repeat_heads, repeat_heads_backward, split_heads
from npformer.functional.packing import Packing, pack, unpack
from npformer.kernels import attention, attention_backward, rotate
from npformer.nn.attention.kv_cache import KVCache, PreallocatedKVCache
from npformer.nn.attention.projections import Projection, ProjectionCache
from npformer.nn.checks import check_batches, check_floats
from npformer.nn.context import EVERYTHING, INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng
from npformer.nn.linear import Linear
from npformer.nn.module import Module
from npformer.nn.positions import RotaryPositions
from npformer.validation import require_choice, require_counts

FUSED = {"no": 3, "kv": 2, "qkv": 1}  # the number of projections
NO_ROTATION = (
    "rotary positions need queries and keys of one sentence, and separate keys were given: leave out rotary "
    "for cross-attention"
)


@cache_class
class MultiHeadCache(NamedTuple):
    """The cache of MultiHeadAttention."""

    projections: tuple[ProjectionCache, ...]  # of query, key and value, or fewer if they are fused
    attention: AttentionCache
    output: Any  # the LinearCache of Wo, or None without Wo
    n_inputs: int  # the number of arrays among query, key and value that the caller gave: 1, 2 or 3
    packing: Packing | None = None  # the packing of the queries
    rotation: Any = None  # the RotaryCache of queries and keys, or None without rotary positions


class MultiHeadAttention(Module):
    """Multi-head attention: several attention functions in parallel, each with its own projections.

        y = Concat(head_1 .. head_H) Wo,  head_h = attention(query Wq_h, key Wk_h, value Wv_h)

    forward(x) computes self-attention. forward(x, memory) computes cross-attention, with keys and values from
    the memory. In grouped-query attention, the H query heads share n_kv_heads heads of keys and values. In
    multi-query attention they share one. The KV cache then needs n_kv_heads / H of the memory.
    Shapes: query (B, T, D), key and value (B, S, D) -> y (B, T, D), or (B, T, H·L) without Wo.

    Args:
        d_model: The width D of the inputs and of the output.
        n_heads: The number H of heads.
        n_kv_heads: The number G of heads of keys and values, a divisor of H. The default is H.
        d_head: The width K of the queries and keys of a head. The default is d_model / n_heads.
        d_value: The width L of the values of a head. The default is d_head.
        kdim: The width of the input of the keys, if it is not d_model. Then fused must be "no".
        vdim: The width of the input of the values, if it is not d_model. Then fused must be "no".
        bias: Add biases to the linear maps.
        output: Multiply the concatenated heads by Wo.
        output_bias: Add a bias to the product with Wo. The default is bias.
        fused: The projections that are computed by one matrix product: "qkv" (for self-attention), "kv"
            (for cross-attention) or "no".
        activation: The activation of q, k and v, one of ACTIVATIONS. The preset jianshu-demo uses "relu".
        dropout: The dropout probability of the attention weights.
        scale: Divide the scores by sqrt(K).
        rotary: The rotation of queries and keys by their positions, for self-attention. The default is none.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If a setting is impossible, if the shapes of the arrays do not agree, or if a mask has
            another dtype or shape.

    Source: Vaswani et al. 2017, section 3.2.2; Shazeer 2019 (multi-query attention); Ainslie et al. 2023,
        section 2.2 (grouped-query attention); Su et al. 2021 (rotary positions).
    """

    uses_query_index = False  # True if the scores depend on the index of a query, and not on its vector only

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_head: int | None = None,
        d_value: int | None = None,
        kdim: int | None = None,
        vdim: int | None = None,
        bias: bool = True,
        output: bool = True,
        output_bias: bool | None = None,
        fused: str = "no",
        activation: str = "none",
        dropout: float = 0.0,
        scale: bool = True,
        rotary: RotaryPositions | None = None,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        rng = default_rng(rng)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        kdim, vdim = d_model if kdim is None else kdim, d_model if vdim is None else vdim
        _check_heads(d_model, n_heads, n_kv_heads, d_head)
        _check_fused(fused, d_model, kdim, vdim)
        self.n_heads, self.n_kv_heads, self.n_repeats = n_heads, n_kv_heads, n_heads // n_kv_heads
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.d_value = self.d_head if d_value is None else d_value
        require_counts(d_head=self.d_head, d_value=self.d_value)
        self.d_inputs = d_model, kdim, vdim
        self.fused, self.dropout, self.rotary = fused, dropout, rotary
        self.scale = None if scale else 1.0  # None stands for 1 / sqrt(K)

        self._make_projections(activation=activation, bias=bias, rng=rng, dtype=dtype)
        width = n_heads * self.d_value  # H·L
        output_bias = bias if output_bias is None else output_bias
        self.output = Linear(width, d_model, bias=output_bias, rng=rng, dtype=dtype) if output else None

    def forward(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        mask: Array | AttentionMask | None = None,
        *,
        query_mask: Array | None = None,
        train: bool = False,
        rng: np.random.Generator | None = None,
        context: Context | None = None,
    ) -> tuple[Array, MultiHeadCache]:
        """Compute the attention of each query to the keys.

        Args:
            query: The input of the queries, of shape (B, T, D).
            key: The input of the keys, of shape (B, S, D). The default is query.
            value: The input of the values, of shape (B, S, D). The default is key.
            mask: Bool, broadcastable to (B, H, T, S). True means that the query may attend to the key. Or an
                AttentionMask, which also contains the query mask and the packing.
            query_mask: Bool, broadcastable to (B, H, T, 1). False at queries that are padding.
            train: True turns dropout on.
            rng: The generator for dropout.
            context: A Context, which replaces train and rng.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        mask = AttentionMask.of(mask, query_mask)
        context = Context(train, rng) if context is None else context
        n_inputs = self._count_inputs(key, value)
        key = query if key is None else key
        value = key if value is None else value
        key_packing = mask.packing if n_inputs == 1 else mask.key_packing
        self._check_arrays(query, key, value, mask.packing, key_packing)

        # q = query Wq, k = key Wk, v = value Wv: (B, H, T, K), (B, G, S, K) and (B, G, S, L)
        (q, k, v), projections = self.project(query, key, value, mask.packing, key_packing)
        rotation = None
        if self.rotary is not None:
            q, rotation = self.rotary.forward(q)
            k, _ = rotate(k, *rotation)  # with the cosines and sines of the same positions
        if self.n_repeats > 1:  # several query heads share a head of keys and values
            k, _ = repeat_heads(k, self.n_repeats)  # (B, H, S, K)
            v, _ = repeat_heads(v, self.n_repeats)  # (B, H, S, L)
        z, attention_cache = self.attend(q, k, v, mask, context)  # (B, H, T, L)
        y = pack(merge_heads(z), mask.packing)  # Concat(z_1 .. z_H): (B, T, H·L)
        output = None
        if self.output is not None:
            y, output = self.output.forward(y)  # (B, T, D)
        return y, MultiHeadCache(projections, attention_cache, output, n_inputs, mask.packing, rotation)

    def backward(self, dy: Array, cache: MultiHeadCache) -> Any:
        """Return the gradients of the arrays that forward was given.

        These are dquery, (dquery, dkey) or (dquery, dkey, dvalue), of the shapes (B, T, D), (B, S, D) and
        (B, S, D).
        """
        # y = Concat(z_1 .. z_H) Wo
        if self.output is not None:
            dy = self.output.backward(dy, cache.output)  # (B, T, H·L)
        dz = split_heads(unpack(dy, cache.packing), self.n_heads)  # (B, H, T, L)
        # z = softmax(q kᵀ / sqrt(K)) v
        dq, dk, dv = self.attend_backward(dz, cache.attention)
        # k, v = repeat_heads(k), repeat_heads(v): the gradients of all copies are added
        if self.n_repeats > 1:
            dk = repeat_heads_backward(dk, self.n_repeats)  # (B, G, S, K)
            dv = repeat_heads_backward(dv, self.n_repeats)  # (B, G, S, L)
        # q, k = rotary(q), rotary(k)
        if self.rotary is not None:
            dq, dk = self.rotary.backward(dq, cache.rotation), self.rotary.backward(dk, cache.rotation)
        # q, k, v = query Wq, key Wk, value Wv
        grads = self.project_backward(dq, dk, dv, cache)  # one for each projection
        if cache.n_inputs == 3:
            return tuple(grads)
        if cache.n_inputs == 2:  # keys and values were computed from one array, so their gradients are added
            return grads[0], sum(grads[2:], grads[1])
        return sum(grads[1:], grads[0])  # queries, keys and values were computed from one array

    def project(
        self,
        query: Array,
        key: Array,
        value: Array,
        packing: Packing | None = None,
        key_packing: Packing | None = None,
    ) -> tuple[list[Array], tuple[ProjectionCache, ...]]:
        """Compute the queries, keys and values of all heads.

        Args:
            query: The input of the queries, of shape (B, T, D), or packed rows (N, D).
            key: The input of the keys, of shape (B, S, D), or packed rows.
            value: The input of the values, of shape (B, S, D), or packed rows.
            packing: The packing of the queries, or None.
            key_packing: The packing of the keys and values, or None.

        Returns:
            The list [q, k, v] of shapes (B, H, T, K), (B, G, S, K) and (B, G, S, L), and the caches.
        """
        inputs = (query, packing), (key, key_packing), (value, key_packing)
        heads, caches = [], []
        for projection, (x, x_packing) in zip(self.projections, inputs, strict=False):
            parts, cache = projection.project(x, x_packing)  # [q], [k] and [v], or [k, v], or [q, k, v]
            heads += parts
            caches.append(cache)
        return heads, tuple(caches)

    def project_backward(self, dq: Array, dk: Array, dv: Array, cache: MultiHeadCache) -> list[Array]:
        """Compute the gradients of the inputs of the projections.

        Args:
            dq: The gradient of the queries, of shape (B, H, T, K).
            dk: The gradient of the keys, of shape (B, G, S, K).
            dv: The gradient of the values, of shape (B, G, S, L).
            cache: The cache of forward.

        Returns:
            The gradient of the input of each projection: [dquery, dkey, dvalue], or fewer if projections are
            fused.
        """
        dheads, grads = [dq, dk, dv], []
        for projection, projection_cache in zip(self.projections, cache.projections, strict=True):
            n = len(projection.widths)
            grads.append(projection.project_backward(dheads[:n], projection_cache))
            dheads = dheads[n:]
        return grads

    def attend(
        self, q: Array, k: Array, v: Array, mask: AttentionMask = EVERYTHING, context: Context = INFERENCE
    ) -> tuple[Array, Any]:
        """Compute the attention of each head. Subclasses replace this method.

        Args:
            q: The queries, of shape (B, H, T, K).
            k: The keys, of shape (B, H, S, K).
            v: The values, of shape (B, H, S, L).
            mask: The masks.
            context: The settings of the forward pass.

        Returns:
            z, of shape (B, H, T, L), and the cache.
        """
        p = context.dropout(self.dropout)
        return attention(q, k, v, mask.pairs, scale=self.scale, p=p, rng=context.rng)

    def attend_backward(self, dz: Array, cache: Any) -> tuple[Array, Array, Array]:
        """Return the gradients dq (B, H, T, K), dk (B, H, S, K) and dv (B, H, S, L)."""
        return attention_backward(dz, cache)

    # Decoding: the keys and values of earlier positions come from a KV cache, and no backward pass follows.

    def decode_step(
        self,
        x: Array,
        kv_cache: KVCache | PreallocatedKVCache | None = None,
        mask: Array | AttentionMask | None = None,
    ) -> tuple[Array, Any]:
        """Compute self-attention for the next positions, which follow those of the KV cache.

        Args:
            x: The vectors of the next positions, of shape (B, T, D).
            kv_cache: The keys and values of the S positions before. None at the first position begins a
                KVCache, and an empty PreallocatedKVCache is extended in place.
            mask: Bool, broadcastable to (B, H, T, S + T). True means that the query may attend to the key.
                The default allows all keys, which is right for T = 1. For more positions, or for a window,
                give causal_mask(T, x, window=window, start=S).

        Returns:
            y, of shape (B, T, D), and the keys and values of all S + T positions.
        """
        (q, k, v), _ = self.project(x, x, x)
        if self.rotary is not None:
            start = 0 if kv_cache is None else kv_cache.length
            q, k = self.rotary(q, start), self.rotary(k, start)
        kv_cache = KVCache(k, v) if kv_cache is None else kv_cache.extended(k, v)
        return self._attend(q, kv_cache, mask), kv_cache

    def project_memory(self, memory: Array) -> KVCache:
        """Return the keys and values of the memory (B, S, D), which are computed once for each sentence.

        Raises:
            UserError: If the layer has rotary positions.
        """
        if self.rotary is not None:
            raise UserError(NO_ROTATION)
        (_, k, v), _ = self.project(memory[:, :0], memory, memory)  # no queries yet
        return KVCache(k, v)

    def attend_memory(self, x: Array, memory_kv: KVCache, mask: Array | AttentionMask | None = None) -> Array:
        """Compute the cross-attention of x to the memory.

        Args:
            x: The vectors of the decoder, of shape (B, T, D).
            memory_kv: The result of project_memory.
            mask: Bool, broadcastable to (B, H, T, S). True means that the query may attend to the key.

        Returns:
            y, of shape (B, T, D).
        """
        (q,), _ = self.query.project(x)
        return self._attend(q, memory_kv, mask)

    def _attend(
        self, q: Array, kv_cache: KVCache | PreallocatedKVCache, mask: Array | AttentionMask | None
    ) -> Array:
        """Return y, of shape (B, T, D), for the queries q (B, H, T, K)."""
        mask = AttentionMask.of(mask)
        if self.n_repeats > 1 and q.shape[2] == 1 and not self.uses_query_index:
            z = self._attend_shared(q, kv_cache, mask)
        else:
            k, _ = repeat_heads(kv_cache.k, self.n_repeats)
            v, _ = repeat_heads(kv_cache.v, self.n_repeats)
            z, _ = self.attend(q, k, v, mask)
        y = merge_heads(z)
        return y if self.output is None else self.output(y)

    def _attend_shared(self, q: Array, kv_cache: KVCache | PreallocatedKVCache, mask: AttentionMask) -> Array:
        """Compute the attention of one position without copies of the keys and values for each query head.

        The R query heads that share a head of keys become R queries of one head.
        Shapes: q (B, H, 1, K) -> z (B, H, 1, L).
        """
        batch, n_heads, _, width = q.shape
        groups, allowed = (self.n_kv_heads, self.n_repeats), mask.allowed
        if allowed is not None and allowed.ndim > 2 and allowed.shape[-3] > 1:  # a mask for each query head
            allowed = allowed.reshape(*allowed.shape[:-3], *groups, allowed.shape[-1])
        q = q.reshape(batch, *groups, width)  # (B, G, R, K)
        z, _ = self.attend(q, kv_cache.k, kv_cache.v, replace(mask, allowed=allowed))  # (B, G, R, L)
        return z.reshape(batch, n_heads, 1, z.shape[-1])

    # Projections that are computed together, and checks of what the caller gives.

    def _make_projections(self, **settings: Any) -> None:
        """Make Wq, Wk and Wv, or fewer wider matrices that hold several of them side by side."""
        d_model, kdim, vdim = self.d_inputs
        h, g = self.n_heads, self.n_kv_heads
        q, k, v = h * self.d_head, g * self.d_head, g * self.d_value  # the widths of all heads together
        if self.fused == "qkv":
            self.query_key_value = Projection(d_model, [q, k, v], [h, g, g], **settings)
            return
        self.query = Projection(d_model, [q], [h], **settings)
        if self.fused == "kv":
            self.key_value = Projection(d_model, [k, v], [g, g], **settings)
        else:
            self.key = Projection(kdim, [k], [g], **settings)
            self.value = Projection(vdim, [v], [g], **settings)

    @property
    def projections(self) -> list[Projection]:
        """The projections of query, key and value, or fewer if several are fused."""
        if self.fused == "qkv":
            return [self.query_key_value]
        return [self.query, self.key_value] if self.fused == "kv" else [self.query, self.key, self.value]

    def _count_inputs(self, key: Array | None, value: Array | None) -> int:
        """Return the number of arrays among query, key and value that the caller gave.

        Fused projections allow fewer than three.
        """
        if key is None and value is not None:
            raise UserError("value was given without key: give both, or neither")
        n_inputs = 1 + (key is not None) + (value is not None)
        if self.rotary is not None and n_inputs > 1:
            raise UserError(NO_ROTATION)
        most = FUSED[self.fused]
        if n_inputs > most:
            raise UserError(
                f'projections fused as "{self.fused}" take {most} of query, key and value, and {n_inputs} '
                'were given: use fused="no"'
            )
        return n_inputs

    def _check_arrays(
        self,
        query: Array,
        key: Array,
        value: Array,
        packing: Packing | None,
        key_packing: Packing | None,
    ) -> None:
        """Check the shapes of the inputs, (B, T, D) or packed rows (N, D)."""
        layer = type(self).__name__
        d_model, kdim, vdim = self.d_inputs
        for name, x, x_packing, width in (
            ("query", query, packing, d_model),
            ("key", key, key_packing, kdim),
            ("value", value, key_packing, vdim),
        ):
            check_floats(x, ("B", "T", width) if x_packing is None else ("N", width), layer, name)
        if packing is None and key_packing is None:
            check_batches(layer, query=query, key=key, value=value)
            if key.shape[1] != value.shape[1]:
                raise UserError(
                    f"{layer} takes a value for each key and got key of shape {key.shape} and value of shape "
                    f"{value.shape}: make the second axes equal"
                )


def _check_heads(d_model: int, n_heads: int, n_kv_heads: int, d_head: int | None) -> None:
    """Check that the width can be divided among the heads, and the query heads among the heads of keys."""
    require_counts(d_model=d_model, n_heads=n_heads, n_kv_heads=n_kv_heads)
    if d_head is None and d_model % n_heads:
        raise UserError(
            f"d_model {d_model} is not divisible by {n_heads} heads: change one of them, or give d_head"
        )
    if n_heads % n_kv_heads:
        raise UserError(
            f"{n_heads} query heads cannot share {n_kv_heads} heads of keys and values equally: make "
            "n_kv_heads a divisor of n_heads"
        )


def _check_fused(fused: str, d_model: int, kdim: int, vdim: int) -> None:
    """Check that projections are fused in a known way, and only if their inputs have one width."""
    require_choice("fused", fused, tuple(FUSED))
    if fused != "no" and not d_model == kdim == vdim:
        raise UserError(
            f'projections fused as "{fused}" have one input, and d_model is {d_model}, kdim {kdim} and vdim '
            f'{vdim}: make them equal, or use fused="no"'
        )
