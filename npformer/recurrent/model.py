"""RecurrentTranslator: what translated before the Transformer, forward and backward."""

from typing import Any, NamedTuple

import numpy as np

from npformer.functional.embedding import EmbeddingCache
from npformer.ids import check_pairs, take_ids
from npformer.layers import Dropout, Embedding, Linear
from npformer.layers.init import default_rng
from npformer.module import Module
from npformer.recurrent.decoder import DecoderCache, RecurrentDecoder
from npformer.recurrent.encoder import Bridge, BridgeCache, RecurrentEncoder


class TranslatorCache(NamedTuple):
    """The cache of RecurrentTranslator, a tree that mirrors the model's."""

    source: EmbeddingCache
    source_keep: Any  # (B, S, D) what dropout kept, or None
    encoder: Any
    bridge: BridgeCache
    target: EmbeddingCache
    target_keep: Any  # (B, T, D)
    decoder: DecoderCache
    output_keep: Any  # (B, T, N)
    output: Any


class Remembered(NamedTuple):
    """What decoding keeps of a source sentence."""

    memory: Any  # (B, S, N)
    state: Any  # (B, M) with which the decoder begins


class RecurrentTranslator(Module):
    """logits = output(decoder(target(target_in), memory, bridge(memory))), memory = encoder(source(source)).

    Shapes: source (B, S) and target_in (B, T) integers -> logits (B, T, V).
    Errors: UserError for ids outside the vocabulary, or sentences that are empty or over max_length.
    Source: Bahdanau et al. 2015; Luong et al. 2015.
    """

    def __init__(self, config, *, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        self.config = config
        self.source = Embedding(config.source_vocab, config.d_model, rng=rng, dtype=dtype)
        self.encoder = RecurrentEncoder(config, rng=rng, dtype=dtype)
        self.target = Embedding(config.target_vocab, config.d_model, rng=rng, dtype=dtype)
        self.decoder = RecurrentDecoder(config, rng=rng, dtype=dtype)
        self.bridge = Bridge(config, self.decoder.cell.d_state, rng=rng, dtype=dtype)
        self.output = Linear(config.d_hidden, config.target_vocab, rng=rng, dtype=dtype)
        self.dropout = Dropout(config.dropout)
        self.flatten()

    def forward(self, source, target_in, *, train=False, rng=None):
        """Returns (logits, cache). With train=True dropout draws from rng."""
        source = self._take_ids(source, self.config.source_vocab, "source")
        target_in = self._take_ids(target_in, self.config.target_vocab, "target_in")
        check_pairs(source, target_in)
        drop = {"train": train, "rng": rng}
        mask = source != self.config.pad_id  # (B, S)
        x, source_cache = self.source.forward(source)  # (B, S, D)
        x, source_keep = self.dropout.forward(x, **drop)
        memory, encoder = self.encoder.forward(x, mask)  # (B, S, N)
        state, bridge = self.bridge.forward(memory)  # (B, M)
        x, target_cache = self.target.forward(target_in)  # (B, T, D)
        x, target_keep = self.dropout.forward(x, **drop)
        y, decoder = self.decoder.forward(x, memory, mask, state)  # (B, T, N)
        y, output_keep = self.dropout.forward(y, **drop)
        logits, output = self.output.forward(y)  # (B, T, V)
        return logits, TranslatorCache(
            source_cache,
            source_keep,
            encoder,
            bridge,
            target_cache,
            target_keep,
            decoder,
            output_keep,
            output,
        )

    def backward(self, dlogits, cache):
        """Adds every parameter's gradient to its .grad; returns nothing, since ids have no gradient."""
        dy = self.output.backward(dlogits, cache.output)
        dy = self.dropout.backward(dy, cache.output_keep)
        dx, dmemory, dstate = self.decoder.backward(dy, cache.decoder)
        self.target.backward(self.dropout.backward(dx, cache.target_keep), cache.target)
        # the memory was looked at, and its ends made the first state
        dmemory = dmemory + self.bridge.backward(dstate, cache.bridge)
        dx = self.encoder.backward(dmemory, cache.encoder)
        self.source.backward(self.dropout.backward(dx, cache.source_keep), cache.source)

    def _take_ids(self, ids, n_words, name, start=0):
        return take_ids(ids, n_words, self.config.max_length, name, self.values, start=start)

    # Inference, one word after another. No caches for backward are kept.

    def encode(self, source):
        """Returns (what the decoder needs of the source, the mask of its padding (B, S))."""
        source = self._take_ids(source, self.config.source_vocab, "source")
        mask = source != self.config.pad_id
        x, _ = self.source.forward(source)
        memory, _ = self.encoder.forward(x, mask)
        return Remembered(memory, self.bridge.forward(memory)[0]), mask

    def step(self, ids, start, past, memory, memory_mask):
        """Logits of the word after `ids`, which stand at position `start`, given all before.

        Shapes: ids (B,); past what the step before handed on (None at first). Returns (logits (B, V), past).
        """
        ids = self._take_ids(ids[:, None], self.config.target_vocab, "target", start)
        carried = self.decoder.begin(memory.state) if past is None else past
        x, _ = self.target.forward(ids[:, 0])  # (B, D)
        y, carried, _ = self.decoder.step(x, carried, memory.memory, memory_mask, start)
        return self.output.forward(y)[0], carried
