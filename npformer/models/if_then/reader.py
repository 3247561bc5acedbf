"""RecipeReader: a bidirectional recurrent layer and two latent attention layers over a description."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.linear import LinearCache
from npformer.models.if_then.descriptions import DescriptionModel, Program
from npformer.nn import Bidirectional, Linear
from npformer.nn.attention.latent import LatentAttention, LatentAttentionCache
from npformer.nn.init import default_rng
from npformer.nn.module import Module
from npformer.nn.recurrent import BidirectionalCache


@cache_class
class AnswerCache(NamedTuple):
    """The cache of Answer."""

    attention: LatentAttentionCache
    output: LinearCache


class Answer(Module):
    """A classifier with latent attention: logits = o weight + bias.

    The vector o is a weighted mean of the token vectors. Latent attention computes its weights from the
    states. Shapes: states (B, S, E), tokens (B, S, D), mask (B, S) bool -> logits (B, C).

    Args:
        d_state: The width E of the states.
        d_token: The width D of the token vectors.
        n_classes: The number C of classes.
        max_length: The largest length of a description.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
        settings: The other settings of LatentAttention.

    Source: Liu et al. 2016, section 3.
    """

    def __init__(
        self,
        d_state: int,
        d_token: int,
        n_classes: int,
        max_length: int,
        *,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
        **settings: Any,
    ) -> None:
        rng = default_rng(rng)
        self.attention = LatentAttention(d_state, max_length, rng=rng, dtype=dtype, **settings)
        self.output = Linear(d_token, n_classes, rng=rng, dtype=dtype)

    def forward(self, states: Array, tokens: Array, mask: Array) -> tuple[Array, AnswerCache]:
        """Compute the logits of the classes.

        Args:
            states: The states of the recurrent layer, of shape (B, S, E).
            tokens: The token vectors, of shape (B, S, D).
            mask: Bool, of shape (B, S). True at tokens and False at padding.

        Returns:
            The logits, of shape (B, C), and the cache.
        """
        o, attention_cache = self.attention.forward(states, tokens, mask=mask)  # (B, D)
        logits, output_cache = self.output.forward(o)  # (B, C)
        return logits, AnswerCache(attention_cache, output_cache)

    def backward(self, dlogits: Array, cache: AnswerCache) -> tuple[Array, Array]:
        """Return the gradients dstates (B, S, E) and dtokens (B, S, D)."""
        do = self.output.backward(dlogits, cache.output)
        return self.attention.backward(do, cache.attention)


@cache_class
class ReaderCache(NamedTuple):
    """The cache of RecipeReader, with one entry for each of its layers."""

    tokens: EmbeddingCache
    reading: BidirectionalCache
    trigger: AnswerCache
    action: AnswerCache


class RecipeReader(DescriptionModel):
    """A model that predicts trigger and action by latent attention.

    A bidirectional recurrent layer computes states, which depend on the order of the tokens. One attention
    layer for the trigger and one for the action compute weights from these states. The values of both layers
    are the token vectors, which do not depend on the order. So the order of the tokens affects the prediction
    only through the weights. Shapes: ids (B, S) integers -> Program with logits (B, n_triggers) and
    (B, n_actions).

    Args:
        vocab_size: The number of tokens.
        n_triggers: The number of triggers.
        n_actions: The number of actions.
        d_model: The width D of the token vectors.
        d_hidden: The width of each direction of the recurrent layer.
        max_length: The largest length of a description.
        cell: "lstm" or "gru".
        orientation: The active weights of latent attention: "rows" for w = D l, "columns" for w = Dᵀ l.
        measure: The norm by which the active weights are divided: "sum" or "euclidean".
        pad_id: The id of padding.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If ids are outside the vocabulary, or descriptions are empty or longer than max_length.

    Source: Liu et al. 2016, section 3.
    """

    def __init__(
        self,
        vocab_size: int,
        n_triggers: int,
        n_actions: int,
        *,
        d_model: int = 32,
        d_hidden: int = 32,
        max_length: int = 25,
        cell: str = "lstm",
        orientation: str = "rows",
        measure: str = "sum",
        pad_id: int = 0,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        settings: dict[str, Any] = {"rng": default_rng(rng), "dtype": dtype}
        super().__init__(vocab_size, d_model, max_length, pad_id, **settings)
        self.reading = Bidirectional(d_model, d_hidden, kind=cell, **settings)
        settings |= {"orientation": orientation, "measure": measure}
        self.trigger = Answer(2 * d_hidden, d_model, n_triggers, max_length, **settings)
        self.action = Answer(2 * d_hidden, d_model, n_actions, max_length, **settings)
        self.flatten()

    def forward(self, ids: Any) -> tuple[Program, ReaderCache]:
        """Return the Program with the logits (B, n_triggers) and (B, n_actions), and the cache."""
        x, mask, tokens_cache = self.embed(ids)  # (B, S, D)
        states, reading_cache = self.reading.forward(x, mask=mask)  # (B, S, E)
        trigger, trigger_cache = self.trigger.forward(states, x, mask)
        action, action_cache = self.action.forward(states, x, mask)
        return Program(trigger, action), ReaderCache(tokens_cache, reading_cache, trigger_cache, action_cache)

    def backward(self, dprogram: Program, cache: ReaderCache) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient."""
        # trigger and action use the same states and the same token vectors, so their gradients are added
        dstates_trigger, dx_trigger = self.trigger.backward(dprogram.trigger, cache.trigger)
        dstates_action, dx_action = self.action.backward(dprogram.action, cache.action)
        # the token vectors x are also the input of the recurrent layer
        dx_reading = self.reading.backward(dstates_trigger + dstates_action, cache.reading)
        self.tokens.backward(dx_trigger + dx_action + dx_reading, cache.tokens)
