"""What the figures of Luong's attention show: a sentence, half of its translation, small random networks."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from npformer.attention import AttentionalState, Similarity
from npformer.data.vocabulary import END, SPECIALS, START
from npformer.figures.s0_example import dataset
from npformer.figures.s0_sheet import at_least
from npformer.functional import softmax
from npformer.layers import Embedding, Linear, Recurrent

SOURCE = "the dog didn't cross the road"
TARGET = "le chien"
SEED = 4
D_HIDDEN = 4
LARGER = 2.0  # than at the start of training, where attention would look at all words alike


class Translation(NamedTuple):
    """The last step of a decoder that has read some words of a translation, for one sentence."""

    source: list[str]  # S words, the end symbol included
    target: list[str]  # T words that the decoder has read, the start symbol first
    memory: Any  # (S, N) the encoder's states
    states: Any  # (T, N) the decoder's
    attention: Any  # the layer
    cache: Any  # of attention, for all T states
    context: Any  # (N,) of the last state
    attentional: Any  # (N,)
    probabilities: Any  # (V,) of the next word
    vocabulary: list[str]  # V words: those of the translation

    @property
    def weights(self):
        """How much the last state looks at each word, (S,)."""
        return self.cache.weights[0, -1]

    @property
    def position(self) -> float:
        """Where the window of the last state stands."""
        return float(self.cache.positions[0, -1])


def translation(
    make: Callable[[Similarity, np.random.Generator], Any],
    source: str,
    target: str,
    *,
    similarity: str = "general",
    seed: int = 0,
) -> Translation:
    """Encoder, decoder, attention and output, their weights random; make(similarity, rng) is the attention.

    Errors: UserError for an empty sentence, or a similarity that is none.
    """
    at_least(0, seed=seed)
    rng = np.random.default_rng(seed)
    read = [*dataset().source.words(source), SPECIALS[END]]
    written = [SPECIALS[START], *dataset().target.words(target)]
    memory, last = _read(rng, [*dataset().source.encode(source, strict=True), END], dataset().source, None)
    states, _ = _read(rng, [START, *dataset().target.encode(target, strict=True)], dataset().target, last)
    attention = make(Similarity(similarity, D_HIDDEN, D_HIDDEN, rng=rng), rng)
    joined = AttentionalState(D_HIDDEN, D_HIDDEN, rng=rng)
    vocabulary = [*dict.fromkeys(written[1:]), SPECIALS[END]]
    output = Linear(D_HIDDEN, len(vocabulary), rng=rng)
    for parameter in (*attention.parameters(), *joined.parameters(), *output.parameters()):
        parameter.value *= LARGER
    context, cache = attention.forward(states, memory)
    attentional, _ = joined.forward(context, states)
    probabilities, _ = softmax(output.forward(attentional)[0])
    ends = (context[0, -1], attentional[0, -1], probabilities[0, -1])
    return Translation(read, written, memory[0], states[0], attention, cache, *ends, vocabulary)


def _read(rng, ids, codec, state):
    """A GRU over a sentence. Shapes: ids (S,), state (1, N) or None -> states (1, S, N), the last (1, N)."""
    embedding = Embedding(len(codec.vocabulary), D_HIDDEN, rng=rng)
    reader = Recurrent(D_HIDDEN, D_HIDDEN, kind="gru", rng=rng)
    for parameter in (*embedding.parameters(), *reader.parameters()):
        parameter.value *= LARGER
    states, _ = reader.forward(embedding.forward(np.array([ids]))[0], state)
    return states, states[:, -1]
