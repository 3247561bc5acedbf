"""The encoder-decoder Transformer: embeddings, encoder, decoder and output projection."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module
from npformer.functional.caches import cache_class
from npformer.functional.ids import check_pairs, take_ids
from npformer.functional.linear import LinearCache
from npformer.functional.masks import causal_mask, padding_mask, query_mask
from npformer.functional.packing import find_tokens, pack, unpack
from npformer.models.transformer.config import TransformerConfig
from npformer.models.transformer.stacks import Decoder, Encoder, StackCache
from npformer.nn import Embedding, InputEmbedding, Linear, TiedProjection
from npformer.nn.context import AttentionMask, Context
from npformer.nn.embedding import InputCache
from npformer.nn.init import default_rng
from npformer.nn.module import Module


def make_embedding(
    config: TransformerConfig, vocab_size: int, rng: np.random.Generator | None, dtype: Any
) -> InputEmbedding:
    """Return the input embedding with the settings of a configuration.

    Args:
        config: The configuration.
        vocab_size: The number of tokens.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    return InputEmbedding(
        vocab_size,
        config.d_model,
        config.max_length,
        positions=config.positions,
        scale=config.scale_embedding,
        zero_id=config.pad_id if config.zero_padding else None,
        dropout=config.input_dropout,
        rng=rng,
        dtype=dtype,
    )


def make_output(
    config: TransformerConfig, tokens: Embedding, rng: np.random.Generator | None, dtype: Any
) -> Linear | TiedProjection:
    """Return the projection from vectors to logits.

    Args:
        config: The configuration.
        tokens: The embedding whose weight a tied projection shares.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """
    bias = config.output_bias
    if config.tied == "none":
        return Linear(config.d_model, config.target_vocab, bias=bias, rng=rng, dtype=dtype)
    return TiedProjection(tokens.weight, bias=bias, dtype=dtype)


def make_mask(config: TransformerConfig, ids: Any, packed: bool = False) -> AttentionMask:
    """Return the AttentionMask that allows every query to attend to the keys that are not padding.

    Args:
        config: The configuration. Its setting query_masking adds a query mask.
        ids: The token ids of a batch of sentences, of shape (B, S).
        packed: Add the packing of the batch.
    """
    queries = None if config.query_masking == "none" else query_mask(ids, config.pad_id)
    packing = find_tokens(ids, config.pad_id) if packed else None
    return AttentionMask(padding_mask(ids, config.pad_id), queries, packing)


@cache_class
class TransformerCache(NamedTuple):
    """The cache of Transformer, with one entry for each of its layers."""

    source: InputCache
    encoder: StackCache
    target: InputCache
    decoder: StackCache
    output: LinearCache
    packings: tuple[Any, ...]  # the packings of source and target, each None without packing


class Masks(NamedTuple):
    """The masks of the three kinds of attention."""

    encoder: AttentionMask
    decoder: AttentionMask  # for the self-attention of the decoder
    cross: AttentionMask  # for cross-attention


