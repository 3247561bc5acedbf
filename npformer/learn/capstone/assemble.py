"""A Transformer whose twelve parts can be exchanged.

It is the package's Transformer, whose layers become layers of the classes below. They hold the same
parameters, and compute with the functions of the parts. The linear maps between the parts, the activation,
and the order of the layers are the package's.
"""

from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from npformer import functional as F
from npformer.backend import Array
from npformer.data.vocabulary import PAD
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.losses import CrossEntropyCache
from npformer.functional.norm import LayerNormCache
from npformer.learn.capstone.functions import Functions
from npformer.models.transformer import (
    PreNormDecoderLayer,
    PreNormEncoderLayer,
    Transformer,
    TransformerConfig,
)
from npformer.models.transformer.model import TransformerCache
from npformer.nn import Embedding, FeedForward, LayerNorm
from npformer.nn.attention import MultiHeadAttention
from npformer.nn.context import INFERENCE, Context
from npformer.nn.module import Module


def capstone_config(**sizes: Any) -> TransformerConfig:
    """Return the configuration of a Transformer that can be assembled: that of the tour, without dropout."""
    return TransformerConfig(
        norm="pre",
        final_norm=True,
        tied="output",
        zero_padding=True,
        fused_projections=False,
        dropout=0.0,
        **sizes,
    )


class _Embedding(Embedding):
    """The table of token vectors: embedding and embedding_backward."""

    functions: Functions

    def forward(self, ids: Array) -> tuple[Array, Any]:
        """Return y, of shape (..., D), and the cache."""
        y = self.functions.embedding(ids, self.weight.value, self.scale, self.zero_id)
        return y, EmbeddingCache(ids, self.weight.value, self.scale, self.zero_id)

    def backward(self, dy: Array, cache: Any) -> None:
        """Accumulate the gradient of the table."""
        self.weight.accumulate(self.functions.embedding_backward(dy, cache))


class _Heads(MultiHeadAttention):
    """Multi-head attention: multi_head, attention, split_heads, merge_heads and their backward passes."""

    functions: Functions

    def forward(
        self,
        query: Array,
        key: Array | None = None,
        value: Array | None = None,
        mask: Any = None,
        **settings: Any,
    ) -> Any:
        """Return y, of shape (B, T, D), and the cache. The values have the input of the keys."""
        return self.functions.multi_head(self, query, key, mask)

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return dquery (B, T, D), or (dquery, dmemory) in cross-attention."""
        return self.functions.multi_head_backward(self, dy, cache)

    def project(
        self, query: Array, key: Array, value: Array, packing: Any = None, key_packing: Any = None
    ) -> tuple[list[Array], Any]:
        """Return the queries, keys and values of all heads, of shape (B, H, T, K), and the caches."""
        results = self.query.forward(query), self.key.forward(key), self.value.forward(value)
        heads = [self.functions.split_heads(y, self.n_heads) for y, _ in results]
        return heads, tuple(cache for _, cache in results)

    def project_backward(self, dq: Array, dk: Array, dv: Array, cache: Any) -> list[Array]:
        """Return [dquery, dkey, dvalue], the gradients of the inputs of the projections."""
        parts = zip((self.query, self.key, self.value), (dq, dk, dv), cache.projections, strict=True)
        merge_heads = self.functions.merge_heads
        return [projection.backward(merge_heads(dheads), cache) for projection, dheads, cache in parts]


class _Norm(LayerNorm):
    """Layer norm: layer_norm and layer_norm_backward."""

    functions: Functions

    def forward(self, x: Array) -> tuple[Array, Any]:
        """Return y, of shape (..., D), and the cache."""
        gain, bias = self.gain.value, self.parameters()[-1].value
        y = self.functions.layer_norm(x, gain, bias, self.eps)
        centered = x - x.mean(-1, keepdims=True)  # the cache of the exercise: xhat, rstd and gain
        rstd = 1 / np.sqrt((centered * centered).mean(-1, keepdims=True) + self.eps)  # (..., 1)
        return y, LayerNormCache(centered * rstd, rstd, gain)

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return dx, of shape (..., D)."""
        dx, dgain, dbias = self.functions.layer_norm_backward(dy, cache)
        for parameter, gradient in zip(self.parameters(), (dgain, dbias), strict=True):
            parameter.accumulate(gradient)
        return dx


class _FeedForward(FeedForward):
    """The feed-forward network: feed_forward and feed_forward_backward."""

    functions: Functions

    def forward(self, x: Array, context: Context = INFERENCE) -> Any:
        """Return y, of shape (B, T, D), and the cache."""
        return self.functions.feed_forward(self, x)

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return dx, of shape (B, T, D)."""
        return self.functions.feed_forward_backward(self, dy, cache)


@cache_class
class _LayerCache(NamedTuple):
    """The cache of an encoder or decoder layer: that of pre_norm for each of its sublayers."""

    sublayers: tuple[Any, ...]


class _EncoderLayer(PreNormEncoderLayer):
    """An encoder layer with its residual connections: pre_norm and pre_norm_backward."""

    functions: Functions

    def forward(self, x: Array, mask: Any = None, context: Context = INFERENCE) -> tuple[Array, Any]:
        """Return y, of shape (B, S, D), and the cache."""
        pre_norm, attend = self.functions.pre_norm, partial(self.self_attention.forward, mask=mask)
        x, first = pre_norm(_parts(self, 1), x, attend)
        x, second = pre_norm(_parts(self, 2), x, self.feed_forward.forward)
        return x, _LayerCache((first, second))

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return dx, of shape (B, S, D)."""
        pre_norm_backward, (first, second) = self.functions.pre_norm_backward, cache.sublayers
        dx = pre_norm_backward(_parts(self, 2), dy, second, self.feed_forward.backward)
        return pre_norm_backward(_parts(self, 1), dx, first, self.self_attention.backward)


