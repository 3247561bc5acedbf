"""LanguageModel and CausalLanguageModel: models of one language, made of the translator's encoder layers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.ids import take_ids
from npformer.functional.masks import causal_mask
from npformer.models.transformer.config import TransformerConfig
from npformer.models.transformer.model import make_embedding, make_mask, make_output
from npformer.models.transformer.stacks import Encoder, StackCache
from npformer.nn.context import AttentionMask, Context
from npformer.nn.embedding import InputCache
from npformer.nn.init import default_rng
from npformer.nn.module import Module


@cache_class
class LanguageModelCache(NamedTuple):
    """The cache of a language model, with one entry for each of its layers."""

    embedding: InputCache
    encoder: StackCache
    output: Any


class LanguageModel(Module):
    """A model of one language that predicts a token at each position.

        logits = output(encoder(embedding(ids)))

    Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: A configuration with source_vocab equal to target_vocab. tied="all" has the same effect as
            tied="output".
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the vocabularies differ in size, if ids are outside the vocabulary, or if sentences are
            empty or longer than max_length.
    """

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        if config.source_vocab != config.target_vocab:
            raise UserError(
                f"source_vocab is {config.source_vocab} and target_vocab {config.target_vocab}, and a model "
                "of one language has one vocabulary: make them equal"
            )
        rng = default_rng(rng)
        self.config = config
        self.embedding = make_embedding(config, config.target_vocab, rng, dtype)
        self.encoder = Encoder(config, rng=rng, dtype=dtype)
        self.output = make_output(config, self.embedding.tokens, rng, dtype)
        self.flatten()

    def forward(
        self, ids: Any, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[Array, Any]:
        """Compute the logits at each position.

        Args:
            ids: The token ids, of shape (B, T).
            train: True turns dropout on.
            rng: The generator for dropout. It is needed if train is True and the dropout is not 0.

        Returns:
            The logits, of shape (B, T, V), and the cache.
        """
        ids = self._take_ids(ids)
        context = Context(train, rng)
        x, embedding = self.embedding.forward(ids, context)  # (B, T, D)
        x, encoder = self.encoder.forward(x, self.mask(ids), context)
        logits, output = self.output.forward(x)  # (B, T, V)
        return logits, LanguageModelCache(embedding, encoder, output)

    def backward(self, dlogits: Array, cache: Any) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient."""
        dx = self.output.backward(dlogits, cache.output)
        dx = self.encoder.backward(dx, cache.encoder)
        self.embedding.backward(dx, cache.embedding)

    def mask(self, ids: Any) -> AttentionMask:
        """Return the AttentionMask that allows every token to attend to every token, but not to padding."""
        return make_mask(self.config, ids)

    def _take_ids(self, ids: Any, start: int = 0) -> Array:
        c = self.config
        return take_ids(ids, c.target_vocab, c.max_length, "ids", self.reference, start=start)


class CausalLanguageModel(LanguageModel):
    """A decoder without an encoder, which predicts the next token from the tokens before it.

    Without an encoder there is no cross-attention. So each layer consists of self-attention and a
    feed-forward network, like an encoder layer, but with a causal mask. Arguments, shapes and errors: as in
    LanguageModel.

    Source: Radford et al. 2018, section 3.1; Liu et al. 2018.
    """

    def mask(self, ids: Any) -> AttentionMask:
        """Return the AttentionMask that allows a token to attend to itself and to the tokens before it."""
        mask = super().mask(ids)
        return replace(mask, allowed=mask.allowed & causal_mask(ids.shape[1], ids))  # (B, 1, T, T)

    def decode_step(self, ids: Any, start: int, kv_cache: Any) -> tuple[Array, Any]:
        """Compute the logits of the next token from the last token and the KV cache.

        Args:
            ids: The last token of each sentence, of shape (B,).
            start: The position of these tokens.
            kv_cache: The KV cache that the previous call returned, or None at the first position.

        Returns:
            The logits, of shape (B, V), and the new KV cache.

        Raises:
            UserError: If ids are outside the vocabulary, or if the sentence becomes longer than max_length.
        """
        x, _ = self.embedding.forward(self._take_ids(ids[:, None], start), start=start)  # (B, 1, D)
        x, kv_cache = self.encoder.decode_step(x, kv_cache)
        logits, _ = self.output.forward(x)  # (B, 1, V)
        return logits[:, 0], kv_cache
