"""BagOfWords: the reader that does not know the order of the words, to compare with."""

from typing import Any, NamedTuple

import numpy as np

from npformer.backend import array_module
from npformer.functional.embedding import EmbeddingCache
from npformer.functional.linear import LinearCache
from npformer.ifthen.descriptions import DescriptionModel, Program
from npformer.layers import Linear
from npformer.layers.init import default_rng


class BagCache(NamedTuple):
    """The cache of BagOfWords."""

    words: EmbeddingCache
    weights: Any  # (B, S) 1 / number of words at each word, 0 at the padding
    trigger: LinearCache
    action: LinearCache


class BagOfWords(DescriptionModel):
    """Which trigger and which action a description means, judged by the mean of its words' vectors.

    Descriptions of the same words in another order get the same answer. Shapes, errors: as in RecipeReader.
    """

    def __init__(
        self,
        n_words,
        n_triggers,
        n_actions,
        *,
        d_model=32,
        max_length=25,
        pad_id=0,
        rng=None,
        dtype=np.float32,
    ):
        drawn: dict[str, Any] = {"rng": default_rng(rng), "dtype": dtype}
        super().__init__(n_words, d_model, max_length, pad_id, **drawn)
        self.trigger = Linear(d_model, n_triggers, **drawn)
        self.action = Linear(d_model, n_actions, **drawn)
        self.flatten()

    def forward(self, ids):
        """Returns (program, cache)."""
        x, mask, words = self.look_up(ids)  # (B, S, D)
        count = array_module(x).maximum(mask.sum(-1, keepdims=True), 1)  # (B, 1)
        weights = (mask / count).astype(x.real.dtype)  # (B, S)
        mean = (weights[:, :, None] * x).sum(1)  # (B, D)
        trigger, trigger_cache = self.trigger.forward(mean)
        action, action_cache = self.action.forward(mean)
        return Program(trigger, action), BagCache(words, weights, trigger_cache, action_cache)

    def backward(self, dprogram, cache):
        """Adds every parameter's gradient to its .grad; returns nothing, since ids have no gradient."""
        # trigger and action were made of one mean
        dmean = self.trigger.backward(dprogram.trigger, cache.trigger)
        dmean = dmean + self.action.backward(dprogram.action, cache.action)  # (B, D)
        # mean = Σ_j weights_j x_j
        self.words.backward(cache.weights[:, :, None] * dmean[:, None], cache.words)
