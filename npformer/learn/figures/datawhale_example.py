"""The example of many Datawhale figures: a sentence through one small encoder layer with eight heads.

The figures of self-attention show parts of one cache of this layer, so numbers agree from figure to figure.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from npformer.errors import UserError
from npformer.functional.linear import LinearCache
from npformer.models.transformer import EncoderLayer, TransformerConfig
from npformer.models.transformer.layers import EncoderLayerCache
from npformer.nn import InputEmbedding
from npformer.nn.embedding import InputCache

MACHINES = "Thinking Machines"
STUDENT = "Je suis étudiant"
SEED = 2  # with this seed some attention weights differ clearly from one half


class WordVectors(NamedTuple):
    """The words of a sentence, and their vectors with the seed that made them."""

    words: list[str]
    x: Any  # (T, D)
    seed: int


class Embedded(NamedTuple):
    """A sentence after its embedding, with positions."""

    words: list[str]
    x: Any  # (T, D) embeddings
    t: Any  # (T, D) position vectors
    cache: InputCache  # cache.y is x + t


def embedded(sentence: str, *, d_model: int = 4, seed: int = SEED) -> WordVectors:
    """Return the words of a sentence as vectors. Equal words get equal vectors.

    Args:
        sentence: The sentence, whose words are separated by spaces.
        d_model, seed: The width of the vectors, and the seed of the random weights.

    Raises:
        UserError: If the sentence is empty or a size is impossible.
    """
    words, x, _, _ = _embed(words_of(sentence), small_config(d_model=d_model), generator(seed))
    return WordVectors(words, x, seed)


def embedded_with_positions(
    sentence: str, *, d_model: int = 4, positions: str = "interleaved", seed: int = SEED
) -> Embedded:
    """Return the words of a sentence as vectors, with the vectors of their positions.

    Args:
        sentence, d_model, seed: As for `embedded`.
        positions: The layout of the position vectors, or "none".

    Raises:
        UserError: If the sentence is empty or a size is impossible.
    """
    config = small_config(d_model=d_model, positions=positions)
    return _embed(words_of(sentence), config, generator(seed))


def _embed(words: list[str], config: TransformerConfig, rng: np.random.Generator) -> Embedded:
    ids = np.array([[list(dict.fromkeys(words)).index(word) for word in words]])  # (1, T)
    layer = InputEmbedding(
        len(words), config.d_model, len(words), positions=config.positions, rng=rng, dtype=np.float64
    )
    _, cache = layer.forward(ids)
    x, _ = layer.tokens.forward(ids)  # (1, T, D)
    t = np.zeros_like(x[0])
    if layer.positions is not None:
        t, _ = layer.positions.forward(len(words))
    return Embedded(words, x[0], t, cache)


class Example(NamedTuple):
    """A sentence after one encoder layer."""

    words: list[str]
    x: Any  # (T, D)
    z: Any  # (T, D) the output of self-attention
    r: Any  # (T, D) the layer's output
    cache: EncoderLayerCache

    @property
    def n_heads(self) -> int:
        """The number of heads H."""
        return int(self.cache.self_attention.attention.q.shape[1])

    @property
    def normalised(self) -> Any:
        """LayerNorm(x + z), (T, D), the input of the feed-forward network."""
        return self.cache.feed_forward.inner.x[0]

    @property
    def output(self) -> LinearCache:
        """The cache of the linear map W^O."""
        output = self.cache.self_attention.output
        assert output is not None  # the configuration has W^O
        return output

    @property
    def joined(self) -> Any:
        """The concatenated outputs of the heads, (T, H·K)."""
        return self.output.x[0]

    @property
    def output_weight(self) -> Any:
        """W^O, (H·K, D)."""
        return self.output.weight

    def head(self, number: int) -> "Head":
        """Return one head's part of the cache, or raise a UserError if the head does not exist."""
        if not 0 <= number < self.n_heads:
            raise UserError(f"head is {number}: there are heads 0 .. {self.n_heads - 1}")
        cache = self.cache.self_attention
        width = cache.attention.v.shape[-1]
        own = slice(number * width, (number + 1) * width)
        wq, wk, wv = (projection.weight[:, own] for projection in cache.projections)
        q, k, v = (array[0, number] for array in cache.attention[:3])
        return Head(wq, wk, wv, q, k, v, cache.attention.weights[0, number], self.joined[:, own])


class Head(NamedTuple):
    """The arrays of one head of self-attention."""

    wq: Any  # (D, K)
    wk: Any
    wv: Any
    q: Any  # (T, K)
    k: Any
    v: Any
    weights: Any  # (T, T)
    z: Any  # (T, K)


def make_example(
    sentence: str = MACHINES, *, d_model: int = 4, n_heads: int = 8, d_head: int = 3, seed: int = SEED
) -> Example:
    """Run a sentence through one encoder layer with random weights, no attention biases and no positions.

    Args:
        sentence, d_model, seed: As for `embedded`.
        n_heads, d_head: The number of heads, and the width of each.

    Raises:
        UserError: If the sentence is empty or a size is impossible.
    """
    config = small_config(d_model=d_model, n_heads=n_heads, d_head=d_head)
    rng = generator(seed)
    words, x, _, _ = _embed(words_of(sentence), config, rng)
    layer = EncoderLayer(config, rng=rng, dtype=np.float64)
    r, cache = layer.forward(x[None])
    z, _ = layer.self_attention.forward(x[None])
    return Example(words, x, z[0], r[0], cache)


def small_config(**sizes: Any) -> TransformerConfig:
    """Return a small configuration with these settings."""
    settings: dict[str, Any] = {"d_model": 4, "n_heads": 8, "d_head": 3, "d_ff": 8, "positions": "none"}
    return TransformerConfig(**(settings | sizes), attention_bias=False, dropout=0.0)


def words_of(sentence: str) -> list[str]:
    """Return the words of a sentence, separated by spaces, or raise a UserError if there is none."""
    words = sentence.split() if isinstance(sentence, str) else []
    if not words:
        raise UserError(f"sentence is {sentence!r}: give a text with at least one word")
    return words


def generator(seed: int) -> np.random.Generator:
    """Return a random generator with this seed, which must be a whole number of 0 or more."""
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"seed is {seed!r}: give a whole number, 0 or more")
    return np.random.default_rng(seed)


def listed(texts: Iterable[str]) -> str:
    """Return texts as a list in prose: "a, b and c"."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last
