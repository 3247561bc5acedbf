"""Many sentences at full speed: sorted by length, in batches, and the batches over threads.

The words found depend on nothing of that but rounding: a sentence's row is computed as it would be alone. The
batches are the same for every number of threads, and so are the bits.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from threadpoolctl import threadpool_limits

from npformer.backend import is_cupy
from npformer.data import END, pad
from npformer.decoding.beam import beam_search
from npformer.decoding.greedy import greedy
from npformer.decoding.rules import one_for_each, usual_limits
from npformer.errors import UserError

BATCH_TOKENS = 2048  # the source tokens of a batch, times the beam: some 150 rows of sentences of 14 words


def translate_ids(
    model: Any,
    sources: Sequence[Sequence[int]],
    *,
    beam: int = 1,
    length_penalty: float = 0.6,
    max_length: int | Sequence[int] | None = None,
    cached: bool = True,
    threads: int = 2,
    batch_tokens: int = BATCH_TOKENS,
    progress: Callable[[int], None] | None = None,
) -> list[list[int]]:
    """The translation of each sentence, in the order given; beam=1 is greedy search.

    Sentences of similar length go through the model together. A translation has at least one word, so that
    it is not empty, and at most max_length, one number or one for each sentence; unless given, usual_limits
    says how many. progress(n) is told of every n sentences that are done.
    Shapes: sources are lists of ids with their end, as they come -> lists of ids without start and end.
    A source that is empty, or its end alone, is not translated: its translation is empty.
    Errors: UserError for a source that the model cannot read, or settings out of range.
    """
    _check(beam, threads, batch_tokens)
    n = len(sources)
    limits = usual_limits(model.config, sources) if max_length is None else one_for_each(max_length, n)

    def translate(chosen: list[int]) -> list[list[int]]:
        source = pad([sources[index] for index in chosen])  # (B, S)
        settings = {"max_length": limits[chosen], "min_length": 1, "cached": cached}
        if beam == 1:
            return greedy(model, source, **settings)
        settings |= {"beam": beam, "length_penalty": length_penalty, "n_best": 1}
        return [hypotheses[0].ids for hypotheses in beam_search(model, source, **settings)]

    progress = progress or (lambda done: None)
    found: list[list[int]] = [[] for _ in sources]
    batches = batches_by_length(sources, batch_tokens // beam)
    progress(n - sum(map(len, batches)))  # the empty ones
    # kernels of a GPU come one after another, whoever starts them
    done = _each(translate, batches, 1 if is_cupy(model.values) else threads)
    for chosen, translations in zip(batches, done, strict=True):
        for index, ids in zip(chosen, translations, strict=True):
            found[index] = ids
        progress(len(chosen))
    return found


def batches_by_length(sources: Sequence[Sequence[int]], batch_tokens: int) -> list[list[int]]:
    """Which sentences go together: lists of their numbers, each sentence that is not empty in one of them.

    Of similar length, so that padding is rare, and of batch_tokens in all, padding counted; a longer sentence
    goes alone. The longest come first: what comes last is short, and no thread waits long for another.
    """
    filled = [index for index, ids in enumerate(sources) if any(word != END for word in ids)]
    batches: list[list[int]] = []
    for index in sorted(filled, key=lambda index: -len(sources[index])):
        if batches and (len(batches[-1]) + 1) * len(sources[batches[-1][0]]) <= batch_tokens:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def _each(f: Callable[[Any], Any], items: Iterable[Any], threads: int) -> Iterator[Any]:
    """f of each item, in their order, computed by so many threads, each with one thread of BLAS."""
    with threadpool_limits(1, user_api="blas"):
        if threads == 1:
            yield from map(f, items)
            return
        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(f, items)  # which begins nothing more after an error


def _check(beam: int, threads: int, batch_tokens: int) -> None:
    for name, number in (("beam", beam), ("threads", threads), ("batch_tokens", batch_tokens)):
        if number < 1:
            raise UserError(f"{name} is {number}: it must be 1 or more")
