"""The state of decoding between two steps. Each of its R rows is one hypothesis.

There are three classes with the same methods and the same results. CachedState keeps a KV cache, so that each
step computes one position. PrefixState keeps the tokens and computes all positions again at each step. It is
the reference implementation, with which the tests compare the others. FastState of fast_state.py does what
CachedState does for the usual Transformers on the host, in less time. Inside `with plain_pairs():` of
npformer.kernels, CachedState takes its place.
"""

from typing import Any

import numpy as np

from npformer.backend import Array, is_array, like
from npformer.generation.fast_layers import suits
from npformer.generation.fast_state import FastState
from npformer.kernels.choice import is_plain_only
from npformer.nn.attention import PreallocatedKVCache


class CachedState:
    """The model's cache of the tokens so far: keys and values, or the hidden state of a recurrent model.

    Args:
        model: An encoder-decoder model.
        source: Token ids (B, S), padded. They are encoded once, and the state begins with one row for each
            sentence.

    Attributes:
        sentence: (R,) for each row, the index of the source sentence that it translates.
    """

    def __init__(self, model: Any, source: Array) -> None:
        self.model = model
        self.sentence = np.arange(len(source))  # (R,)
        # (encoded source, mask of the source), trees of arrays whose first axis is R. The encoded source of a
        # Transformer is the keys and values of the memory, a pair for each layer.
        self.encoded: tuple[Any, ...] = model.encode(source)
        self.kv_cache: Any = None
        self.length = 0  # T

    def decode_step(self, tokens: Array) -> Array:
        """Append one token to each hypothesis and score the next. Shapes: tokens (R,) -> logits (R, V)."""
        logits: Array
        logits, self.kv_cache = self.model.decode_step(tokens, self.length, self.kv_cache, *self.encoded)
        self.length += 1
        return logits

    def select(self, rows: Array) -> None:
        """Replace row i by the old row rows[i]. Rows may be dropped, reordered or repeated."""
        if np.array_equal(rows, np.arange(len(self.sentence))):
            return
        sentence = self.sentence[rows]
        index = like(rows, self.model.reference)
        self.kv_cache = take_rows(self.kv_cache, index)
        # All hypotheses of a sentence share its encoded source. As long as beams are reordered only within
        # their sentences, as at most steps, the encoded source, which is the larger part of the state, is not
        # copied.
        if not np.array_equal(sentence, self.sentence):
            self.encoded = tuple(take_rows(part, index) for part in self.encoded)
        self.sentence = sentence


class PrefixState:
    """The tokens so far, on which each step runs the whole model.

    The arguments and attributes are those of CachedState.
    """

    def __init__(self, model: Any, source: Array) -> None:
        self.model = model
        self.source = source  # (B, S)
        self.sentence = np.arange(len(source))  # (R,)
        self.prefix = np.empty((len(self.sentence), 0), np.int64)  # (R, T)

    def decode_step(self, tokens: Array) -> Array:
        """Append one token to each hypothesis and score the next. Shapes: tokens (R,) -> logits (R, V)."""
        self.prefix = np.concatenate([self.prefix, tokens[:, None]], 1)
        logits: Array
        logits, _ = self.model.forward(self.source[self.sentence], self.prefix)  # (R, T, V)
        return logits[:, -1]

    def select(self, rows: Array) -> None:
        """Replace row i by the old row rows[i]."""
        self.sentence, self.prefix = self.sentence[rows], self.prefix[rows]


DecodingState = CachedState | PrefixState | FastState


def start(model: Any, source: Array, *, cached: bool = True) -> DecodingState:
    """Return the state before the first token: a FastState if the model suits it, or a CachedState.

    It is a PrefixState if cached is False, and never a FastState inside `with plain_pairs():`.

    Args:
        model: An encoder-decoder model.
        source: Token ids (B, S), padded.
        cached: False computes all positions again at each step.
    """
    if not cached:
        return PrefixState(model, source)
    if not is_plain_only() and suits(model):
        return FastState(model, source)
    return CachedState(model, source)


def take_rows(tree: Any, index: Array) -> Any:
    """Return the chosen rows of every array and cache in a tree of lists and NamedTuples. None stays None."""
    if tree is None or is_array(tree):
        return None if tree is None else tree[index]
    if isinstance(tree, PreallocatedKVCache):
        return tree.take_rows(index)
    taken = [take_rows(branch, index) for branch in tree]
    return type(tree)(*taken) if hasattr(tree, "_fields") else taken