class Transformer(Module):
    """The encoder-decoder Transformer.

        logits = output(decoder(target(target_in), encoder(source(source))))

    target_in is the translation shifted right: the start symbol, followed by all tokens except the last.
    Shapes: source (B, S) and target_in (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If ids are outside the vocabulary, or if sentences are empty or longer than max_length.

    Source: Vaswani et al. 2017, figure 1.
    """

    supports_packing = True

    def __init__(
        self, config: TransformerConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.config = config
        self.source = self.make_input(config.source_vocab, rng, dtype)
        self.encoder = self.make_encoder(rng, dtype)
        self.target = self.make_input(config.target_vocab, rng, dtype)
        if config.tied == "all":
            self.target.tokens.weight = self.source.tokens.weight
        self.decoder = self.make_decoder(rng, dtype)
        self.output: Any = self.make_output(rng, dtype)
        self.flatten()

    # A family with other parts replaces the methods that make them.

    def make_input(self, vocab_size: int, rng: np.random.Generator, dtype: Any) -> Any:
        """Return the input of the encoder or the decoder.

        Args:
            vocab_size: The number of tokens.
            rng: The generator of the initial values.
            dtype: The dtype of the parameters.
        """
        return make_embedding(self.config, vocab_size, rng, dtype)

    def make_encoder(self, rng: np.random.Generator, dtype: Any) -> Encoder:
        """Return the encoder."""
        return Encoder(self.config, rng=rng, dtype=dtype)

    def make_decoder(self, rng: np.random.Generator, dtype: Any) -> Decoder:
        """Return the decoder."""
        return Decoder(self.config, rng=rng, dtype=dtype)

    def make_output(self, rng: np.random.Generator, dtype: Any) -> Any:
        """Return the output layer, which may share its weight with the input of the decoder."""
        return make_output(self.config, self.target.tokens, rng, dtype)

    def forward(
        self,
        source: Any,
        target_in: Any,
        *,
        train: bool = False,
        rng: np.random.Generator | None = None,
        packed: bool = False,
    ) -> tuple[Array, TransformerCache]:
        """Compute the logits of the next token at each position of target_in.

        Args:
            source: The source token ids, of shape (B, S).
            target_in: The target token ids, shifted right, of shape (B, T).
            train: True turns dropout on.
            rng: The generator for dropout. It is needed if train is True and the dropout is not 0.
            packed: True computes nothing at padding.

        Returns:
            The logits, of shape (B, T, V), and the cache. With packed=True the logits are of shape (N, V),
            for the N tokens of target_in, sentence after sentence.
        """
        source = self._take_ids(source, self.config.source_vocab, "source")
        target_in = self._take_ids(target_in, self.config.target_vocab, "target_in")
        check_pairs(source, target_in)
        context = Context(train, rng)
        masks = self._masks(source, target_in, packed)
        packings = (masks.encoder.packing, masks.decoder.packing)

        x, source_cache = self.source.forward(source, context)  # (B, S, D)
        memory, encoder_cache = self.encoder.forward(pack(x, packings[0]), masks.encoder, context)
        x, target_cache = self.target.forward(target_in, context)  # (B, T, D)
        x, decoder_cache = self.decoder.forward(
            pack(x, packings[1]), memory, masks.decoder, masks.cross, context
        )
        logits, output_cache = self.output.forward(x)  # (B, T, V)
        return logits, TransformerCache(
            source_cache, encoder_cache, target_cache, decoder_cache, output_cache, packings
        )

    def backward(self, dlogits: Array, cache: TransformerCache) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient.

        Shapes: dlogits (B, T, V).
        """
        # logits = output(y)
        dx = self.output.backward(dlogits, cache.output)
        del dlogits  # a large array, whose memory can be freed if the caller does not use it either
        # y = decoder(target, memory), memory = encoder(source)
        dx, dmemory = self.decoder.backward(dx, cache.decoder)
        source_packing, target_packing = cache.packings
        self.target.backward(unpack(dx, target_packing), cache.target)
        dx = self.encoder.backward(dmemory, cache.encoder)
        self.source.backward(unpack(dx, source_packing), cache.source)

    def _masks(self, source: Any, target_in: Any, packed: bool) -> Masks:
        """Return the masks of the three kinds of attention."""
        config = self.config
        of_source = make_mask(config, source, packed)
        of_target = make_mask(config, self._with_start_marked(target_in), packed)
        causal = causal_mask(target_in.shape[1], target_in)  # (T, T)
        return Masks(
            of_source,
            replace(of_target, allowed=of_target.allowed & causal),  # (B, 1, T, T)
            replace(of_target, allowed=of_source.allowed, key_packing=of_source.packing),
        )

    def _with_start_marked(self, target_in: Array) -> Array:
        """Return target_in (B, T) as the masks read it: the start symbol is never padding.

        In the models of Marian, its id is that of padding, and all tokens attend to it.
        """
        if self.config.start_id != self.config.pad_id:
            return target_in
        marked = target_in.copy()
        marked[:, 0] = self.config.end_id  # any id that is not that of padding
        return marked

    def _take_ids(self, ids: Any, vocab_size: int, name: str, start: int = 0) -> Array:
        return take_ids(ids, vocab_size, self.config.max_length, name, self.reference, start=start)

    # Inference: one position after another, without caches for a backward pass.

    def encode(self, source: Any) -> tuple[Any, Any]:
        """Encode the source (B, S).

        Returns:
            The keys and values of the memory for each decoder layer, and the source mask (B, 1, 1, S).
        """
        source = self._take_ids(source, self.config.source_vocab, "source")
        mask = make_mask(self.config, source)
        x = self.source.forward(source)[0]  # (B, S, D)
        memory = self.encoder.encode(x, mask)  # (B, S, D)
        return self.decoder.project_memory(memory), mask.allowed

    def decode_step(
        self, ids: Any, start: int, kv_cache: Any, memory_kv: Any, memory_mask: Array
    ) -> tuple[Array, Any]:
        """Compute the logits of the next token from the last token and the KV cache.

        Args:
            ids: The last token of each sentence, of shape (B,).
            start: The position of these tokens.
            kv_cache: The KV cache that the previous call returned, or None at the first position.
            memory_kv: The keys and values of the memory that encode returned.
            memory_mask: The source mask that encode returned.

        Returns:
            The logits, of shape (B, V), and the new KV cache.

        Raises:
            UserError: If ids are outside the vocabulary, or if the sentence becomes longer than max_length.
        """
        ids = self._take_ids(ids[:, None], self.config.target_vocab, "target", start)
        x, _ = self.target.forward(ids, start=start)  # (B, 1, D)
        x, kv_cache = self.decoder.decode_step(x, kv_cache, memory_kv, memory_mask)
        logits, _ = self.output.forward(x)  # (B, 1, V)
        return logits[:, 0], kv_cache


def shifted_right(target: Array, start_id: int) -> Array:
    """Return the input of the decoder: the start symbol, followed by the target without its last token.

    Shapes: target (B, T) -> (B, T).
    """
    xp = array_module(target)
    start = xp.full((len(target), 1), start_id, target.dtype)
    return xp.concatenate([start, target[:, :-1]], 1)
