"""Batch decoding: translate many sentences, sorted by length into batches that run on several threads.

Each row of a batch is computed as if its sentence were alone, so the batches change the results by rounding
only. The batches do not depend on the number of threads, so the results are bitwise the same for any number.
"""

import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, takewhile
from typing import Any, get_type_hints

import numpy as np
from threadpoolctl import threadpool_limits

from npformer.backend import Array, is_cupy
from npformer.data import END, pad
from npformer.generation.beam import Hypothesis, beam_search, check_beam
from npformer.generation.greedy import greedy
from npformer.generation.prefixes import Begin, begin_for_each
from npformer.generation.search import LENGTH_PENALTY, Limits, one_for_each, usual_limits
from npformer.validation import require_counts, require_name, require_types

BATCH_TOKENS = 4096  # source tokens of a batch times the beam: about 300 rows for sentences of 14 tokens


def translate_ids(model: Any, sources: Sequence[Sequence[int]], **settings: Any) -> list[list[int]]:
    """Translate many sentences and return the translations in the same order.

    Args:
        model: An encoder-decoder model.
        sources: A list of ids for each sentence, its end symbol included.
        settings: The settings of `search_in_parts`.

    Returns:
        A list of ids for each sentence, without start and end symbols.

    Raises:
        UserError: If the model cannot read a source, or a setting is unknown or out of range.
    """
    require_settings(settings)
    found = chain.from_iterable(search_in_parts(model, sources, **settings))
    return [hypotheses[0].ids if hypotheses else [] for hypotheses in found]


