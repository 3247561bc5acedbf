"""The example of the first document's figures: one padded sentence through one small attention layer.

F10 to F17 and F19 tell one story with these tensors, so that a number can be followed from figure to figure.
"""

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from npformer.attention import MultiHeadAttention, MultiHeadCache
from npformer.data.batches import make_batch
from npformer.data.datasets import Dataset, builtin_dataset
from npformer.data.vocabulary import END, PAD, SPECIALS
from npformer.errors import UserError
from npformer.figures.s0_sheet import at_least
from npformer.functional import ACTIVATIONS
from npformer.layers import InputEmbedding
from npformer.layers.input import InputCache
from npformer.masks import causal_mask, padding_mask, query_mask
from npformer.positions import LAYOUTS

SENTENCE = "I am a student"
LENGTH = 7  # of the sentence with its end symbol and its padding
SEED = 3


class Example(NamedTuple):
    """A padded sentence, what its words became, and the attention layer that reads them."""

    words: list[str]  # T, the end symbol and padding included
    ids: np.ndarray  # (1, T)
    embedded: InputCache
    layer: MultiHeadAttention

    @property
    def x(self) -> np.ndarray:
        """The embedded sentence (1, T, D)."""
        return self.embedded.y

    @property
    def padded(self) -> np.ndarray:
        """Which positions are padding, bool (T,)."""
        return self.ids[0] == PAD

    @property
    def padding(self) -> str:
        """How many positions are padding, in words."""
        count = int(self.padded.sum())
        return {0: "no padding", 1: "one padding position"}.get(count, f"{count} padding positions")

    @property
    def query_mask(self) -> np.ndarray:
        """Which queries are words, bool (1, 1, T, 1)."""
        return query_mask(self.ids)

    def mask(self, *, causal: bool) -> np.ndarray:
        """Which keys are words, and for the decoder not after the query: broadcastable to (1, 1, T, T)."""
        mask = padding_mask(self.ids)
        return mask & causal_mask(self.ids.shape[1], self.ids) if causal else mask

    def look(self, *, keys=False, causal=False, queries=False) -> tuple[np.ndarray, MultiHeadCache]:
        """A forward pass (y, cache) with the key mask, the causal mask too, the query mask too, or none."""
        mask = self.mask(causal=causal) if keys or causal else None
        query = self.query_mask if queries else None
        return self.layer.forward(self.x, mask=mask, query_mask=query)


def example(
    sentence: str = SENTENCE,
    *,
    length: int = LENGTH,
    d_model: int = 6,
    n_heads: int = 1,
    positions: str = "none",
    activation: str = "none",
    bias: float = 0.0,
    output: bool = False,
    seed: int = SEED,
) -> Example:
    """The sentence through an untrained embedding whose padding is 0, and an untrained layer to read it.

    positions are those of InputEmbedding; once they are added, padding is no longer 0. activation "relu" on
    queries, keys and values is the first document's code. bias is what every bias is set to: 0 as at the
    start of training. output adds the matrix W^O.
    Errors: UserError for an empty sentence, no length, or sizes that do not fit together.
    """
    at_least(1, d_model=d_model, n_heads=n_heads)
    at_least(0, seed=seed)
    for name, given, choices in (
        ("positions", positions, (*LAYOUTS, "learned", "none")),
        ("activation", activation, tuple(ACTIVATIONS)),
    ):
        if given not in choices:
            raise UserError(f"{name} is {given!r}: choose one of {', '.join(choices)}")
    ids = padded_ids(sentence, length)
    rng = np.random.default_rng(seed)
    n_words = len(dataset().source.vocabulary)
    embedding = InputEmbedding(n_words, d_model, length, positions=positions, zero_id=PAD, rng=rng)
    _, embedded = embedding.forward(ids)
    layer = MultiHeadAttention(d_model, n_heads, activation=activation, output=output, rng=rng)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            parameter.value[...] = bias
    return Example(shown_words(sentence, length), ids, embedded, layer)


def padded_ids(sentence: str, length: int) -> np.ndarray:
    """The ids (1, length) of an English sentence, as they stand in a batch with a longer one.

    Errors: UserError for an empty sentence, or a length below 1.
    """
    at_least(1, length=length)
    batch = make_batch([(dataset().source.encode(sentence, strict=True), [])], max_length=length)
    return filled(batch.source, length)


def filled(ids: np.ndarray, length: int) -> np.ndarray:
    """The ids (B, T) padded at the right to (B, length)."""
    return np.pad(ids, ((0, 0), (0, length - ids.shape[1])), constant_values=PAD)


def shown_words(sentence: str, length: int) -> list[str]:
    """A word for each of these ids; one that the vocabulary lacks keeps its own letters."""
    given = dataset().source.words(sentence)
    ids = padded_ids(sentence, length)[0]
    return [SPECIALS[index] if index in (PAD, END) else given[t] for t, index in enumerate(ids)]


@lru_cache(maxsize=1)
def dataset() -> Dataset:
    """The built-in corpus with its vocabularies, made once."""
    return builtin_dataset()