class _DecoderLayer(PreNormDecoderLayer):
    """A decoder layer with its residual connections: pre_norm and pre_norm_backward."""

    functions: Functions

    def forward(
        self, x: Array, memory: Array, mask: Any = None, memory_mask: Any = None, context: Context = INFERENCE
    ) -> tuple[Array, Any]:
        """Return y, of shape (B, T, D), and the cache."""
        pre_norm, attend = self.functions.pre_norm, partial(self.self_attention.forward, mask=mask)
        x, first = pre_norm(_parts(self, 1), x, attend)
        x, second = pre_norm(_parts(self, 2), x, lambda h: self.cross.forward(h, memory, mask=memory_mask))
        x, third = pre_norm(_parts(self, 3), x, self.feed_forward.forward)
        return x, _LayerCache((first, second, third))

    def backward(self, dy: Array, cache: Any) -> tuple[Array, Array]:
        """Return the gradients dx (B, T, D) and dmemory (B, S, D)."""
        pre_norm_backward, (first, second, third) = self.functions.pre_norm_backward, cache.sublayers
        dmemory: list[Array] = []

        def cross_backward(dh: Array, cross_cache: Any) -> Any:
            """Return the gradient of the queries' input, and set that of the memory aside."""
            dqueries, of_memory = self.cross.backward(dh, cross_cache)
            dmemory.append(of_memory)
            return dqueries

        dx = pre_norm_backward(_parts(self, 3), dy, third, self.feed_forward.backward)
        dx = pre_norm_backward(_parts(self, 2), dx, second, cross_backward)
        dx = pre_norm_backward(_parts(self, 1), dx, first, self.self_attention.backward)
        total: Any = sum(dmemory)  # the learner's function may call it twice
        return dx, total


def _parts(layer: Any, number: int) -> SimpleNamespace:
    """Return the norm and the dropout of a sublayer, as pre_norm takes them."""
    return SimpleNamespace(norm=getattr(layer, f"norm{number}"), dropout=getattr(layer, f"dropout{number}"))


ASSEMBLED: dict[type, type] = {
    Embedding: _Embedding,
    MultiHeadAttention: _Heads,
    LayerNorm: _Norm,
    FeedForward: _FeedForward,
    PreNormEncoderLayer: _EncoderLayer,
    PreNormDecoderLayer: _DecoderLayer,
}


def _assemble(layer: Any, functions: Functions) -> None:
    """Let all layers within a layer compute with the functions of the parts."""
    for _, child in layer.children():
        if isinstance(child, Module):
            _assemble(child, functions)
        if type(child) in ASSEMBLED:
            child.__class__, child.functions = ASSEMBLED[type(child)], functions


class AssembledTransformer(Transformer):
    """The Transformer of these parts. Shapes: source (B, S), target_in (B, T) -> logits (B, T, V).

    Args:
        functions: The functions of all parts.
        config: A configuration of capstone_config.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        functions: Functions,
        config: TransformerConfig,
        *,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        super().__init__(config, rng=rng, dtype=dtype)
        self.functions = functions
        _assemble(self, functions)
        positions: Any
        for positions in (self.source.positions, self.target.positions):
            table = functions.sinusoids(config.max_length, config.d_model)
            positions.table = np.asarray(table).astype(dtype)

    def forward(self, source: Any, target_in: Any, **settings: Any) -> tuple[Array, Any]:
        """Return the logits of the next token at each position, of shape (B, T, V), and the cache."""
        source_mask = self.functions.padding_mask(source)  # (B, 1, 1, S)
        causal = self.functions.causal_mask(target_in.shape[1])  # (T, T)
        target_mask = self.functions.padding_mask(target_in) & causal  # (B, 1, T, T)
        x, source_cache = self.source.forward(source)  # (B, S, D)
        memory, encoder = self.encoder.forward(x, source_mask)  # (B, S, D)
        x, target_cache = self.target.forward(target_in)  # (B, T, D)
        x, decoder = self.decoder.forward(x, memory, target_mask, source_mask)  # (B, T, D)
        logits, output = self.output.forward(x)  # (B, T, V)
        packings = (None, None)
        return logits, TransformerCache(source_cache, encoder, target_cache, decoder, output, packings)


def compute_loss(functions: Functions, logits: Array, targets: Array) -> tuple[float, Array]:
    """Return the loss and dlogits: cross_entropy and cross_entropy_backward.

    Args:
        functions: The functions of all parts.
        logits: The logits, of shape (B, T, V).
        targets: The right tokens, of shape (B, T).
    """
    loss = functions.cross_entropy(logits, targets, pad_id=PAD)
    rows = logits.reshape(-1, logits.shape[-1])  # (N, V)
    log_probs, _ = F.log_softmax(rows)
    real = (targets.reshape(-1) != PAD).astype(logits.dtype)  # (N,)
    cache = CrossEntropyCache(log_probs, targets.reshape(-1), real, 0.0, logits.shape, int(real.sum()))
    return float(loss), functions.cross_entropy_backward(1.0, cache)
