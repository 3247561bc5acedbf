"""What every model of descriptions has: a vector for each word at its beginning, a program at its end."""

from typing import Any, NamedTuple

import numpy as np

from npformer.ids import take_ids
from npformer.layers import Embedding
from npformer.module import Module


class Program(NamedTuple):
    """A number for each trigger and for each action; the largest are the answer."""

    trigger: Any  # (B, n_triggers) logits
    action: Any  # (B, n_actions) logits


class DescriptionModel(Module):
    """A model that looks up the words of descriptions; what it does with them is its subclasses' affair."""

    def __init__(self, n_words, d_model, max_length, pad_id, *, rng=None, dtype=np.float32):
        self.n_words, self.max_length, self.pad_id = n_words, max_length, pad_id
        self.words = Embedding(n_words, d_model, rng=rng, dtype=dtype)

    def look_up(self, ids):
        """Vectors of the words, and where there are words. Shapes: ids (B, S) -> (B, S, D), (B, S) bool.

        Returns (x, mask, cache). Errors: UserError for ids outside the vocabulary, or descriptions that are
        empty or over max_length.
        """
        ids = take_ids(ids, self.n_words, self.max_length, "ids", self.words.weight.value)
        x, cache = self.words.forward(ids)
        return x, ids != self.pad_id, cache
