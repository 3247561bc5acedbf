"""Multi-head attention: Vaswani et al. 2017, section 3.2.2."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.attention import AttentionCache
from npformer.functional.caches import cache_class
from npformer.functional.heads import merge_heads, repeat_heads, repeat_heads_backward, split_heads
from npformer.functional.packing import Packing, pack, unpack
from npformer.kernels import attention, attention_backward, rotate
from npformer.nn.attention.checks import check_arrays, check_fused, check_heads, check_inputs
from npformer.nn.attention.decoding import AttentionDecoding
from npformer.nn.attention.projections import Projection, ProjectionCache
from npformer.nn.context import EVERYTHING, INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng
from npformer.nn.linear import Linear
from npformer.nn.module import Module
from npformer.nn.positions import RotaryPositions
from npformer.validation import require_counts


@cache_class
class MultiHeadCache(NamedTuple):
    """The cache of MultiHeadAttention."""

    projections: tuple[ProjectionCache, ...]  # of query, key and value, or fewer if they are fused
    attention: AttentionCache
    output: Any  # the LinearCache of Wo, or None without Wo
    n_inputs: int  # the number of arrays among query, key and value that the caller gave: 1, 2 or 3
    packing: Packing | None = None  # the packing of the queries
    rotation: Any = None  # the RotaryCache of queries and keys, or None without rotary positions


class MultiHeadAttention(AttentionDecoding, Module):
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
        check_heads(d_model, n_heads, n_kv_heads, d_head)
        check_fused(fused, d_model, kdim, vdim)
        self.n_heads, self.n_kv_heads, self.n_repeats = n_heads, n_kv_heads, n_heads // n_kv_heads
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.d_value = self.d_head if d_value is None else d_value
        require_counts(d_head=self.d_head, d_value=self.d_value, kdim=kdim, vdim=vdim)
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
        check_inputs(self, key, value)
        n_inputs = 1 + (key is not None) + (value is not None)
        key = query if key is None else key
        value = key if value is None else value
        key_packing = mask.packing if n_inputs == 1 else mask.key_packing
        check_arrays(self, query, key, value, mask.packing, key_packing)

        # q = query Wq, k = key Wk, v = value Wv: (B, H, T, K), (B, G, S, K) and (B, G, S, L)
        (q, k, v), projection_caches = self.project(query, key, value, mask.packing, key_packing)
        rotation_cache = None
        if self.rotary is not None:
            q, rotation_cache = self.rotary.forward(q)
            k, _ = rotate(k, *rotation_cache)  # with the cosines and sines of the same positions
        if self.n_repeats > 1:  # several query heads share a head of keys and values
            k, _ = repeat_heads(k, self.n_repeats)  # (B, H, S, K)
            v, _ = repeat_heads(v, self.n_repeats)  # (B, H, S, L)
        z, attention_cache = self.attend(q, k, v, mask, context)  # (B, H, T, L)
        y = pack(merge_heads(z), mask.packing)  # Concat(z_1 .. z_H): (B, T, H·L)
        output_cache = None
        if self.output is not None:
            y, output_cache = self.output.forward(y)  # (B, T, D)
        return y, MultiHeadCache(
            projection_caches, attention_cache, output_cache, n_inputs, mask.packing, rotation_cache
        )

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
        # an array from which several of them were computed gets the sum of their gradients
        if cache.n_inputs == 3:
            return tuple(grads)
        if cache.n_inputs == 2:
            return grads[0], sum(grads[2:], grads[1])
        return sum(grads[1:], grads[0])  # grads[0] + grads[1] + grads[2], or fewer if they are fused

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
    def factor(self) -> float:
        """The factor of the scores, usually 1 / sqrt(K)."""
        return 1 / math.sqrt(self.d_head) if self.scale is None else self.scale

    @property
    def projections(self) -> list[Projection]:
        """The projections of query, key and value, or fewer if several are fused."""
        if self.fused == "qkv":
            return [self.query_key_value]
        return [self.query, self.key_value] if self.fused == "kv" else [self.query, self.key, self.value]
