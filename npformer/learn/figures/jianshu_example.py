"""The example of the Jianshu figures: one padded sentence through one small attention layer.

F10 to F17 and F19 use these tensors, so that a number can be followed from figure to figure.
"""

from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from npformer.backend import Array
from npformer.data.dataset import PairDataset, builtin_dataset
from npformer.data.loader import make_batch
from npformer.data.vocabulary import END, PAD, SPECIALS
from npformer.errors import UserError
from npformer.functional import ACTIVATIONS
from npformer.functional.masks import causal_mask, padding_mask, query_mask
from npformer.functional.positions import LAYOUTS
from npformer.nn import InputEmbedding
from npformer.nn.attention import MultiHeadAttention, MultiHeadCache
from npformer.nn.embedding import InputCache


def at_least(least: int, **numbers: Any) -> None:
    """Check that the named numbers are whole and not below `least`.

    Raises:
        UserError: If one is not. The message names it.
    """
    for name, value in numbers.items():
        if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
            raise UserError(f"{name} is {value!r}: it must be a whole number, {least} or more")


def shape_of(matrix: Array) -> str:
    """Return a matrix's shape as text: 7 × 6."""
    return " × ".join(map(str, np.shape(matrix)))


def listed(values: ArrayLike, decimals: int = 2) -> str:
    """Return a few numbers as text for a caption."""
    rounded = np.round(np.ravel(np.asarray(values, np.float64)), decimals) + 0.0  # −0 becomes 0
    return ", ".join(f"{value:.{decimals}f}".replace("-", "−") for value in rounded)


# The example.

SENTENCE = "I am a student"
LENGTH = 7  # of the sentence with its end symbol and its padding
SEED = 3


class Example(NamedTuple):
    """A padded sentence, its vectors, and the attention layer that reads them."""

    words: list[str]  # T labels, the end symbol and padding included
    ids: np.ndarray  # (1, T)
    embedded: InputCache
    layer: MultiHeadAttention

    @property
    def x(self) -> np.ndarray:
        """The embedded sentence (1, T, D)."""
        y: np.ndarray = self.embedded.y
        return y

    @property
    def padded(self) -> np.ndarray:
        """Bool (T,), True at padding positions."""
        return np.asarray(self.ids[0] == PAD)

    @property
    def padding(self) -> str:
        """The number of padding positions, in words."""
        count = int(self.padded.sum())
        return {0: "no padding", 1: "one padding position"}.get(count, f"{count} padding positions")

    @property
    def query_mask(self) -> np.ndarray:
        """Bool (1, 1, T, 1), True at queries that are not padding."""
        return query_mask(self.ids)

    def mask(self, *, causal: bool) -> np.ndarray:
        """Return the mask that allows keys that are not padding and, if causal, not after the query.

        Shapes: -> broadcastable to (1, 1, T, T).
        """
        mask = padding_mask(self.ids)
        return mask & causal_mask(self.ids.shape[1], self.ids) if causal else mask

    def attend(
        self, *, keys: bool = False, causal: bool = False, queries: bool = False
    ) -> tuple[np.ndarray, MultiHeadCache]:
        """Run a forward pass with the chosen masks and return (y, cache).

        Args:
            keys, causal: True to mask the keys of padding; True to mask keys after the query too.
            queries: True to set the weights of padding queries to 0.
        """
        mask = self.mask(causal=causal) if keys or causal else None
        query = self.query_mask if queries else None
        return self.layer.forward(self.x, mask=mask, query_mask=query)


@dataclass(frozen=True)
class PaddedSentence:
    """The settings of the example, which many figures share.

    Attributes:
        sentence, length: An English sentence, and its number of tokens with the end symbol and the padding.
        d_model, seed: The width of the vectors, and the seed of the random weights.
    """

    sentence: str = SENTENCE
    length: int = LENGTH
    d_model: int = 6
    seed: int = SEED

    def example(
        self,
        *,
        n_heads: int = 1,
        positions: str = "none",
        activation: str = "none",
        bias: float = 0.0,
        output: bool = False,
    ) -> Example:
        """Embed the sentence, untrained and with padding of 0, and make an untrained attention layer.

        Args:
            n_heads, output: The number of heads, and whether the layer has the matrix W^O.
            positions: As for InputEmbedding. Once positions are added, padding is no longer 0.
            activation: The activation of queries, keys and values; "relu" is the document's code.
            bias: The value of every bias: 0, as at the start of training.

        Raises:
            UserError: If the sentence is empty, the length is below 1, or sizes do not fit together.
        """
        at_least(1, d_model=self.d_model, n_heads=n_heads)
        at_least(0, seed=self.seed)
        for name, value, choices in (
            ("positions", positions, (*LAYOUTS, "learned", "none")),
            ("activation", activation, tuple(ACTIVATIONS)),
        ):
            if value not in choices:
                raise UserError(f"{name} is {value!r}: choose one of {', '.join(choices)}")
        ids = _padded_ids(self.sentence, self.length)
        rng = np.random.default_rng(self.seed)
        vocab_size = len(dataset().source.vocabulary)
        embedding = InputEmbedding(
            vocab_size, self.d_model, self.length, positions=positions, zero_id=PAD, rng=rng
        )
        _, embedded = embedding.forward(ids)
        layer = MultiHeadAttention(self.d_model, n_heads, activation=activation, output=output, rng=rng)
        for name, parameter in layer.named_parameters():
            if name.endswith("bias"):
                parameter.value[...] = bias
        return Example(shown_words(self.sentence, ids), ids, embedded, layer)


def _padded_ids(sentence: str, length: int) -> np.ndarray:
    """Return the ids (1, length) of an English sentence as in a batch with a longer one."""
    at_least(1, length=length)
    batch = make_batch([(dataset().source.encode(sentence, strict=True), [])], max_length=length)
    return filled(batch.source, length)


def filled(ids: np.ndarray, length: int) -> np.ndarray:
    """Return the ids (B, T) padded at the right to (B, length)."""
    return np.pad(ids, ((0, 0), (0, length - ids.shape[1])), constant_values=PAD)


def shown_words(sentence: str, ids: np.ndarray) -> list[str]:
    """Return a label for each token of a padded sentence. Words outside the vocabulary keep their letters."""
    words = dataset().source.words(sentence)
    return [SPECIALS[index] if index in (PAD, END) else words[t] for t, index in enumerate(ids[0])]


@lru_cache(maxsize=1)
def dataset() -> PairDataset:
    """Return the built-in corpus with its vocabularies. They are built at the first call only."""
    return builtin_dataset()
