"""A GPT with mixtures of experts: each layer has many feed-forward networks, and a token uses a few.

    block:  x = x + self_attention(norm(x)),  x = x + mixture(norm(x))
    where mixture(x) = Σ_j weights_j expert_j(x), with the sum over the k experts that the router chooses

Mixtral is a Llama with such layers. Qwen3-MoE also normalizes queries and keys, as Qwen3 does, and may keep
one feed-forward network in some layers. All else is a GPT (models/gpt/).

Source: Jiang et al. 2024, "Mixtral of experts", section 2; Yang et al. 2025, "Qwen3 technical report".
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from npformer.backend import Array
from npformer.errors import Registry, UserError
from npformer.models.gpt import (
    GPT,
    Block,
    BlockCache,
    GPTCache,
    LlamaConfig,
    make_rotary,
)
from npformer.models.settings import registry
from npformer.nn import MixtureOfExperts, MultiHeadAttention, QKNormAttention
from npformer.nn.experts import MixtureCache, require_routing
from npformer.validation import is_number, require_count


@dataclass(frozen=True)
class MixtureConfig(LlamaConfig):
    """The settings of a Mixture: those of a Llama, and those of its experts."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of Mixture", {})

    n_experts: int = 8
    top_k: int = 2  # the number of experts of a token
    renormalize: bool = True  # the weights of a token's experts sum to 1
    d_expert: int | None = None  # the width of the hidden layer of an expert; None means hidden_width
    dense: tuple[int, ...] = ()  # the layers with one feed-forward network, counted from 0
    balance_weight: float = 0.01  # of the load-balancing loss of each layer, in training
    qk_norm: bool = False  # True in Qwen3-MoE

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "dense", tuple(self.dense))  # a list in a checkpoint
        require_routing(self.n_experts, self.top_k)
        if self.d_expert is not None:
            require_count("d_expert", self.d_expert)
        if not (is_number(self.balance_weight) and self.balance_weight >= 0):
            raise UserError(f"balance_weight is {self.balance_weight!r}: it must be a number, 0 or more")

    @property
    def expert_width(self) -> int:
        """The width F of the hidden layer of an expert."""
        return self.hidden_width if self.d_expert is None else self.d_expert

    def count_parameters(self) -> int:
        """Return the number of parameters of the model, without building it."""
        n_mixtures = self.n_layers - len({layer for layer in self.dense if layer < self.n_layers})
        gains = self.n_layers * 2 * self.d_head * int(self.qk_norm)
        router = self.d_model * self.n_experts
        experts = self.n_experts * self._network(self.expert_width) - self._network(self.hidden_width)
        return super().count_parameters() + gains + n_mixtures * (router + experts)

    def _network(self, width: int) -> int:
        """Return the number of parameters of a feed-forward network with this hidden layer."""
        n_inner = 2 if self.is_gated else 1
        return (n_inner + 1) * self.d_model * width + int(self.bias) * (n_inner * width + self.d_model)


def make_mixture(config: MixtureConfig, rng: np.random.Generator, dtype: Any) -> MixtureOfExperts:
    """Return the mixture of experts of a configuration.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    return MixtureOfExperts(
        config.d_model,
        config.expert_width,
        config.n_experts,
        config.top_k,
        renormalize=config.renormalize,
        activation=config.activation,
        bias=config.bias,
        rng=rng,
        dtype=dtype,
    )


class MixtureBlock(Block):
    """A layer of a Mixture: x = x + self_attention(norm(x)), then x = x + mixture(norm(x)).

    The forward pass and the arguments are those of Block. Shapes: x (B, T, D) -> y (B, T, D).
    """

    def backward(self, dy: Array, cache: BlockCache, *dbalance: float) -> Array:
        """Return dx, of shape (B, T, D).

        Args:
            dy: The gradient of y, of shape (B, T, D).
            cache: The cache of forward.
            dbalance: The gradient of the load-balancing loss, if the loss contains it.
        """
        # y = x + h, h = dropout2(mixture(norm2(x))): a sum passes its gradient to both terms
        dh = self.dropout2.backward(dy, cache.dropout2)
        dh = self.feed_forward.backward(dh, cache.feed_forward, *dbalance)
        dx = dy + self.norm2.backward(dh, cache.norm2)

        # x = x + h, h = dropout1(self_attention(norm1(x)))
        dh = self.dropout1.backward(dx, cache.dropout1)
        dh = self.self_attention.backward(dh, cache.self_attention)
        return dx + self.norm1.backward(dh, cache.norm1)


class Mixture(GPT):
    """A GPT with mixtures of experts. Shapes: ids (B, T) integers -> logits (B, T, V).

    The training loss is the cross-entropy plus config.balance_weight times the load-balancing loss of each
    layer that has experts.

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Source: Jiang et al. 2024, section 2; the loss is that of Fedus et al. 2022, section 2.2.
    """

    config: MixtureConfig
    has_auxiliary_loss = True

    def make_layers(self, rng: np.random.Generator, dtype: Any) -> list[Block]:
        """Return the layers: blocks with experts, and those of a GPT where config.dense says so."""
        config = self.config
        attention: Any = MultiHeadAttention
        if config.qk_norm:
            attention = partial(QKNormAttention, eps=config.norm_eps)
        rotary = None if config.positions == "learned" else make_rotary(config, dtype)
        mixture = partial(MixtureBlock, feed_forward=make_mixture)
        kinds = [Block if layer in config.dense else mixture for layer in range(config.n_layers)]
        return [kind(config, rotary, rng, dtype, attention) for kind in kinds]

    def auxiliary_loss(self, cache: GPTCache) -> Array:
        """Return balance_weight · tokens · Σ balance over all layers with experts, of shape ()."""
        layers: list[Any] = [layer.feed_forward for layer in cache.layers]
        balance: Any = sum(layer.balance for layer in layers if isinstance(layer, MixtureCache))
        return self._balance_factor(cache) * balance

    def backward(self, dlogits: Array, cache: GPTCache, *, dauxiliary: float = 0.0) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient.

        Args:
            dlogits: The gradient of the logits, of shape (B, T, V).
            cache: The cache of forward.
            dauxiliary: The gradient of auxiliary_loss(cache).
        """
        dbalance = [dauxiliary * self._balance_factor(cache)] if dauxiliary else []
        dx = dlogits if self.output is None else self.output.backward(dlogits, cache.output)  # (B, T, D)
        dx = self.norm.backward(dx, cache.norm)
        for layer, layer_cache in zip(self.layers[::-1], cache.layers[::-1], strict=True):
            if isinstance(layer, MixtureBlock):
                dx = layer.backward(dx, layer_cache, *dbalance)
            else:
                dx = layer.backward(dx, layer_cache)
        self.embedding.backward(dx, cache.embedding)

    def _balance_factor(self, cache: GPTCache) -> float:
        """Return balance_weight times the number of tokens, by which a training step divides its losses."""
        ids = cache.embedding.tokens.ids
        return self.config.balance_weight * ids.size
