"""RecurrentTranslator: the kind of translation model that was common before the Transformer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.functional.caches import cache_class
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.ids import check_pairs, take_ids
from npformer.functional.linear import LinearCache
from npformer.models.recurrent.config import RecurrentConfig
from npformer.models.recurrent.decoder import DecoderCache, RecurrentDecoder
from npformer.models.recurrent.encoder import Bridge, BridgeCache, RecurrentEncoder
from npformer.nn import Dropout, Embedding, Linear
from npformer.nn.context import Context
from npformer.nn.dropout import DropoutCache
from npformer.nn.init import default_rng
from npformer.nn.module import Module
from npformer.nn.recurrent import BidirectionalCache, RecurrentCache


@cache_class
class TranslatorCache(NamedTuple):
    """The cache of RecurrentTranslator, with entries for each of its layers."""

    source: EmbeddingCache
    source_dropout_mask: DropoutCache  # (B, S, D) the dropout mask, or None
    encoder: BidirectionalCache | RecurrentCache
    bridge: BridgeCache
    target: EmbeddingCache
    target_dropout_mask: DropoutCache  # (B, T, D)
    decoder: DecoderCache
    output_dropout_mask: DropoutCache  # (B, T, N)
    output: LinearCache


class EncodedSource(NamedTuple):
    """The result of the encoder, which is computed once for each sentence."""

    memory: Any  # (B, S, N)
    state: Any  # (B, M) the initial state of the decoder


class RecurrentTranslator(Module):
    """A recurrent encoder-decoder translator.

        memory = encoder(source(source))
        logits = output(decoder(target(target_in), memory, bridge(memory)))

    Shapes: source (B, S) and target_in (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If ids are outside the vocabulary, or if sentences are empty or longer than max_length.

    Source: Bahdanau et al. 2015; Luong et al. 2015.
    """

    def __init__(
        self, config: RecurrentConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        rng = default_rng(rng)
        self.config = config
        settings: dict[str, Any] = {"scale": config.embedding_scale, "dtype": dtype}
        self.source = Embedding(config.source_vocab, config.d_model, **settings, rng=rng)
        self.encoder = RecurrentEncoder(config, rng=rng, dtype=dtype)
        self.target = Embedding(config.target_vocab, config.d_model, **settings, rng=rng)
        self.decoder = RecurrentDecoder(config, rng=rng, dtype=dtype)
        self.bridge = Bridge(config, self.decoder.cell.d_state, rng=rng, dtype=dtype)
        self.output = Linear(config.d_hidden, config.target_vocab, rng=rng, dtype=dtype)
        self.dropout = Dropout(config.dropout)
        self.flatten()

    def forward(
        self, source: Any, target_in: Any, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[Array, TranslatorCache]:
        """Compute the logits of the next token at each position of target_in.

        Args:
            source: The source token ids, of shape (B, S).
            target_in: The target token ids, shifted right, of shape (B, T).
            train: True turns dropout on.
            rng: The generator for dropout. It is needed if train is True and the dropout is not 0.

        Returns:
            The logits, of shape (B, T, V), and the cache.
        """
        source = self._take_ids(source, self.config.source_vocab, "source")
        target_in = self._take_ids(target_in, self.config.target_vocab, "target_in")
        check_pairs(source, target_in)
        context = Context(train, rng)
        mask = source != self.config.pad_id  # (B, S)
        x, source_cache = self.source.forward(source)  # (B, S, D)
        x, source_dropout_mask = self.dropout.forward(x, context)
        memory, encoder_cache = self.encoder.forward(x, mask)  # (B, S, N)
        state, bridge_cache = self.bridge.forward(memory)  # (B, M)
        x, target_cache = self.target.forward(target_in)  # (B, T, D)
        x, target_dropout_mask = self.dropout.forward(x, context)
        y, decoder_cache = self.decoder.forward(x, memory, mask, state)  # (B, T, N)
        y, output_dropout_mask = self.dropout.forward(y, context)
        logits, output_cache = self.output.forward(y)  # (B, T, V)
        return logits, TranslatorCache(
            source_cache,
            source_dropout_mask,
            encoder_cache,
            bridge_cache,
            target_cache,
            target_dropout_mask,
            decoder_cache,
            output_dropout_mask,
            output_cache,
        )

    def backward(self, dlogits: Array, cache: TranslatorCache) -> None:
        """Accumulate the gradients of all parameters. Return nothing, since ids have no gradient.

        Shapes: dlogits (B, T, V).
        """
        # logits = output(dropout(y))
        dy = self.output.backward(dlogits, cache.output)
        dy = self.dropout.backward(dy, cache.output_dropout_mask)
        # y = decoder(dropout(target), memory, bridge(memory))
        dx, dmemory, dstate = self.decoder.backward(dy, cache.decoder)
        self.target.backward(self.dropout.backward(dx, cache.target_dropout_mask), cache.target)
        # the decoder and the bridge used the memory, so its two gradients are added
        dmemory = dmemory + self.bridge.backward(dstate, cache.bridge)
        dx = self.encoder.backward(dmemory, cache.encoder)
        self.source.backward(self.dropout.backward(dx, cache.source_dropout_mask), cache.source)

    def _take_ids(self, ids: Any, vocab_size: int, name: str, start: int = 0) -> Array:
        return take_ids(ids, vocab_size, self.config.max_length, name, self.reference, start=start)

    # Inference: one position after another, without caches for a backward pass.

    def encode(self, source: Any) -> tuple[Any, Array]:
        """Compute the memory and the initial state of the decoder, once for each sentence.

        Args:
            source: The source token ids, of shape (B, S).

        Returns:
            An EncodedSource, and the source mask, bool, of shape (B, S), True at tokens.
        """
        source = self._take_ids(source, self.config.source_vocab, "source")
        mask = source != self.config.pad_id
        x, _ = self.source.forward(source)
        memory, _ = self.encoder.forward(x, mask)
        return EncodedSource(memory, self.bridge.forward(memory)[0]), mask

    def decode_step(
        self, ids: Any, start: int, kv_cache: Any, encoded: EncodedSource, memory_mask: Array
    ) -> tuple[Array, Any]:
        """Compute the logits of the next token from the last token and the state of the decoder.

        Args:
            ids: The last token of each sentence, of shape (B,).
            start: The position of these tokens.
            kv_cache: The state that the previous call returned, or None at the first position. It has the
                name of the same argument of the Transformer, and contains no keys and values.
            encoded: The encoded source that encode returned.
            memory_mask: The source mask that encode returned.

        Returns:
            The logits, of shape (B, V), and the new state.

        Raises:
            UserError: If ids are outside the vocabulary, or if the sentence becomes longer than max_length.
        """
        ids = self._take_ids(ids[:, None], self.config.target_vocab, "target", start)
        carried = self.decoder.begin(encoded.state) if kv_cache is None else kv_cache
        x, _ = self.target.forward(ids[:, 0])  # (B, D)
        y, carried, _ = self.decoder.decode_step(x, carried, encoded.memory, memory_mask, start)
        return self.output.forward(y)[0], carried
