"""Half a Transformer each: models of one language, that read with its encoder or write like its decoder.

MaskedWordModel is the encoder alone: it fills gaps, and every word sees both sides. NextWordModel is the
decoder alone: it goes on, and every word sees what stands before it.
"""

from typing import Any, NamedTuple

import numpy as np

from npformer.errors import UserError
from npformer.ids import take_ids
from npformer.layers.init import default_rng
from npformer.layers.input import InputCache
from npformer.masks import causal_mask
from npformer.module import Module
from npformer.transformer.ends import make_embedding, make_masks, make_output
from npformer.transformer.stacks import Encoder, StackCache


class LanguageModelCache(NamedTuple):
    """The cache of MaskedWordModel and NextWordModel, a tree that mirrors the model's."""

    words: InputCache
    encoder: StackCache
    output: Any


class LanguageModel(Module):
    """logits = output(encoder(words(ids))): one stack reads words and, at each, names a word.

    The configuration is a Transformer's, its two vocabularies one; tied="all" means the same as "output".
    Shapes: ids (B, T) integers -> logits (B, T, V).
    Errors: UserError for two vocabularies of different sizes; for ids outside the vocabulary, or sentences
    that are empty or over max_length.
    """

    def __init__(self, config, *, rng=None, dtype=np.float32):
        if config.source_vocab != config.target_vocab:
            raise UserError(
                f"source_vocab is {config.source_vocab} and target_vocab {config.target_vocab}, and a model "
                "of one language has one vocabulary: make them equal"
            )
        rng = default_rng(rng)
        self.config = config
        self.words = make_embedding(config, config.target_vocab, rng, dtype)
        self.encoder = Encoder(config, rng=rng, dtype=dtype)
        self.output = make_output(config, self.words.words, rng, dtype)
        self.flatten()

    def forward(self, ids, *, train=False, rng=None):
        """Returns (logits, cache). With train=True dropout draws from rng."""
        ids = self._take_ids(ids)
        mask, queries = self.masks(ids)
        x, words = self.words.forward(ids, train=train, rng=rng)  # (B, T, D)
        x, encoder = self.encoder.forward(x, mask, query_mask=queries, train=train, rng=rng)
        logits, output = self.output.forward(x)  # (B, T, V)
        return logits, LanguageModelCache(words, encoder, output)

    def backward(self, dlogits, cache):
        """Adds every parameter's gradient to its .grad; returns nothing, since ids have no gradient."""
        dx = self.output.backward(dlogits, cache.output)
        dx = self.encoder.backward(dx, cache.encoder)
        self.words.backward(dx, cache.words)

    def masks(self, ids):
        """Who may look at whom: every word at every word. Returns (mask, the mask of queries or None)."""
        return make_masks(self.config, ids)

    def _take_ids(self, ids, start=0):
        c = self.config
        return take_ids(ids, c.target_vocab, c.max_length, "ids", self.values, start=start)


class MaskedWordModel(LanguageModel):
    """The encoder alone, which names the words that were hidden from it, from what stands on both sides.

    A hidden word is an id like any other to it, and what it names at words that nobody hid does not count:
    see npformer.data.sentences.hide_words. Of BERT this is the masked language model, without the second
    task, whether two sentences belong together; its settings are activation="gelu", positions="learned".
    Shapes and errors: as in LanguageModel. Source: Devlin et al. 2019, section 3.1.
    """


class NextWordModel(LanguageModel):
    """The decoder alone, which names the word that comes next, from what stands before.

    There is no encoder to look at, so a decoder layer is self-attention under a causal mask and a
    feed-forward network: an encoder layer under a causal mask.
    Shapes and errors: as in LanguageModel. Source: Radford et al. 2018, section 3.1; Liu et al. 2018.
    """

    def masks(self, ids):
        """Who may look at whom: a word at itself and at those before it."""
        mask, queries = super().masks(ids)
        return mask & causal_mask(ids.shape[1], ids), queries  # (B, 1, T, T)

    def step(self, ids, start, past):
        """Logits of the word after `ids`, which stand at position `start`, given all before.

        Shapes: ids (B,); past is what the step before returned, None at first. Returns (logits (B, V), past).
        """
        x, _ = self.words.forward(self._take_ids(ids[:, None], start), start=start)  # (B, 1, D)
        x, past = self.encoder.step(x, past)
        logits, _ = self.output.forward(x)  # (B, 1, V)
        return logits[:, 0], past
