"""The speed of translation: with and without a KV cache, and of a thousand sentences in batches.

The models are untrained and hardly ever predict the end symbol, so each translation is as long as allowed.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from npformer.bench.setups import SEED, SETUPS, Setup
from npformer.data.vocabulary import END
from npformer.generation import translate_ids
from npformer.models.transformer import Transformer

LENGTH = 48  # tokens of the one sentence that is translated with and without a KV cache
SENTENCES, LENGTHS = 1000, (8, 18)  # most captions of Multi30k and their translations have these lengths
BEAM = 5
TINY, BASE8K = SETUPS.find("tiny"), SETUPS.find("base8k")

Measurement = dict[str, Any]


def with_and_without_cache(workers: int, *, setup: Setup = BASE8K, length: int = LENGTH) -> Measurement:
    """Measure one greedy translation. The ratio is the time without a KV cache divided by the time with one.

    Args:
        workers: The number of threads.
        setup: The setup of the model.
        length: The number of tokens of the source and of the translation.
    """
    model = Transformer(setup.config().replace(max_length=length + 1), rng=np.random.default_rng(SEED))
    sources = sentences(setup, 1, (length, length))

    def translate(cached: bool) -> list[list[int]]:
        return translate_ids(model, sources, max_length=length, cached=cached, threads=workers)

    translate_ids(model, sources, max_length=2)  # warms up
    with_cache, translations = timed(lambda: translate(True))
    without_cache, _ = timed(lambda: translate(False))
    ratio = without_cache / with_cache
    return {"ratio": ratio, "seconds": with_cache, "sentences": 1, "tokens": count(translations)}


def batched_decoding(workers: int, beam: int, *, setup: Setup = TINY, number: int = SENTENCES) -> Measurement:
    """Measure many translations, each at most as long as its source with the end symbol.

    Args:
        workers: The number of threads.
        beam: The beam of beam search; 1 is greedy search.
        setup: The setup of the model.
        number: The number of sentences.
    """
    model = Transformer(setup.config().replace(max_length=LENGTHS[1] + 2), rng=np.random.default_rng(SEED))
    sources = sentences(setup, number, LENGTHS)
    lengths = [len(source) for source in sources]
    translate_ids(model, sources[:20], beam=beam, max_length=2)
    seconds, translations = timed(
        lambda: translate_ids(model, sources, beam=beam, max_length=lengths, threads=workers)
    )
    return {"ratio": None, "seconds": seconds, "sentences": number, "tokens": count(translations)}


def sentences(setup: Setup, number: int, lengths: tuple[int, int]) -> list[list[int]]:
    """Return random sentences of lengths[0] to lengths[1] tokens and an end symbol.

    Args:
        setup: The setup, for the size of the vocabulary.
        number: The number of sentences.
        lengths: The smallest and the largest number of tokens.
    """
    rng = np.random.default_rng(SEED)
    drawn = rng.integers(lengths[0], lengths[1] + 1, number)
    return [[*rng.integers(END + 1, setup.vocab_size, length).tolist(), END] for length in drawn]


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that a call takes, and its result."""
    began = time.perf_counter()
    result = function()
    return time.perf_counter() - began, result


def count(translations: list[list[int]]) -> int:
    """Return the total number of tokens."""
    return sum(map(len, translations))


MEASUREMENTS: dict[str, Callable[[int], Measurement]] = {
    f"base8k, greedy, 1 sentence of {LENGTH} tokens": with_and_without_cache,
    f"tiny, greedy, {SENTENCES:,} sentences": lambda workers: batched_decoding(workers, 1),
    f"tiny, beam {BEAM}, {SENTENCES:,} sentences": lambda workers: batched_decoding(workers, BEAM),
}
