"""One example for many figures: a sentence through one small encoder layer, with eight heads.

The figures of self-attention show slices of one cache of it, so numbers agree from picture to picture.
"""

from typing import Any, NamedTuple

import numpy as np

from npformer.errors import UserError
from npformer.functional.linear import LinearCache
from npformer.layers import InputEmbedding
from npformer.layers.input import InputCache
from npformer.transformer import EncoderLayer, TransformerConfig
from npformer.transformer.layers import EncoderLayerCache

MACHINES = "Thinking Machines"
STUDENT = "Je suis étudiant"
SEED = 2  # any will do; with this one the weights of attention are not all near one half


class Embedded(NamedTuple):
    """A sentence after its embedding."""

    words: list[str]
    x: Any  # (T, D) embeddings
    t: Any  # (T, D) position vectors
    cache: InputCache  # cache.y is x + t


def embedded(
    sentence: str, *, d_model: int = 4, positions: str = "interleaved", seed: int = SEED
) -> Embedded:
    """The words of a sentence as vectors; equal words get equal vectors.

    Errors: UserError for an empty sentence, or sizes that cannot be.
    """
    config = small_config(d_model=d_model, positions=positions)
    return _embed(words_of(sentence), config, generator(seed))


def _embed(words, config, rng):
    ids = np.array([[list(dict.fromkeys(words)).index(word) for word in words]])  # (1, T)
    layer = InputEmbedding(
        len(words), config.d_model, len(words), positions=config.positions, rng=rng, dtype=np.float64
    )
    _, cache = layer.forward(ids)
    x, _ = layer.words.forward(ids)  # (1, T, D)
    t = np.zeros_like(x[0])
    if layer.positions is not None:
        t, _ = layer.positions.forward(len(words))
    return Embedded(words, x[0], t, cache)


class Example(NamedTuple):
    """A sentence after one encoder layer."""

    words: list[str]
    x: Any  # (T, D)
    z: Any  # (T, D) what self-attention makes of x
    r: Any  # (T, D) the layer's output
    cache: EncoderLayerCache

    @property
    def n_heads(self) -> int:
        """H."""
        return self.cache.self_attention.attention.q.shape[1]

    @property
    def normalised(self) -> Any:
        """LayerNorm(x + z), (T, D): what enters the feed-forward network."""
        return self.cache.feed_forward.inner.x[0]

    @property
    def output(self) -> LinearCache:
        """The cache of the linear map W^O."""
        output = self.cache.self_attention.output
        assert output is not None  # the configuration has W^O
        return output

    @property
    def joined(self) -> Any:
        """The heads' outputs side by side, (T, H·K)."""
        return self.output.x[0]

    @property
    def output_weight(self) -> Any:
        """W^O, (H·K, D)."""
        return self.output.weight

    def head(self, number: int) -> "Head":
        """One head's part of the cache. Errors: UserError for a head that is not there."""
        if not 0 <= number < self.n_heads:
            raise UserError(f"head is {number}: there are heads 0 .. {self.n_heads - 1}")
        cache = self.cache.self_attention
        width = cache.attention.v.shape[-1]
        own = slice(number * width, (number + 1) * width)
        wq, wk, wv = (projection.weight[:, own] for projection in cache.projections)
        q, k, v = (array[0, number] for array in cache.attention[:3])
        return Head(wq, wk, wv, q, k, v, cache.attention.weights[0, number], self.joined[:, own])


class Head(NamedTuple):
    """What one head of self-attention holds."""

    wq: Any  # (D, K)
    wk: Any
    wv: Any
    q: Any  # (T, K)
    k: Any
    v: Any
    weights: Any  # (T, T)
    z: Any  # (T, K)


def example(
    sentence: str = MACHINES, *, d_model: int = 4, n_heads: int = 8, d_head: int = 3, seed: int = SEED
) -> Example:
    """A sentence through one encoder layer: random weights, no attention biases, no positions.

    Errors: UserError for an empty sentence, or sizes that cannot be.
    """
    config = small_config(d_model=d_model, n_heads=n_heads, d_head=d_head)
    rng = generator(seed)
    words, x, _, _ = _embed(words_of(sentence), config, rng)
    layer = EncoderLayer(config, rng=rng, dtype=np.float64)
    r, cache = layer.forward(x[None])
    z, _ = layer.self_attention.forward(x[None])
    return Example(words, x, z[0], r[0], cache)


def small_config(**sizes) -> TransformerConfig:
    """A configuration of that size; it refuses what cannot be."""
    settings: dict[str, Any] = {"d_model": 4, "n_heads": 8, "d_head": 3, "d_ff": 8, "positions": "none"}
    return TransformerConfig(**(settings | sizes), attention_bias=False, dropout=0.0)


def words_of(sentence: str) -> list[str]:
    """The words between spaces. Errors: UserError where there are none."""
    words = sentence.split() if isinstance(sentence, str) else []
    if not words:
        raise UserError(f"sentence is {sentence!r}: give a text with at least one word")
    return words


def generator(seed: int) -> np.random.Generator:
    """Random numbers from a seed. Errors: UserError for what is no whole number, 0 or more."""
    if not isinstance(seed, int) or seed < 0:
        raise UserError(f"seed is {seed!r}: give a whole number, 0 or more")
    return np.random.default_rng(seed)


def listed(texts) -> str:
    """a, b and c."""
    *first, last = texts
    return f"{', '.join(first)} and {last}" if first else last
