"""The base class of the if-then models, the bag-of-words model, and the loss of a program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.ids import take_ids
from npformer.functional.linear import LinearCache
from npformer.functional.losses import CrossEntropyCache, cross_entropy, cross_entropy_backward
from npformer.nn import Embedding, Linear
from npformer.nn.init import default_rng
from npformer.nn.module import Module, Parameter


class Program(NamedTuple):
    """The logits of all triggers and of all actions. The predicted program has the largest logit of each."""

    trigger: Any  # (B, n_triggers) logits
    action: Any  # (B, n_actions) logits


class DescriptionModel(Module):
    """The base class of the if-then models, which embeds the tokens of a description.

    Args:
        vocab_size: The number of tokens.
        d_model: The width D of the token vectors.
        max_length: The largest length of a description.
        pad_id: The id of padding.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        max_length: int,
        pad_id: int,
        *,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.vocab_size, self.max_length, self.pad_id = vocab_size, max_length, pad_id
        self.tokens = Embedding(vocab_size, d_model, rng=rng, dtype=dtype)

    def embed(self, ids: Any) -> tuple[Array, Array, Any]:
        """Return the token vectors (B, S, D), a bool mask (B, S), True at tokens, and the cache.

        Raises:
            UserError: If ids are outside the vocabulary, or descriptions are empty or longer than max_length.
        """
        ids = take_ids(ids, self.vocab_size, self.max_length, "ids", self.tokens.weight.value)
        x, cache = self.tokens.forward(ids)
        return x, ids != self.pad_id, cache


@cache_class
class BagCache(NamedTuple):
    """The cache of BagOfWords."""

    tokens: EmbeddingCache
    weights: Any  # (B, S) 1 / (number of tokens) at each token, 0 at padding
    trigger: LinearCache
    action: LinearCache


class BagOfWords(DescriptionModel):
    """A model that predicts trigger and action from the mean of the token vectors.

    Descriptions with the same words in another order get the same prediction. Shapes: ids (B, S) integers ->
    Program with logits (B, n_triggers) and (B, n_actions).

    Args:
        vocab_size: The number of tokens.
        n_triggers: The number of triggers.
        n_actions: The number of actions.
        d_model: The width D of the token vectors.
        max_length: The largest length of a description.
        pad_id: The id of padding.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If ids are outside the vocabulary, or if descriptions are empty or longer than max_length.
    """

    def __init__(
        self,
        vocab_size: int,
        n_triggers: int,
        n_actions: int,
        *,
        d_model: int = 32,
        max_length: int = 25,
        pad_id: int = 0,
        rng: np.random.Generator | None = None,
        dtype: Any = np.float32,
    ) -> None:
        settings: dict[str, Any] = {"rng": default_rng(rng), "dtype": dtype}
        super().__init__(vocab_size, d_model, max_length, pad_id, **settings)
        self.trigger = Linear(d_model, n_triggers, **settings)
        self.action = Linear(d_model, n_actions, **settings)
        self.flatten()

    def forward(self, ids: Any) -> tuple[Program, BagCache]:
        """Return the Program with the logits (B, n_triggers) and (B, n_actions), and the cache."""
        x, mask, tokens = self.embed(ids)  # (B, S, D)
        count = array_module(x).maximum(mask.sum(-1, keepdims=True), 1)  # (B, 1)
        weights = (mask / count).astype(x.real.dtype)  # (B, S)
        mean = (weights[:, :, None] * x).sum(1)  # (B, D)
        trigger, trigger_cache = self.trigger.forward(mean)
        action, action_cache = self.action.forward(mean)
        return Program(trigger, action), BagCache(tokens, weights, trigger_cache, action_cache)

    def backward(self, dprogram: Program, cache: BagCache) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient."""
        # trigger and action are computed from the same mean, so its two gradients are added
        dmean = self.trigger.backward(dprogram.trigger, cache.trigger)
        dmean = dmean + self.action.backward(dprogram.action, cache.action)  # (B, D)
        # mean = Σ_j weights_j x_j
        self.tokens.backward(cache.weights[:, :, None] * dmean[:, None], cache.tokens)


class ProgramLoss:
    """The training loss of an if-then model: cross-entropy of the trigger + cross-entropy of the action.

    It has the methods forward and backward of a layer. So gradcheck(ProgramLoss(model), ids, triggers,
    actions) checks all parameters of the model at once.

    Args:
        model: The model, a BagOfWords or a RecipeReader.
    """

    def __init__(self, model: Any) -> None:
        self.model = model

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Yield pairs (name, Parameter) of the model."""
        return self.model.named_parameters()

    def forward(self, ids: Any, triggers: Array, actions: Array) -> tuple[Any, tuple[Any, Any, Any]]:
        """Compute the loss.

        Args:
            ids: The token ids of the descriptions, of shape (B, S).
            triggers: The index of the right trigger of each description, of shape (B,).
            actions: The index of the right action of each description, of shape (B,).

        Returns:
            The loss, of shape (), and the cache.
        """
        program, cache = self.model.forward(ids)
        trigger, trigger_cache = cross_entropy(program.trigger, triggers)
        action, action_cache = cross_entropy(program.action, actions)
        return trigger + action, (cache, trigger_cache, action_cache)

    def backward(self, dloss: Any, cache: tuple[Any, CrossEntropyCache, CrossEntropyCache]) -> None:
        """Accumulate the gradients of all parameters of the model."""
        model_cache, trigger_cache, action_cache = cache
        # loss = trigger + action: a sum passes its gradient to both terms
        dprogram = Program(
            cross_entropy_backward(dloss, trigger_cache), cross_entropy_backward(dloss, action_cache)
        )
        self.model.backward(dprogram, model_cache)
