"""Layers for the four similarities of queries and keys, and self-attention without parameters."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.attend import AttendCache, attend, attend_backward
from npformer.functional.attention import AttentionCache
from npformer.functional.caches import cache_class
from npformer.functional.similarity import (
    ConcatSimilarityCache,
    DotSimilarityCache,
    GeneralSimilarityCache,
    PerceptronSimilarityCache,
    concat_similarity,
    concat_similarity_backward,
    dot_similarity,
    dot_similarity_backward,
    general_similarity,
    general_similarity_backward,
    perceptron_similarity,
    perceptron_similarity_backward,
)
from npformer.kernels import attention, attention_backward
from npformer.nn.attention.multi_head import MultiHeadAttention
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.context import EVERYTHING, INFERENCE, AttentionMask, Context
from npformer.nn.init import default_rng, xavier_uniform
from npformer.nn.module import Module, Parameter
from npformer.validation import require_counts

SIMILARITIES: dict[str, tuple[Any, Any]] = {
    "dot": (dot_similarity, dot_similarity_backward),
    "general": (general_similarity, general_similarity_backward),
    "concat": (concat_similarity, concat_similarity_backward),
    "perceptron": (perceptron_similarity, perceptron_similarity_backward),
}

SimilarityCache = (
    DotSimilarityCache | GeneralSimilarityCache | ConcatSimilarityCache | PerceptronSimilarityCache
)


class Similarity(Module):
    """A similarity of queries and keys: score_ts = similarity(q_t, k_s).

        "dot"         q · k, without weights, for queries and keys of the same width
        "general"     q · weight k
        "concat"      weight · [q; k]
        "perceptron"  v · tanh(q query_weight + k key_weight)

    Shapes: q (..., T, d_query), k (..., S, d_key) -> scores (..., T, S).

    Args:
        kind: One of the four kinds above.
        d_query: The width of the queries.
        d_key: The width of the keys.
        width: The width of the tanh of "perceptron". The default is d_key.
        scaled: Divide the scores by sqrt(d_key), as the Transformer does.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the kind is unknown, or if it does not allow these widths.

    Source: Luong et al. 2015, section 3.1; Bahdanau et al. 2015, section A.1.2 (perceptron).
    """

    def __init__(
        self,
        kind: str,
        d_query: int,
        d_key: int,
        *,
        width: int | None = None,
        scaled: bool = False,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        _check(kind, d_query, d_key, width)
        rng = default_rng(rng)
        self.kind, self.d_query, self.d_key = kind, d_query, d_key
        self.scale = 1 / math.sqrt(d_key) if scaled else None
        shapes = _shapes(kind, d_query, d_key, d_key if width is None else width)
        self.names = tuple(shapes)  # the names of the weights, in the order of the arguments of the pair
        for name, shape in shapes.items():
            setattr(self, name, Parameter(xavier_uniform(rng, shape, dtype)))

    @property
    def weights(self) -> list[Parameter]:
        """The parameters, in the order in which the pair takes them."""
        return [getattr(self, name) for name in self.names]

    def forward(self, q: Array, k: Array) -> tuple[Array, SimilarityCache]:
        """Return the scores, of shape (..., T, S), and the cache."""
        check_floats(q, (..., self.d_query), "Similarity", "q")
        check_floats(k, (..., self.d_key), "Similarity", "k")
        pair, _ = SIMILARITIES[self.kind]
        scores, cache = pair(q, k, *[weight.value for weight in self.weights])
        return scores if self.scale is None else scores * self.scale, cache

    def backward(self, dscores: Array, cache: SimilarityCache) -> tuple[Array, Array]:
        """Return the gradients dq (..., T, d_query) and dk (..., S, d_key)."""
        batch = np.broadcast_shapes(cache.q.shape[:-2], cache.k.shape[:-2])
        check_gradient(dscores, (*batch, cache.q.shape[-2], cache.k.shape[-2]), "Similarity")
        _, pair_backward = SIMILARITIES[self.kind]
        # scores = pair(q, k, weights) scale
        dscores = dscores if self.scale is None else dscores * self.scale
        dq, dk, *dweights = pair_backward(dscores, cache)
        for weight, dweight in zip(self.weights, dweights, strict=True):
            weight.accumulate(dweight)
        return dq, dk


def check_queries(queries: Array, memory: Array, similarity: Any, layer: str) -> None:
    """Check the queries and the memory of an attention layer.

    Args:
        queries: Floats, of shape (B, T, d_query).
        memory: Floats, of shape (B, S, d_key).
        similarity: The layer that gives d_query and d_key.
        layer: The name of the attention layer, for the message.

    Raises:
        UserError: If an array has another shape, or if the batch sizes differ.
    """
    check_floats(queries, ("B", "T", similarity.d_query), layer, "queries")
    check_floats(memory, ("B", "S", similarity.d_key), layer, "memory")
    if len(queries) != len(memory):
        raise UserError(
            f"{layer} takes equal batch sizes and got queries of shape {queries.shape} and memory of shape "
            f"{memory.shape}: make the first axes equal"
        )


def _shapes(kind: str, d_query: int, d_key: int, width: int) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights by name."""
    if kind == "general":
        return {"weight": (d_query, d_key)}
    if kind == "concat":
        return {"weight": (d_query + d_key,)}
    if kind == "perceptron":
        return {"query_weight": (d_query, width), "key_weight": (d_key, width), "v": (width,)}
    return {}


