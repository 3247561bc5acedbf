"""Transformer: embeddings, encoder, decoder and output projection, forward and backward."""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module
from npformer.functional.packing import find_words, pack, unpack
from npformer.ids import check_pairs, take_ids
from npformer.layers.init import default_rng
from npformer.layers.input import InputCache
from npformer.masks import causal_mask
from npformer.module import Module
from npformer.transformer.ends import make_embedding, make_masks, make_output
from npformer.transformer.stacks import Decoder, Encoder, StackCache


class TransformerCache(NamedTuple):
    """The cache of Transformer, a tree that mirrors the model's."""

    source: InputCache
    encoder: StackCache
    target: InputCache
    decoder: StackCache
    output: Any
    packings: tuple  # of source and target; None where the rows are (B, S) and (B, T)


class Transformer(Module):
    """logits = output(decoder(target(target_in), encoder(source(source)))).

    Shapes: source (B, S) and target_in (B, T) integers -> logits (B, T, V).
    target_in is the translation shifted right: the start symbol, then all words but the last.
    Errors: UserError for ids outside the vocabulary, or sentences that are empty or over max_length.
    Source: Vaswani et al. 2017, figure 1.
    """

    packs = True

    def __init__(self, config, *, rng=None, dtype=np.float32):
        rng = default_rng(rng)
        self.config = config
        self.source = make_embedding(config, config.source_vocab, rng, dtype)
        self.encoder = Encoder(config, rng=rng, dtype=dtype)
        self.target = make_embedding(config, config.target_vocab, rng, dtype)
        if config.tied == "all":
            self.target.words.weight = self.source.words.weight
        self.decoder = Decoder(config, rng=rng, dtype=dtype)
        self.output = make_output(config, self.target.words, rng, dtype)
        self.flatten()

    def forward(self, source, target_in, *, train=False, rng=None, packed=False):
        """Returns (logits, cache). With train=True dropout draws from rng.

        packed=True leaves out what is computed at padding: the logits are (N, V), those of the N words of
        target_in, sentence after sentence.
        """
        source = self._take_ids(source, self.config.source_vocab, "source")
        target_in = self._take_ids(target_in, self.config.target_vocab, "target_in")
        check_pairs(source, target_in)
        source_mask, source_queries = make_masks(self.config, source)
        target_mask, target_queries = make_masks(self.config, target_in)
        target_mask = target_mask & causal_mask(target_in.shape[1], target_in)  # (B, 1, T, T)
        pad_id = self.config.pad_id
        packings = [find_words(ids, pad_id) if packed else None for ids in (source, target_in)]
        source_packing, target_packing = packings

        x, source_cache = self.source.forward(source, train=train, rng=rng)  # (B, S, D)
        memory, encoder = self.encoder.forward(
            pack(x, source_packing),
            source_mask,
            query_mask=source_queries,
            train=train,
            rng=rng,
            packing=source_packing,
        )
        x, target_cache = self.target.forward(target_in, train=train, rng=rng)  # (B, T, D)
        x, decoder = self.decoder.forward(
            pack(x, target_packing),
            memory,
            target_mask,
            source_mask,
            query_mask=target_queries,
            train=train,
            rng=rng,
            packing=target_packing,
            memory_packing=source_packing,
        )
        logits, output = self.output.forward(x)  # (B, T, V)
        return logits, TransformerCache(source_cache, encoder, target_cache, decoder, output, tuple(packings))

    def backward(self, dlogits, cache):
        """Adds every parameter's gradient to its .grad; returns nothing, since ids have no gradient."""
        dx = self.output.backward(dlogits, cache.output)
        del dlogits  # as large as all the rest, and used
        dx, dmemory = self.decoder.backward(dx, cache.decoder)
        source_packing, target_packing = cache.packings
        self.target.backward(unpack(dx, target_packing), cache.target)
        dx = self.encoder.backward(dmemory, cache.encoder)
        self.source.backward(unpack(dx, source_packing), cache.source)

    def _take_ids(self, ids, n_words, name, start=0):
        return take_ids(ids, n_words, self.config.max_length, name, self.values, start=start)

    # Inference, one word after another. No caches for backward are kept.

    def encode(self, source):
        """Returns (what the decoder's layers remember of the source, the mask of its padding)."""
        source = self._take_ids(source, self.config.source_vocab, "source")
        mask, queries = make_masks(self.config, source)
        x, _ = self.source.forward(source)
        memory, _ = self.encoder.forward(x, mask, query_mask=queries)
        return self.decoder.remember(memory), mask

    def step(self, ids, start, past, memory, memory_mask):
        """Logits of the word after `ids`, which stand at position `start`, given all before.

        Shapes: ids (B,); past is what the step before returned, None at first. Returns (logits (B, V), past).
        """
        ids = self._take_ids(ids[:, None], self.config.target_vocab, "target", start)
        x, _ = self.target.forward(ids, start=start)  # (B, 1, D)
        x, past = self.decoder.step(x, past, memory, memory_mask)
        logits, _ = self.output.forward(x)  # (B, 1, V)
        return logits[:, 0], past


def shifted_right(target, start_id):
    """The decoder's input: the start symbol, then the target without its last word.

    Shapes: target (B, T) -> (B, T).
    """
    xp = array_module(target)
    start = xp.full((len(target), 1), start_id, target.dtype)
    return xp.concatenate([start, target[:, :-1]], 1)