def search_in_parts(
    model: Any,
    sources: Sequence[Sequence[int]],
    n_best: int = 1,
    *,
    beam: int = 1,
    max_length: Limits = None,
    begin: Begin = None,
    threads: int = 2,
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int], None] | None = None,
    **search: Any,
) -> Iterator[list[list[Hypothesis]]]:
    """Search for the translations of many sentences, and yield them in the same order, as soon as possible.

    Sentences of similar length go through the model together. A source that is empty or an end symbol alone
    has no translation.

    Args:
        model: An encoder-decoder model.
        sources: A list of ids for each sentence, its end symbol included.
        n_best: The number of translations of each sentence, at most `beam`.
        beam: The beam of beam search; 1 is greedy search.
        max_length: The largest number of tokens, one number for all sentences or one for each. By default,
            the numbers that usual_limits returns, and the tokens of `begin`.
        begin: The ids of the tokens with which the translations of each sentence begin. By default, none.
        threads: The number of threads that translate batches.
        batch_tokens: The number of source tokens of a batch, padding included, times the beam.
        progress: A function that is called with the number of sentences finished since the last call.
        search: Further settings of the search: length_penalty, min_length (by default 1, so that no
            translation of a sentence is empty), cached, allow_unk, forbidden, forced_bos, rules,
            renormalize, no_repeat_ngram_size and early_stopping. See beam_search.

    Yields:
        The translations of the next sentences, whose batches and those of all sentences before are done: at
        most n_best hypotheses for each, best first. Greedy search computes no probabilities: they are nan.

    Raises:
        UserError: If the model cannot read a source, or a setting is unknown or out of range.
    """
    require_settings(search)
    require_counts(threads=threads, batch_tokens=batch_tokens)
    names = ("length_penalty", "early_stopping", "rules")
    check_beam(beam, n_best=n_best, **{name: search[name] for name in names if name in search})
    n = len(sources)
    begin = begin_for_each(begin, n)
    limits = _limits(model.config, sources, begin) if max_length is None else one_for_each(max_length, n)

    def translate(indices: list[int]) -> list[list[Hypothesis]]:
        source = pad([sources[index] for index in indices], model.config.pad_id)  # (B, S)
        beginnings = [begin[index] for index in indices]
        return _search(model, source, limits[indices], beam, n_best, begin=beginnings, **search)

    progress = progress or (lambda count: None)
    batches = batches_by_length(sources, batch_tokens // beam, model.config.end_id)
    translated = set(chain.from_iterable(batches))
    translations: dict[int, list[Hypothesis]] = {index: [] for index in range(n) if index not in translated}
    progress(len(translations))  # the empty sentences
    yielded = 0
    # a GPU runs one kernel after another, so more threads would gain nothing
    results = _map_in_threads(translate, batches, 1 if is_cupy(model.reference) else threads)
    for indices, outputs in chain([([], [])], zip(batches, results, strict=True)):
        translations.update(zip(indices, outputs, strict=True))
        progress(len(indices))
        part = [translations.pop(index) for index in takewhile(translations.__contains__, range(yielded, n))]
        yielded += len(part)
        if part:
            yield part


def _search(
    model: Any,
    source: Array,
    limits: Array,
    beam: int,
    n_best: int,
    *,
    length_penalty: float = LENGTH_PENALTY,
    min_length: int = 1,
    cached: bool = True,
    allow_unk: bool = False,
    forbidden: list[int] | None = None,
    forced_bos: int | None = None,
    rules: str = "paper",
    renormalize: bool = False,
    begin: Begin = None,
    no_repeat_ngram_size: int = 0,
    early_stopping: bool | str = False,
) -> list[list[Hypothesis]]:
    """Translate a batch (B, S), n_best times each. Greedy search ignores settings of beam search."""
    shared: dict[str, Any] = {
        "max_length": limits,
        "min_length": min_length,
        "cached": cached,
        "allow_unk": allow_unk,
        "forbidden": forbidden,
        "forced_bos": forced_bos,
        "begin": begin,
        "no_repeat_ngram_size": no_repeat_ngram_size,
    }
    if beam == 1:
        return [[Hypothesis(ids, math.nan, math.nan)] for ids in greedy(model, source, **shared)]
    return beam_search(
        model,
        source,
        beam=beam,
        length_penalty=length_penalty,
        n_best=n_best,
        rules=rules,
        renormalize=renormalize,
        early_stopping=early_stopping,
        **shared,
    )


# the names of all settings of search_in_parts
SETTINGS = [
    name
    for function in (search_in_parts, _search)
    for name, parameter in inspect.signature(function).parameters.items()
    if parameter.kind is parameter.KEYWORD_ONLY
]


def require_settings(settings: Mapping[str, Any], others: Sequence[str] = ()) -> None:
    """Raise UserError for an unknown setting of search_in_parts, or for one of `_search` with a wrong type.

    Args:
        settings: The settings by name.
        others: Further names that the caller's function takes, for the message.
    """
    for name in settings:
        require_name(name, [*others, *SETTINGS], "setting of the search")
    require_types(settings, {name: hint for name, hint in get_type_hints(_search).items() if name != "begin"})


def _limits(config: Any, sources: Sequence[Sequence[int]], begin: Sequence[Sequence[int]]) -> Array:
    """Return the largest number of tokens of each translation: the usual one, after its beginning."""
    lengths = np.array([len(ids) for ids in begin], int)
    limits: Array = np.minimum(config.max_length - 1, usual_limits(config, sources) + lengths)
    return limits


def batches_by_length(
    sources: Sequence[Sequence[int]], batch_tokens: int, end_id: int = END
) -> list[list[int]]:
    """Return the batches as lists of sentence numbers. Every sentence that is not empty is in one batch.

    The sentences of a batch have similar lengths, so that there is little padding. The longest sentences come
    first, so that the last batches are short and no thread waits long for another.

    Args:
        sources: A list of ids for each sentence.
        batch_tokens: The largest number of tokens of a batch, padding included; a longer sentence is a batch
            of its own.
        end_id: The id of the end symbol. A sentence of this alone is empty.
    """
    not_empty = [index for index, ids in enumerate(sources) if any(token != end_id for token in ids)]
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
