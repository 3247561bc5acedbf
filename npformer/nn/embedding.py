"""Embeddings: the table of token vectors, the input of a stack of layers, and the tied output projection."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.linear import LinearCache
from npformer.functional.positions import LAYOUTS
from npformer.kernels import embedding, embedding_backward, linear, linear_backward
from npformer.nn.checks import check_floats, check_gradient, check_token_ids
from npformer.nn.context import INFERENCE, Context
from npformer.nn.dropout import Dropout, DropoutCache
from npformer.nn.init import UNDRAWN, default_rng, normal
from npformer.nn.module import Module, Parameter
from npformer.nn.positions import FixedPositions, LearnedPositions
from npformer.validation import require_counts, require_index


class Embedding(Module):
    """A table of learned vectors: y = scale weight[ids], and 0 where ids == zero_id.

    Shapes: ids (...) integers in [0, n) -> y (..., D). The weight is (n, D).

    Args:
        n: The number of tokens.
        d_model: The width D of the vectors.
        scale: The factor of all vectors.
        zero_id: The id whose vector is replaced by 0, usually that of padding.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Vaswani et al. 2017, section 3.4.
    """

    def __init__(
        self,
        n: int,
        d_model: int,
        *,
        scale: float = 1.0,
        zero_id: int | None = None,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.scale = scale
        self.zero_id = zero_id
        require_counts(n=n, d_model=d_model)
        if zero_id is not None:
            require_index("zero_id", zero_id, n)
        self.weight = Parameter(normal(default_rng(rng), (n, d_model), d_model**-0.5, dtype))
        if zero_id is not None and rng is not UNDRAWN:
            self.weight.value[zero_id] = 0

    def forward(self, ids: Array) -> tuple[Array, EmbeddingCache]:
        """Return y, of shape (..., D), and the cache."""
        check_token_ids(ids, (...,), len(self.weight.value), "Embedding")
        return embedding(ids, self.weight.value, self.scale, self.zero_id)

    def backward(self, dy: Array, cache: EmbeddingCache) -> None:
        """Accumulate the gradient of the table. Return nothing, since ids have no gradient.

        Shapes: dy (..., D).
        """
        check_gradient(dy, (*cache.ids.shape, self.weight.value.shape[1]), "Embedding")
        self.weight.accumulate(embedding_backward(dy, cache))


class TiedProjection(Module):
    """An output projection that shares its weight with an embedding: y = x weightᵀ + bias.

    The logit of a token is the dot product of x and the vector of the token. Both layers add their gradients
    to the same Parameter. Shapes: x (..., D) -> y (..., V).

    Args:
        weight: The weight of the embedding, of shape (V, D).
        bias: Add a learned bias of shape (V,).
        dtype: The dtype of the bias.

    Source: Vaswani et al. 2017, section 3.4; Press and Wolf 2017.
    """

    def __init__(self, weight: Parameter, *, bias: bool = False, dtype: Any = np.float32) -> None:
        self.weight = weight
        self.bias = Parameter(np.zeros(weight.shape[0], dtype)) if bias else None

    def forward(self, x: Array) -> tuple[Array, LinearCache]:
        """Return y, of shape (..., V), and the cache."""
        weight = self.weight.value
        check_floats(x, (..., weight.shape[1]), "TiedProjection")
        bias = self.bias.value if self.bias is not None else None
        return linear(x, weight.T, bias)

    def backward(self, dy: Array, cache: LinearCache) -> Array:
        """Return dx, of shape (..., D)."""
        check_gradient(dy, (*cache.x.shape[:-1], len(self.weight.value)), "TiedProjection")
        dx, dweight, dbias = linear_backward(dy, cache)
        # forward used the transposed weight, so dweight has the shape (D, V)
        self.weight.accumulate(dweight.T)  # (V, D)
        if self.bias is not None:
            self.bias.accumulate(dbias)
        return dx


@cache_class
class InputCache(NamedTuple):
    """The cache of InputEmbedding."""

    tokens: EmbeddingCache
    positions: Any  # the cache of the positions, or None
    dropout_mask: DropoutCache  # (B, T, D) the dropout mask, or None
    y: Array  # (B, T, D) the output


class InputEmbedding(Module):
    """The input of a stack of layers: y = dropout(sqrt(D) tokens[ids] + positions).

    Shapes: ids (B, T) -> y (B, T, D).

    Args:
        vocab_size: The number of tokens.
        d_model: The width D of the vectors.
        max_length: The number of positions.
        positions: The position vectors: "learned", or sinusoids in one of the layouts of
            functional.positions. With "relative", "rotary" or "none" nothing is added.
        scale: Multiply the token vectors by sqrt(D).
        zero_id: The id whose vector is replaced by 0, usually that of padding.
        dropout: The dropout probability of the sum.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Vaswani et al. 2017, sections 3.4, 3.5 and 5.4.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_length: int,
        *,
        positions: str = "interleaved",
        scale: bool = True,
        zero_id: int | None = None,
        dropout: float = 0.0,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        require_counts(vocab_size=vocab_size, d_model=d_model)
        rng = default_rng(rng)
        factor = math.sqrt(d_model) if scale else 1.0
        self.tokens = Embedding(vocab_size, d_model, scale=factor, zero_id=zero_id, rng=rng, dtype=dtype)
        self.positions: FixedPositions | LearnedPositions | None = None
        if positions in LAYOUTS:
            self.positions = FixedPositions(max_length, d_model, layout=positions, dtype=dtype)
        elif positions == "learned":
            self.positions = LearnedPositions(max_length, d_model, rng=rng, dtype=dtype)
        self.dropout = Dropout(dropout)

    def forward(
        self, ids: Array, context: Context = INFERENCE, *, start: int | Array = 0
    ) -> tuple[Array, InputCache]:
        """Compute the token vectors plus the position vectors, with dropout.

        Args:
            ids: The token ids, of shape (B, T).
            context: The settings of the forward pass.
            start: The position of the first id in its sentence: one number for all sentences, or an
                array (B,) on the host with one number for each sentence.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        check_token_ids(ids, ("B", "T"), len(self.tokens.weight.value), "InputEmbedding")
        x, tokens_cache = self.tokens.forward(ids)  # (B, T, D)
        positions_cache = None
        if self.positions is not None:
            p, positions_cache = self.positions.forward(ids.shape[1], start)  # (T, D), or (B, T, D)
            x = x + p
        y, dropout_mask = self.dropout.forward(x, context)
        return y, InputCache(tokens_cache, positions_cache, dropout_mask, y)

    def backward(self, dy: Array, cache: InputCache) -> None:
        """Accumulate the gradients of both tables. Return nothing, since ids have no gradient.

        Shapes: dy (B, T, D).
        """
        # y = dropout(x)
        dx = self.dropout.backward(dy, cache.dropout_mask)
        # x = tokens + positions: a sum passes its gradient to both terms
        if self.positions is not None:
            self.positions.backward(dx, cache.positions)
        self.tokens.backward(dx, cache.tokens)
