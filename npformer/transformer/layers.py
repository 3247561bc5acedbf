"""Encoder and decoder layers: Vaswani et al. 2017, section 3.1."""

from typing import NamedTuple

import numpy as np

from npformer.attention.multi_head import MultiHeadAttention, MultiHeadCache
from npformer.attention.relative import RelativeAttention
from npformer.layers import FeedForward, Residual, SequenceResidual
from npformer.layers.feed_forward import FeedForwardCache
from npformer.layers.init import default_rng
from npformer.layers.residual import ResidualCache
from npformer.module import Module


class EncoderLayerCache(NamedTuple):
    """The cache of EncoderLayer."""

    self_attention: MultiHeadCache
    self_residual: ResidualCache
    feed_forward: FeedForwardCache
    feed_forward_residual: ResidualCache


class EncoderLayer(Module):
    """Self-attention, then the feed-forward network, each inside a residual.

    Shapes: x (B, S, D), mask broadcastable to (B, H, S, S) -> y (B, S, D).
    """

    def __init__(self, config, *, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.self_residual = make_residual(config, dtype)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.feed_forward_residual = make_residual(config, dtype)

    def forward(self, x, mask=None, *, query_mask=None, train=False, rng=None, packing=None):
        """Returns (y, cache)."""
        # every position looks at every position
        h, entered = self.self_residual.enter(x)
        h, self_attention = self.self_attention.forward(
            h, mask=mask, query_mask=query_mask, train=train, rng=rng, packing=packing
        )
        x, self_residual = self.self_residual.join(x, h, entered, train=train, rng=rng)
        # every position by itself
        h, entered = self.feed_forward_residual.enter(x)
        h, feed_forward = self.feed_forward.forward(h, train=train, rng=rng)
        x, feed_forward_residual = self.feed_forward_residual.join(x, h, entered, train=train, rng=rng)
        return x, EncoderLayerCache(
            self_attention,
            self_residual,
            feed_forward,
            feed_forward_residual,
        )

    def backward(self, dy, cache):
        """Returns dx."""
        # the feed-forward network
        dx, dh = self.feed_forward_residual.join_backward(dy, cache.feed_forward_residual)
        dh = self.feed_forward.backward(dh, cache.feed_forward)
        dx = self.feed_forward_residual.enter_backward(dx, dh, cache.feed_forward_residual)
        # self-attention
        dx, dh = self.self_residual.join_backward(dx, cache.self_residual)
        dh = self.self_attention.backward(dh, cache.self_attention)
        return self.self_residual.enter_backward(dx, dh, cache.self_residual)

    def step(self, x, past):
        """The same as forward under a causal mask, for the one position that comes next, without caches.

        Shapes: x (B, 1, D), past keys and values or None. Returns (y, past).
        """
        x, past = _attend_step(self, x, past)
        return _feed_forward_step(self, x), past


class DecoderLayerCache(NamedTuple):
    """The cache of DecoderLayer."""

    self_attention: MultiHeadCache
    self_residual: ResidualCache
    cross: MultiHeadCache
    cross_residual: ResidualCache
    feed_forward: FeedForwardCache
    feed_forward_residual: ResidualCache


class DecoderLayer(Module):
    """Masked self-attention, attention to the encoder's output, then the feed-forward network.

    Shapes: x (B, T, D), memory (B, S, D), mask broadcastable to (B, H, T, T), memory_mask to
    (B, H, T, S) -> y (B, T, D).
    """

    def __init__(self, config, *, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        self.self_attention = make_attention(config, "qkv", rng, dtype)
        self.self_residual = make_residual(config, dtype)
        self.cross = make_attention(config, "kv", rng, dtype)
        self.cross_residual = make_residual(config, dtype)
        self.feed_forward = make_feed_forward(config, rng, dtype)
        self.feed_forward_residual = make_residual(config, dtype)

    def forward(
        self,
        x,
        memory,
        mask=None,
        memory_mask=None,
        *,
        query_mask=None,
        train=False,
        rng=None,
        packing=None,
        memory_packing=None,
    ):
        """Returns (y, cache)."""
        # every position looks at itself and at those before it
        h, entered = self.self_residual.enter(x)
        h, self_attention = self.self_attention.forward(
            h, mask=mask, query_mask=query_mask, train=train, rng=rng, packing=packing
        )
        x, self_residual = self.self_residual.join(x, h, entered, train=train, rng=rng)
        # queries from here, keys and values from the encoder
        h, entered = self.cross_residual.enter(x)
        h, cross = self.cross.forward(
            h,
            memory,
            mask=memory_mask,
            query_mask=query_mask,
            train=train,
            rng=rng,
            packing=packing,
            key_packing=memory_packing,
        )
        x, cross_residual = self.cross_residual.join(x, h, entered, train=train, rng=rng)
        # every position by itself
        h, entered = self.feed_forward_residual.enter(x)
        h, feed_forward = self.feed_forward.forward(h, train=train, rng=rng)
        x, feed_forward_residual = self.feed_forward_residual.join(x, h, entered, train=train, rng=rng)
        return x, DecoderLayerCache(
            self_attention,
            self_residual,
            cross,
            cross_residual,
            feed_forward,
            feed_forward_residual,
        )

    def backward(self, dy, cache):
        """Returns (dx, dmemory)."""
        # the feed-forward network
        dx, dh = self.feed_forward_residual.join_backward(dy, cache.feed_forward_residual)
        dh = self.feed_forward.backward(dh, cache.feed_forward)
        dx = self.feed_forward_residual.enter_backward(dx, dh, cache.feed_forward_residual)
        # attention to the encoder's output
        dx, dh = self.cross_residual.join_backward(dx, cache.cross_residual)
        dh, dmemory = self.cross.backward(dh, cache.cross)
        dx = self.cross_residual.enter_backward(dx, dh, cache.cross_residual)
        # masked self-attention
        dx, dh = self.self_residual.join_backward(dx, cache.self_residual)
        dh = self.self_attention.backward(dh, cache.self_attention)
        return self.self_residual.enter_backward(dx, dh, cache.self_residual), dmemory

    def remember(self, memory):
        """What cross-attention keeps of the encoder's output while a sentence is decoded."""
        return self.cross.remember(memory)

    def step(self, x, past, memory, memory_mask=None):
        """The same as forward for the one position that comes next, without caches for backward.

        Shapes: x (B, 1, D), past keys and values or None, memory from remember. Returns (y, past).
        """
        x, past = _attend_step(self, x, past)
        h, _ = self.cross_residual.enter(x)
        x, _ = self.cross_residual.join(x, self.cross.recall(h, memory, memory_mask))
        return _feed_forward_step(self, x), past


def _attend_step(layer, x, past):
    """A layer's self-attention inside its residual, for the one position that comes next."""
    h, _ = layer.self_residual.enter(x)
    h, past = layer.self_attention.step(h, past)
    return layer.self_residual.join(x, h)[0], past


def _feed_forward_step(layer, x):
    """A layer's feed-forward network inside its residual."""
    h, _ = layer.feed_forward_residual.enter(x)
    h, _ = layer.feed_forward.forward(h)
    return layer.feed_forward_residual.join(x, h)[0]


def make_attention(config, fused, rng, dtype):
    """Multi-head attention with a configuration's settings."""
    kind: type[MultiHeadAttention] = MultiHeadAttention
    more = {}
    if config.positions == "relative" and fused == "qkv":  # in one sentence there are distances
        kind, more = RelativeAttention, {"max_distance": config.max_distance}
    return kind(
        config.d_model,
        config.n_heads,
        d_head=config.head_key,
        d_value=config.head_value,
        bias=config.attention_bias,
        output=config.attention_output,
        fused=fused if config.fused_projections else "no",
        activation=config.projection_activation,
        rate=config.attention_dropout,
        scale=config.scale_scores,
        masking=config.masking,
        rng=rng,
        dtype=dtype,
        **more,
    )


def make_feed_forward(config, rng, dtype):
    """The feed-forward network with a configuration's settings."""
    return FeedForward(
        config.d_model,
        config.d_ff,
        activation=config.activation,
        rate=config.feed_forward_dropout,
        rng=rng,
        dtype=dtype,
    )


def make_residual(config, dtype):
    """The residual with a configuration's settings: by name, or spelt out as a sequence."""
    more = {"rate": config.dropout, "eps": config.norm_eps, "dtype": dtype}
    if "-" in config.norm:
        return SequenceResidual(config.d_model, sequence=config.norm, **more)
    return Residual(config.d_model, norm=config.norm, **more)
