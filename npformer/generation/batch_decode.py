"""Batch decoding: translate many sentences, sorted by length into batches that run on several threads.

Each row of a batch is computed as if its sentence were alone, so the batches change the results by rounding
only. The batches do not depend on the number of threads, so the results are bitwise the same for any number.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, takewhile
from typing import Any

from threadpoolctl import threadpool_limits

from npformer.backend import is_cupy
from npformer.data import END, pad
from npformer.errors import UserError
from npformer.generation.beam import beam_search
from npformer.generation.greedy import greedy
from npformer.generation.search import LENGTH_PENALTY, Limits, one_for_each, usual_limits

BATCH_TOKENS = 2048  # source tokens of a batch times the beam: about 150 rows for sentences of 14 tokens


def translate_ids(model: Any, sources: Sequence[Sequence[int]], **settings: Any) -> list[list[int]]:
    """Translate many sentences and return the translations in the same order.

    Args:
        model: An encoder-decoder model.
        sources: A list of ids for each sentence, its end symbol included.
        settings: The settings of `translate_in_parts`.

    Returns:
        A list of ids for each sentence, without start and end symbols.

    Raises:
        UserError: If the model cannot read a source, or a setting is out of range.
    """
    return list(chain.from_iterable(translate_in_parts(model, sources, **settings)))


def translate_in_parts(
    model: Any,
    sources: Sequence[Sequence[int]],
    *,
    beam: int = 1,
    length_penalty: float = LENGTH_PENALTY,
    max_length: Limits = None,
    cached: bool = True,
    threads: int = 2,
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int], None] | None = None,
) -> Iterator[list[list[int]]]:
    """Translate many sentences and yield the translations in the same order, each as soon as it can be.

    Sentences of similar length go through the model together. A translation has at least one token, so that
    it is not empty. Only a source that is empty or an end symbol alone has an empty translation.

    Args:
        model: An encoder-decoder model.
        sources: A list of ids for each sentence, its end symbol included.
        beam: The beam of beam search; 1 is greedy search.
        length_penalty: The exponent of the length penalty of beam search; 0 for none.
        max_length: The largest number of tokens, one number for all sentences or one for each. By default,
            the numbers that usual_limits returns.
        cached: False computes all positions again at each step.
        threads: The number of threads that translate batches.
        batch_tokens: The number of source tokens of a batch, padding included, times the beam.
        progress: A function that is called with the number of sentences finished since the last call.

    Yields:
        The translations of the next sentences, whose batches and those of all sentences before are done: a
        list of ids for each, without start and end symbols.

    Raises:
        UserError: If the model cannot read a source, or a setting is out of range.
    """
    _check(beam, threads, batch_tokens)
    n = len(sources)
    limits = usual_limits(model.config, sources) if max_length is None else one_for_each(max_length, n)

    def translate(indices: list[int]) -> list[list[int]]:
        source = pad([sources[index] for index in indices])  # (B, S)
        settings: dict[str, Any] = {"max_length": limits[indices], "min_length": 1, "cached": cached}
        if beam == 1:
            return greedy(model, source, **settings)
        settings |= {"beam": beam, "length_penalty": length_penalty, "n_best": 1}
        return [hypotheses[0].ids for hypotheses in beam_search(model, source, **settings)]

    progress = progress or (lambda count: None)
    batches = batches_by_length(sources, batch_tokens // beam)
    translated = set(chain.from_iterable(batches))
    translations: dict[int, list[int]] = {index: [] for index in range(n) if index not in translated}
    progress(len(translations))  # the empty sentences
    yielded = 0
    # a GPU runs one kernel after another, so more threads would gain nothing
    results = _map_in_threads(translate, batches, 1 if is_cupy(model.values) else threads)
    for indices, outputs in chain([([], [])], zip(batches, results, strict=True)):
        translations.update(zip(indices, outputs, strict=True))
        progress(len(indices))
        part = [translations.pop(index) for index in takewhile(translations.__contains__, range(yielded, n))]
        yielded += len(part)
        if part:
            yield part


def batches_by_length(sources: Sequence[Sequence[int]], batch_tokens: int) -> list[list[int]]:
    """Return the batches as lists of sentence numbers. Every sentence that is not empty is in one batch.

    The sentences of a batch have similar lengths, so that there is little padding. A batch has at most
    batch_tokens tokens, padding included; a longer sentence is a batch of its own. The longest sentences come
    first, so that the last batches are short and no thread waits long for another.
    """
    not_empty = [index for index, ids in enumerate(sources) if any(token != END for token in ids)]
    batches: list[list[int]] = []
    for index in sorted(not_empty, key=lambda index: -len(sources[index])):
        if batches and (len(batches[-1]) + 1) * len(sources[batches[-1][0]]) <= batch_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def _map_in_threads(f: Callable[[Any], Any], items: Iterable[Any], threads: int) -> Iterator[Any]:
    """Yield f(item) for each item in order, computed by several threads with one BLAS thread each."""
    with threadpool_limits(1, user_api="blas"):
        if threads == 1:
            yield from map(f, items)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(f, items)  # after an error it starts no further items


def _check(beam: int, threads: int, batch_tokens: int) -> None:
    for name, number in (("beam", beam), ("threads", threads), ("batch_tokens", batch_tokens)):
        if number < 1:
            raise UserError(f"{name} is {number}: it must be 1 or more")
