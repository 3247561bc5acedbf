"""RecipeReader: a description read from both sides, and two latent attentions that ask it."""

from typing import Any, NamedTuple

import numpy as np

from npformer.attention.latent import LatentAttention, LatentAttentionCache
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.linear import LinearCache
from npformer.ifthen.descriptions import DescriptionModel, Program
from npformer.layers import BothWays, Linear
from npformer.layers.init import default_rng
from npformer.layers.recurrent import BothWaysCache
from npformer.module import Module


class AnswerCache(NamedTuple):
    """The cache of Answer."""

    attention: LatentAttentionCache
    output: LinearCache


class Answer(Module):
    """logits = o weight + bias, with o the words' vectors, weighted by a latent attention to the states.

    Shapes: states (B, S, E), words (B, S, D), mask (B, S) bool -> logits (B, C). settings: LatentAttention's.
    Source: Liu et al. 2016, section 3.
    """

    def __init__(self, d_state, d_word, n_classes, max_length, *, rng=None, dtype=np.float32, **settings):
        rng = default_rng(rng)
        self.attention = LatentAttention(d_state, max_length, rng=rng, dtype=dtype, **settings)
        self.output = Linear(d_word, n_classes, rng=rng, dtype=dtype)

    def forward(self, states, words, mask):
        """Returns (logits, cache)."""
        o, attention = self.attention.forward(states, words, mask=mask)  # (B, D)
        logits, output = self.output.forward(o)  # (B, C)
        return logits, AnswerCache(attention, output)

    def backward(self, dlogits, cache):
        """Returns (dstates, dwords)."""
        do = self.output.backward(dlogits, cache.output)
        return self.attention.backward(do, cache.attention)


class ReaderCache(NamedTuple):
    """The cache of RecipeReader, a tree that mirrors the model's."""

    words: EmbeddingCache
    reading: BothWaysCache
    trigger: AnswerCache
    action: AnswerCache


class RecipeReader(DescriptionModel):
    """Which trigger and which action a description means, found by latent attention.

    The words are read from both sides, so that the states know their order. Trigger and action each weight
    the words by an attention of their own to the states. What is weighted are the words' vectors as they were
    before, which know no order: so the weights must find the right channel.
    d_hidden is the width of either side, cell "lstm" or "gru", orientation and measure as in LatentAttention.
    Shapes: ids (B, S) integers -> Program of logits (B, n_triggers) and (B, n_actions).
    Errors: UserError for ids outside the vocabulary, or descriptions that are empty or over max_length.
    Source: Liu et al. 2016, section 3.
    """

    def __init__(
        self,
        n_words,
        n_triggers,
        n_actions,
        *,
        d_model=32,
        d_hidden=32,
        max_length=25,
        cell="lstm",
        orientation="rows",
        measure="sum",
        pad_id=0,
        rng=None,
        dtype=np.float32,
    ):
        drawn: dict[str, Any] = {"rng": default_rng(rng), "dtype": dtype}
        super().__init__(n_words, d_model, max_length, pad_id, **drawn)
        self.reading = BothWays(d_model, d_hidden, kind=cell, **drawn)
        asked = {"orientation": orientation, "measure": measure, **drawn}
        self.trigger = Answer(2 * d_hidden, d_model, n_triggers, max_length, **asked)
        self.action = Answer(2 * d_hidden, d_model, n_actions, max_length, **asked)
        self.flatten()

    def forward(self, ids):
        """Returns (program, cache)."""
        x, mask, words = self.look_up(ids)  # (B, S, D)
        states, reading = self.reading.forward(x, mask=mask)  # (B, S, E)
        trigger, trigger_cache = self.trigger.forward(states, x, mask)
        action, action_cache = self.action.forward(states, x, mask)
        return Program(trigger, action), ReaderCache(words, reading, trigger_cache, action_cache)

    def backward(self, dprogram, cache):
        """Adds every parameter's gradient to its .grad; returns nothing, since ids have no gradient."""
        # trigger and action asked the same states and weighted the same words
        dstates, dx = self.trigger.backward(dprogram.trigger, cache.trigger)
        dmore_states, dmore_x = self.action.backward(dprogram.action, cache.action)
        # and the states were made of the words
        dread = self.reading.backward(dstates + dmore_states, cache.reading)
        self.words.backward(dx + dmore_x + dread, cache.words)
