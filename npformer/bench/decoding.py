"""How fast sentences are translated: with kept keys and values, and a thousand of them at once.

The models are untrained, and hardly ever end a sentence: each translation is as long as it may be.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.bench.setups import SEED, SETUPS, Setup
from npformer.data.vocabulary import END
from npformer.decoding import translate_ids
from npformer.transformer import Transformer

WORDS = 48  # of the one sentence, on which keys and values are kept or computed anew
SENTENCES, LENGTHS = 1000, (8, 18)  # as long as most captions of Multi30k, translated into as many words
BEAM = 5


Row = dict[str, Any]


def with_and_without_cache(workers: int, *, setup: Setup = SETUPS["base8k"], words: int = WORDS) -> Row:
    """A greedy translation; its ratio is how many times as long it takes to read all words anew for each."""
    model = Transformer(setup.config().replace(max_length=words + 1), rng=np.random.default_rng(SEED))
    sources = sentences(setup, 1, (words, words))

    def translate(cached: bool) -> list[list[int]]:
        return translate_ids(model, sources, max_length=words, cached=cached, threads=workers)

    translate_ids(model, sources, max_length=2)  # warms up
    kept, found = timed(lambda: translate(True))
    anew, _ = timed(lambda: translate(False))
    return {"ratio": anew / kept, "seconds": kept, "sentences": 1, "words": count(found)}


def many(workers: int, beam: int, *, setup: Setup = SETUPS["tiny"], number: int = SENTENCES) -> Row:
    """Many translations, each at most as long as its sentence and its end."""
    model = Transformer(setup.config().replace(max_length=LENGTHS[1] + 2), rng=np.random.default_rng(SEED))
    sources = sentences(setup, number, LENGTHS)
    lengths = [len(source) for source in sources]
    translate_ids(model, sources[:20], beam=beam, max_length=2)
    seconds, found = timed(
        lambda: translate_ids(model, sources, beam=beam, max_length=lengths, threads=workers)
    )
    return {"ratio": None, "seconds": seconds, "sentences": number, "words": count(found)}


def sentences(setup: Setup, number: int, lengths: tuple[int, int]) -> list[list[int]]:
    """Invented sentences with from .. to words, and their end."""
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(lengths[0], lengths[1] + 1, number)
    return [[*rng.integers(END + 1, setup.words, length).tolist(), END] for length in drawn]


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what came back."""
    began = time.perf_counter()
    made = function()
    return time.perf_counter() - began, made


def count(found: list[list[int]]) -> int:
    """All words of some translations."""
    return sum(map(len, found))


MEASUREMENTS: dict[str, Callable[[int], Row]] = {
    f"base8k, greedy, 1 sentence of {WORDS} words": with_and_without_cache,
    f"tiny, greedy, {SENTENCES:,} sentences": lambda workers: many(workers, 1),
    f"tiny, beam {BEAM}, {SENTENCES:,} sentences": lambda workers: many(workers, BEAM),
}
