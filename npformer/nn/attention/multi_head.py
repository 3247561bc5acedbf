"""Multi-head attention: Vaswani et al. 2017, section 3.2.2."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.attention import AttentionCache, check_keys
from npformer.functional.caches import cache_class
from npformer.functional.heads import merge_heads, repeat_heads, repeat_heads_backward, split_heads
from npformer.functional.linear import LinearCache
from npformer.functional.masks import EXACT, Masking
from npformer.functional.packing import Packing, pack, unpack
from npformer.functional.rotary import RotaryCache
from npformer.kernels import attention, attention_backward
from npformer.nn.attention.kv_cache import NO_ROTATION, DecodingAttention
from npformer.nn.attention.projections import Projection, ProjectionCache
from npformer.nn.checks import check_batches, check_floats
from npformer.nn.context import EVERYTHING, INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng
from npformer.nn.linear import Linear
from npformer.nn.positions import RotaryPositions
from npformer.validation import require_choice, require_count

FUSED = ("no", "kv", "qkv")


@cache_class
class MultiHeadCache(NamedTuple):
    """The cache of MultiHeadAttention."""

    # a ProjectionCache for query, key and value; or query and key_value; or query_key_value
    projections: tuple[Any, ...]
    attention: AttentionCache
    output: LinearCache | None
    n_inputs: int  # the number of arrays among query, key and value that the caller gave: 1, 2 or 3
    packing: Packing | None = None  # the packing of the queries
    rotation: RotaryCache | None = None  # of the queries and of the keys, or None without rotary positions


class MultiHeadAttention(DecodingAttention):
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
        masking: The action of the masks on the scores (see Masking).
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
        masking: Masking = EXACT,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        rng = default_rng(rng)
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        _check_heads(d_model, n_heads, n_kv_heads, d_head)
        for name, count in (("d_model", d_model), ("n_heads", n_heads), ("n_kv_heads", n_kv_heads)):
            require_count(name, count)
        kdim, vdim = d_model if kdim is None else kdim, d_model if vdim is None else vdim
        _check_fused(fused, d_model, kdim, vdim)
        self.n_heads, self.n_kv_heads, self.rotary = n_heads, n_kv_heads, rotary
        self.d_head = d_model // n_heads if d_head is None else d_head
        self.d_value = self.d_head if d_value is None else d_value
        self.fused, self.dropout, self.masking = fused, dropout, masking
        self.scale = None if scale else 1.0  # None stands for 1 / sqrt(K)

        settings = {"activation": activation, "bias": bias, "rng": rng, "dtype": dtype}
        self._make_projections(d_model, kdim, vdim, **settings)
        width = n_heads * self.d_value  # H·L
        output_bias = bias if output_bias is None else output_bias
        self.output = Linear(width, d_model, bias=output_bias, rng=rng, dtype=dtype) if output else None

    def _make_projections(self, d_model: int, kdim: int, vdim: int, **settings: Any) -> None:
        """Make the projections of queries, keys and values, whose inputs have these widths."""
        queries, keys = (self.n_heads, self.d_head), (self.n_kv_heads, self.d_head)  # heads and their width
        values = self.n_kv_heads, self.d_value

        def project(d_in: int, *parts: tuple[int, int]) -> Projection:
            heads, widths = [heads for heads, _ in parts], [heads * width for heads, width in parts]
            return Projection(d_in, widths, heads, **settings)

        if self.fused == "qkv":
            self.query_key_value = project(d_model, queries, keys, values)
        elif self.fused == "kv":
            self.query, self.key_value = project(d_model, queries), project(d_model, keys, values)
        else:
            self.query, self.key = project(d_model, queries), project(kdim, keys)
            self.value = project(vdim, values)

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
    ) -> tuple[Array, Any]:
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
        (q, k, v), projections = self.project(query, key, value, mask.packing, key_packing)
        q, k, rotation = self.rotate(q, k)
        k, v = self.share(k), self.share(v)  # (B, H, S, K) and (B, H, S, L)
        z, attention_cache = self.attend(q, k, v, mask, context)  # (B, H, T, L)
        y, output = self.join(z, mask.packing)  # (B, T, D)
        return y, MultiHeadCache(projections, attention_cache, output, n_inputs, mask.packing, rotation)

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return the gradients of the arrays that forward was given.

        These are dquery, (dquery, dkey) or (dquery, dkey, dvalue), of the shapes (B, T, D), (B, S, D) and
        (B, S, D).
        """
        # y = Concat(heads) Wo
        dz = self.join_backward(dy, cache)  # (B, H, T, L)
        # z = softmax(q kᵀ / sqrt(K)) v
        dq, dk, dv = self.attend_backward(dz, cache.attention)
        # a shared head of keys or values was used by several query heads, so their gradients are added
        dk, dv = self.share_backward(dk), self.share_backward(dv)  # (B, G, S, K) and (B, G, S, L)
        # q, k = rotations of q and k
        dq, dk = self.rotate_backward(dq, dk, cache.rotation)
        # q, k, v = query Wq, key Wk, value Wv
        grads = self.project_backward(dq, dk, dv, cache)  # one for each projection
        if cache.n_inputs == 3:
            return tuple(grads)
        if cache.n_inputs == 2:  # keys and values were computed from one array, so their gradients are added
            return grads[0], _total(grads[1:])
        return _total(grads)  # queries, keys and values were computed from one array

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
        inputs = [(query, packing), (key, key_packing), (value, key_packing)]
        heads, caches = [], []
        for projection, index in self._projections():
            parts, cache = projection.project(*inputs[index])
            heads += parts
            caches.append(cache)
        return heads, tuple(caches)

    def project_backward(self, dq: Array, dk: Array, dv: Array, cache: Any) -> list[Array]:
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
        for (projection, _), projection_cache in zip(self._projections(), cache.projections, strict=True):
            n = len(projection.widths)
            grads.append(projection.project_backward(dheads[:n], projection_cache))
            dheads = dheads[n:]
        return grads

    def rotate(self, q: Array, k: Array, start: int = 0) -> tuple[Array, Array, RotaryCache | None]:
        """Rotate the queries and keys by their positions, if the layer has rotary positions.

        Args:
            q: The queries, of shape (B, H, T, K).
            k: The keys, of shape (B, G, T, K).
            start: The position of the first query and key.

        Returns:
            q and k, of the same shapes, and the cache.
        """
        if self.rotary is None:
            return q, k, None
        q, rotation = self.rotary.forward(q, start)
        k, _ = self.rotary.forward(k, start)  # at the same positions, so the cache is the same
        return q, k, rotation

    def rotate_backward(self, dq: Array, dk: Array, cache: RotaryCache | None) -> tuple[Array, Array]:
        """Compute the gradients of the queries and keys before the rotation.

        Args:
            dq: The gradient of the rotated queries, of shape (B, H, T, K).
            dk: The gradient of the rotated keys, of shape (B, G, T, K).
            cache: The cache of rotate.

        Returns:
            dq and dk, of the same shapes.
        """
        if self.rotary is None:
            return dq, dk
        return self.rotary.backward(dq, cache), self.rotary.backward(dk, cache)

    def share(self, x: Array) -> Array:
        """Repeat the heads of keys or values for the query heads that share them.

        Shapes: x (B, G, S, K) -> y (B, H, S, K), where query head h uses head h // (H / G) of x.
        """
        y, _ = repeat_heads(x, self.n_heads // self.n_kv_heads)
        return y

    def share_backward(self, dy: Array) -> Array:
        """Return dx, of shape (B, G, S, K), from the gradient of the repeated heads, (B, H, S, K)."""
        return repeat_heads_backward(dy, self.n_heads // self.n_kv_heads)

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
        check_keys(k)
        return attention(
            q,
            k,
            v,
            mask.allowed,
            query_mask=mask.queries,
            masking=self.masking,
            scale=self.scale,
            p=context.dropout(self.dropout),
            rng=context.rng,
        )

    def attend_backward(self, dz: Array, cache: Any) -> tuple[Array, Array, Array]:
        """Return the gradients dq (B, H, T, K), dk (B, H, S, K) and dv (B, H, S, L)."""
        return attention_backward(dz, cache)

    def join(self, z: Array, packing: Packing | None = None) -> tuple[Array, Any]:
        """Concatenate the heads and multiply by Wo. Shapes: z (B, H, T, L) -> y (B, T, D), and the cache."""
        y = pack(merge_heads(z), packing)  # (B, T, H·L)
        return (y, None) if self.output is None else self.output.forward(y)

    def join_backward(self, dy: Array, cache: Any) -> Array:
        """Return dz, of shape (B, H, T, L). `cache` is the cache of forward."""
        if self.output is not None:
            dy = self.output.backward(dy, cache.output)  # (B, T, H·L)
        return split_heads(unpack(dy, cache.packing), self.n_heads)

    def _projections(self) -> list[tuple[Projection, int]]:
        """Return the projections, each with the index of its input among (query, key, value)."""
        if self.fused == "qkv":
            return [(self.query_key_value, 0)]
        if self.fused == "kv":
            return [(self.query, 0), (self.key_value, 1)]
        return [(self.query, 0), (self.key, 1), (self.value, 2)]

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
        widths = [projection.weight.shape[0] for projection, _ in self._projections()]
        widths += widths[-1:] * (3 - len(widths))  # a fused projection has one input for several names
        for name, x, x_packing, width in (
            ("query", query, packing, widths[0]),
            ("key", key, key_packing, widths[1]),
            ("value", value, key_packing, widths[2]),
        ):
            check_floats(x, ("B", "T", width) if x_packing is None else ("N", width), layer, name)
        if packing is None and key_packing is None:
            check_batches(layer, query=query, key=key, value=value)
            if key.shape[1] != value.shape[1]:
                raise UserError(
                    f"{layer} takes a value for each key and got key of shape {key.shape} and value of shape "
                    f"{value.shape}: make the second axes equal"
                )

    def _count_inputs(self, key: Array | None, value: Array | None) -> int:
        """Return the number of arrays among query, key and value that the caller gave.

        Fused projections allow fewer than three.
        """
        if key is None and value is not None:
            raise UserError("value was given without key: give both, or neither")
        n_inputs = 1 + (key is not None) + (value is not None)
        if self.rotary is not None and n_inputs > 1:
            raise UserError(NO_ROTATION)
        most = {"no": 3, "kv": 2, "qkv": 1}[self.fused]
        if n_inputs > most:
            raise UserError(
                f'projections fused as "{self.fused}" take {most} of query, key and value, and {n_inputs} '
                'were given: use fused="no"'
            )
        return n_inputs


def _check_heads(d_model: int, n_heads: int, n_kv_heads: int, d_head: int | None) -> None:
    """Check that the width can be divided among the heads, and the query heads among the heads of keys."""
    if d_head is None and (n_heads < 1 or d_model % n_heads):
        raise UserError(
            f"d_model {d_model} is not divisible by {n_heads} heads: change one of them, or give d_head"
        )
    if n_kv_heads < 1 or n_heads % n_kv_heads:
        raise UserError(
            f"{n_heads} query heads cannot share {n_kv_heads} heads of keys and values equally: make "
            "n_kv_heads a divisor of n_heads"
        )


def _check_fused(fused: str, d_model: int, kdim: int, vdim: int) -> None:
    """Check that projections are fused in a known way, and only if their inputs have one width."""
    require_choice("fused", fused, FUSED)
    if fused != "no" and not d_model == kdim == vdim:
        raise UserError(
            f'projections fused as "{fused}" have one input, and d_model is {d_model}, kdim {kdim} and vdim '
            f'{vdim}: make them equal, or use fused="no"'
        )


def _total(grads: list[Array]) -> Array:
    """Return the sum of the gradients of one array that was used several times."""
    total = grads[0]
    for grad in grads[1:]:
        total = total + grad
    return total