def _check(kind: str, d_query: int, d_key: int, width: int | None) -> None:
    if kind not in SIMILARITIES:
        raise UserError(f"the similarity is {kind!r}: choose one of {', '.join(SIMILARITIES)}")
    require_counts(d_query=d_query, d_key=d_key, width=1 if width is None else width)
    if kind == "dot" and d_query != d_key:
        raise UserError(
            f'a dot product takes queries and keys of equal width, not {d_query} and {d_key}: use "general"'
        )
    if kind != "perceptron" and width is not None:
        raise UserError(f'only the similarity "perceptron" has a width, not "{kind}": leave out width')


@cache_class
class SimilarityAttentionCache(NamedTuple):
    """The cache of SimilarityAttention.attend. It is the field `attention` of the MultiHeadCache."""

    similarity: Any  # the cache of the similarity
    attend: AttendCache

    @property
    def weights(self) -> Array:
        """The attention weights, (B, H, T, S)."""
        return self.attend.weights


class SimilarityAttention(MultiHeadAttention):
    """Multi-head attention with any similarity of queries and keys.

        y = Concat(head_1 .. head_H) Wo,  head_h = softmax(similarity(query Wq_h, key Wk_h)) value Wv_h

    All heads share the weights of the similarity. With "dot" the layer computes the same as
    MultiHeadAttention. Shapes: query (B, T, D), key and value (B, S, D) -> y (B, T, D).

    Args:
        d_model: The width D.
        n_heads: The number H of heads.
        similarity: "dot", "general", "concat" or "perceptron".
        width: The width of the perceptron.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        settings: The other settings of MultiHeadAttention.

    Raises:
        UserError: If a setting is impossible, if the shapes of the arrays do not agree, if a mask has another
            dtype or shape, or if the similarity is unknown.

    Source: Vaswani et al. 2017, section 3.2; Luong et al. 2015, section 3.1.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        similarity: str = "dot",
        width: int | None = None,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
        **settings: Any,
    ) -> None:
        rng = default_rng(rng)
        super().__init__(d_model, n_heads, rng=rng, dtype=dtype, **settings)
        scaled = self.scale is None  # None stands for 1 / sqrt(K)
        self.similarity = Similarity(
            similarity, self.d_head, self.d_head, width=width, scaled=scaled, rng=rng, dtype=dtype
        )

    def attend(
        self, q: Array, k: Array, v: Array, mask: AttentionMask = EVERYTHING, context: Context = INFERENCE
    ) -> tuple[Array, SimilarityAttentionCache]:
        """Compute the attention of each head.

        Args:
            q: The queries, of shape (B, H, T, K).
            k: The keys, of shape (B, H, S, K).
            v: The values, of shape (B, H, S, L).
            mask: The masks.
            context: The settings of the forward pass.

        Returns:
            z, of shape (B, H, T, L), and the cache.
        """
        scores, similarity_cache = self.similarity.forward(q, k)  # (B, H, T, S)
        p = context.dropout(self.dropout)
        z, attend_cache = attend(scores, v, mask.pairs, p=p, rng=context.rng)  # (B, H, T, L)
        return z, SimilarityAttentionCache(similarity_cache, attend_cache)

    def attend_backward(self, dz: Array, cache: SimilarityAttentionCache) -> tuple[Array, Array, Array]:
        """Return the gradients dq (B, H, T, K), dk (B, H, S, K) and dv (B, H, S, L)."""
        # z = softmax(scores) v
        dscores, dv = attend_backward(dz, cache.attend)
        # scores = similarity(q, k)
        dq, dk = self.similarity.backward(dscores, cache.similarity)
        return dq, dk, dv


class BasicSelfAttention(Module):
    """Self-attention without parameters: y_i = Σ_j w_ij x_j, where w_i = softmax over j of x_i · x_j.

    Shapes: x (B, T, D), mask bool broadcastable to (B, T, T) -> y (B, T, D).
    Source: "The components of the Transformer", which follows Bloem, "Transformers from scratch".
    """

    def forward(self, x: Array, mask: Array | None = None) -> tuple[Array, AttentionCache]:
        """Return y, of shape (B, T, D), and the cache."""
        check_floats(x, ("B", "T", "D"), "BasicSelfAttention")
        return attention(x, x, x, mask, scale=1.0)

    def backward(self, dy: Array, cache: AttentionCache) -> Array:
        """Return dx, of shape (B, T, D)."""
        check_gradient(dy, cache.q.shape, "BasicSelfAttention")
        # x was used as query, key and value, so its three gradients are added
        dq, dk, dv = attention_backward(dy, cache)
        return dq + dk + dv
