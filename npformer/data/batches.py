"""Sentences of ids to batches: padded arrays, and the plan of which sentences go together in an epoch."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npformer.data.vocabulary import END, PAD, START
from npformer.errors import UserError

# an example is the ids of a sentence and of its translation, both without START, END and PAD
Example = tuple[Sequence[int], Sequence[int]]

# int64 is the type NumPy indexes with: an embedding lookup by int32 ids would convert them on every step
Ids = NDArray[np.int64]

# Up to how many tokens are added to a target's length, at random, before sorting by it. More mixes the
# sentences better from epoch to epoch and pads more: 29,000 English-French pairs in batches of 64 have 2 %
# padding at 1.0, 3 % at 1.5, 4 % at 2.0; and of two sentences in one batch, a quarter, a tenth and a tenth
# are together again in the next epoch.
LENGTH_BLUR = 1.5


AnyBatch = TypeVar("AnyBatch", bound=tuple)  # a NamedTuple of arrays (B, ...) of ids


class Batch(NamedTuple):
    """Sentences for one training step, padded to one length.

    source (B, S) ends with END; target_in (B, T) starts with START; target_out (B, T) is target_in one step
    on and ends with END, so that position t of the decoder reads target_in[:, : t + 1] and predicts
    target_out[:, t].
    """

    source: Ids
    target_in: Ids
    target_out: Ids

    @property
    def inputs(self) -> tuple[Ids, Ids]:
        """What the model reads."""
        return self.source, self.target_in

    @property
    def tokens(self) -> int:
        """The number of target tokens to predict, END included, PAD not."""
        return int((self.target_out != PAD).sum())


def pad(rows: Sequence[Sequence[int]], pad_id: int = PAD) -> Ids:
    """The rows as one array (B, T), T the length of the longest, filled with pad_id on the right."""
    longest = max(map(len, rows), default=0)
    padded = np.full((len(rows), longest), pad_id, dtype=np.int64)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded


def truncate(ids: Sequence[int], max_length: int) -> list[int]:
    """At most max_length of the ids; where they end with END, the shorter ones do too."""
    if max_length < 1:
        raise UserError(f"max_length is {max_length}: it must be 1 or more")
    if len(ids) <= max_length:
        return list(ids)
    if ids[-1] == END:
        return [*ids[: max_length - 1], END]
    return list(ids[:max_length])


def make_batch(examples: Sequence[Example], *, max_length: int | None = None) -> Batch:
    """The batch of some examples; what is longer than max_length, START or END counted, is cut.

    Errors: UserError when there are no examples or max_length is below 1.
    """
    if not examples:
        raise UserError("a batch needs at least one example, and was given none")
    sources = [[*source, END] for source, _ in examples]
    targets = [[*target, END] for _, target in examples]
    if max_length is not None:
        sources = [truncate(ids, max_length) for ids in sources]
        targets = [truncate(ids, max_length) for ids in targets]
    return Batch(
        source=pad(sources),
        target_in=pad([[START, *ids[:-1]] for ids in targets]),
        target_out=pad(targets),
    )


def split_batch(batch: AnyBatch, count: int) -> list[AnyBatch]:
    """The batch in `count` pieces, or fewer where it has fewer sentences, of about as many words each.

    Padding that no sentence of a piece needs is cut off.
    """
    words = np.cumsum((batch[0] != PAD).sum(1))  # (B,)
    ends = np.searchsorted(words, words[-1] * np.arange(1, count) / count) + 1
    starts = np.unique([0, *np.minimum(ends, len(words) - 1)])
    pieces = np.split(np.arange(len(words)), starts[1:])
    return [_shorten(type(batch)(*(array[piece] for array in batch))) for piece in pieces]


def _shorten(batch: AnyBatch) -> AnyBatch:
    """The batch without columns of padding at the end; arrays of one width keep one width."""
    needed: dict[int, int] = {}
    for array in batch:
        width = array.shape[1]
        used = np.flatnonzero((array != PAD).any(0))
        needed[width] = max(needed.get(width, 1), int(used[-1]) + 1 if len(used) else 1)
    return type(batch)(*(array[:, : needed[array.shape[1]]] for array in batch))


def example_lengths(examples: Sequence[Example]) -> Ids:
    """The lengths (N, 2) that the sources and targets will have in a batch, START or END counted."""
    lengths = [(len(source) + 1, len(target) + 1) for source, target in examples]
    return np.array(lengths, dtype=np.int64).reshape(-1, 2)


def plan_batches(
    lengths: ArrayLike,
    *,
    seed: int,
    epoch: int,
    batch_size: int | None = None,
    batch_tokens: int | None = None,
) -> list[Ids]:
    """Which examples go together in each batch of an epoch: every example once, similar lengths together.

    lengths: (N,), or (N, 2) for source and target, as example_lengths gives them.
    batch_size: the most sentences in a batch; the batches are made as even as that allows.
    batch_tokens: the most tokens in a batch, padding included: longest length, of either side, times
    sentences. An example longer than that is a batch of its own. Exactly one of the two is given.
    Returns arrays of example indices. Order and membership depend on (seed, epoch) and nothing else: a run
    resumed at epoch 7 sees what it would have seen, with no state to store.
    Errors: UserError for settings that do not fit together.
    """
    table = _length_table(lengths)
    _check_plan(seed, epoch, batch_size, batch_tokens)
    rng = np.random.default_rng([seed, epoch])

    # sort by the target's length and, among equals, by the source's, so that little padding is computed;
    # but with a little chance in both, so that a sentence meets others each epoch
    source, target = table[:, 0], table[:, -1]
    target_key = np.floor(target + LENGTH_BLUR * rng.random(len(table)))
    source_key = source + rng.random(len(table))
    order = np.lexsort((source_key, target_key))  # the last key counts first
    if batch_size is not None:
        # ceil(N / batch_size) batches that differ by one sentence at most: no tiny batch at the end
        batches = np.array_split(order, -(-len(order) // batch_size))
    else:
        assert batch_tokens is not None  # _check_plan saw to it
        batches = np.split(order, _cuts(table.max(axis=1)[order], batch_tokens))

    # short sentences first, long ones last would be a lesson plan of its own: shuffle the batches
    return [batches[i] for i in np.argsort(rng.random(len(batches)), kind="stable")]


def _cuts(lengths: NDArray[np.integer], batch_tokens: int) -> list[int]:
    """Where to cut the sequence of lengths so that in each piece longest * count <= batch_tokens."""
    cuts: list[int] = []
    start, longest = 0, 0
    for position, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if position > start and longest * (position + 1 - start) > batch_tokens:
            cuts.append(position)
            start, longest = position, length
    return cuts


def _length_table(lengths: ArrayLike) -> NDArray[np.integer]:
    """The lengths as integers (N, 1) or (N, 2); UserError if they are something else."""
    table = np.asarray(lengths)
    if table.size == 0:
        raise UserError("there are no examples to make batches of: give training data that is not empty")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] > 2 or table.dtype.kind not in "iu" or table.min() < 0:
        raise UserError(
            f"lengths must be whole numbers of shape (N,) or (N, 2), none negative, "
            f"not {table.dtype} of shape {np.shape(lengths)}: example_lengths(examples) gives them"
        )
    return table


def _check_plan(seed: int, epoch: int, batch_size: int | None, batch_tokens: int | None) -> None:
    if (batch_size is None) == (batch_tokens is None):
        raise UserError("give either batch_size (in sentences) or batch_tokens (in tokens), and not both")
    settings = {"batch_size": batch_size, "batch_tokens": batch_tokens}
    for name, value in settings.items():
        if value is not None and value < 1:
            raise UserError(f"{name} is {value}: it must be 1 or more")
    if seed < 0 or epoch < 0:
        raise UserError(f"seed is {seed} and epoch is {epoch}: neither may be negative")
