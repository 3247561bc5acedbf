"""The data loader: from examples of token ids to the padded batches of each training step.

`plan_batches` decides which examples make each batch of an epoch, `make_batch` pads them into arrays, and
`DataLoader` chains the epochs and can start at any step. `split_batch` divides a batch among workers.
"""

from collections.abc import Iterator, Sequence
from itertools import chain, count, islice
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from npformer.data.vocabulary import END, PAD, START
from npformer.errors import UserError
from npformer.validation import require_count, require_counts, require_index

# an example is the token ids of a sentence and of its translation, both without START, END and PAD
Example = tuple[Sequence[int], Sequence[int]]

# int64 is the type that NumPy indexes with: an embedding would convert ids of type int32 in every step
Ids = NDArray[np.int64]

# The plan adds a random number between 0 and LENGTH_BLUR to the length of a target before it sorts by length.
# A larger number mixes the sentences better from epoch to epoch, and pads more. 29,000 English-French pairs
# in batches of 64 have 2 % padding at 1.0, 3 % at 1.5 and 4 % at 2.0. The probability that two sentences of
# one batch are together again in the next epoch is a quarter at 1.0, and a tenth at 1.5 and at 2.0.
LENGTH_BLUR = 1.5

BatchT = TypeVar("BatchT", bound=tuple[Any, ...])  # a NamedTuple of arrays (B, ...) of ids


class TrainingBatch(Protocol):
    """The arrays of one training step: everything that a step and the workers ask of a batch."""

    @property
    def inputs(self) -> tuple[Ids, ...]:
        """The arrays that the model reads."""

    @property
    def target_out(self) -> Ids:
        """The token to predict at each position, (B, T)."""

    @property
    def tokens(self) -> int:
        """The number of tokens to predict, without padding."""

    def split(self, count: int) -> "Sequence[TrainingBatch]":
        """Split the batch into `count` pieces of about the same size.

        There are fewer pieces if the batch has fewer rows, or if their lengths differ much.
        """


class Loader(Protocol):
    """The interface of a data loader, as the trainer uses it."""

    def steps(self, start: int = 0) -> Iterator[Sequence[TrainingBatch]]:
        """Yield the batches of step start + 1, of the step after it, and so on without end."""

    def count_steps(self, epochs: int) -> int:
        """Return the number of steps in this number of epochs."""

    def mean_tokens(self) -> tuple[float, ...]:
        """Return the mean number of tokens in a batch, for each array that the model reads."""


class Batch(NamedTuple):
    """Sentence pairs for one training step, padded to the same length.

    source (B, S) ends with END. target_in (B, T) starts with START. target_out (B, T) is target_in shifted by
    one position and ends with END, so that position t of the decoder reads target_in[:, : t + 1] and predicts
    target_out[:, t].
    """

    source: Ids
    target_in: Ids
    target_out: Ids

    @property
    def inputs(self) -> tuple[Ids, Ids]:
        """The arrays that the model reads."""
        return self.source, self.target_in

    @property
    def tokens(self) -> int:
        """The number of target tokens to predict, with END and without PAD."""
        return int((self.target_out != PAD).sum())

    def split(self, count: int) -> "list[Batch]":
        """Split the batch into `count` pieces, see `split_batch`."""
        return split_batch(self, count)


class DataLoader:
    """A data loader, which plans the batches of a training run epoch by epoch.

    The batches of all epochs form one sequence, so that a step may take some of its batches from one epoch
    and the others from the next. The batches of a step depend only on the arguments and on the number of the
    step. A resumed run therefore gets the same batches as an uninterrupted one, and no state has to be
    stored.

    Args:
        examples: The sentence pairs.
        lengths: (N, 2) their lengths, as `example_lengths` returns them, or (N, 1) for sentences without
            translations; computed here if not given.
        seed: Determines the order of the examples.
        batch_size: The largest number of sentences in a batch, or None.
        batch_tokens: The largest number of tokens in a batch, padding included, or None. Exactly one of
            batch_size and batch_tokens must be given.
        accumulate: The number of batches in a step.

    Raises:
        UserError: If settings are out of range or do not go together.
    """

    def __init__(
        self,
        examples: Sequence[Any],
        lengths: Ids | None = None,
        *,
        seed: int = 0,
        batch_size: int | None = None,
        batch_tokens: int | None = None,
        accumulate: int = 1,
    ) -> None:
        check_batching(seed, batch_size, batch_tokens, accumulate)
        self.examples = examples
        self.lengths = example_lengths(examples) if lengths is None else lengths
        self.seed, self.batch_size, self.batch_tokens = seed, batch_size, batch_tokens
        self.accumulate = accumulate

    def steps(self, start: int = 0) -> Iterator[list[Any]]:
        """Yield the batches of step start + 1, of the step after it, and so on without end."""
        for step, plan in enumerate(self.plan_steps(start), start + 1):
            yield self._batches(plan, step)

    def epoch(self, epoch: int = 0) -> list[Any]:
        """Return all examples in batches, in the order of an epoch, or [] if there are no examples."""
        return self._batches(self.plan_epoch(epoch), 0) if len(self.examples) else []

    def count_steps(self, epochs: int) -> int:
        """Return the number of steps in this number of epochs. The last step may begin a further epoch."""
        batches = sum(len(self.plan_epoch(epoch)) for epoch in range(epochs))
        return -(-batches // self.accumulate)  # rounded up

    def mean_tokens(self) -> tuple[float, ...]:
        """Return the numbers of source and target tokens in a batch of average sentences."""
        totals = self.lengths.sum(0)
        if self.batch_tokens is not None:
            part = self.batch_tokens / totals.max()
        else:
            part = (self.batch_size or 1) / len(self.lengths)
        return tuple(float(total * min(1.0, part)) for total in totals)

    def plan_steps(self, start: int = 0) -> Iterator[list[Ids]]:
        """Yield, like `steps`, the indices of the examples in each batch."""
        epochs = (self.plan_epoch(epoch) for epoch in count())
        plan = islice(chain.from_iterable(epochs), start * self.accumulate, None)
        while True:
            yield list(islice(plan, self.accumulate))

    def plan_epoch(self, epoch: int) -> list[Ids]:
        """Return the indices of the examples in each batch of an epoch."""
        return plan_batches(
            self.lengths,
            seed=self.seed,
            epoch=epoch,
            batch_size=self.batch_size,
            batch_tokens=self.batch_tokens,
        )

    def _batches(self, plan: Sequence[Ids], step: int) -> list[Any]:
        """Return the batches of a step from the indices of their examples; step 0 is for validation."""
        examples = ([self.examples[i] for i in indices] for indices in plan)
        return [self._batch(each, step, number) for number, each in enumerate(examples)]

    def _batch(self, examples: Sequence[Any], step: int, number: int) -> Any:
        """Return a batch of examples, the one with this number in the step, from 0."""
        return make_batch(examples)


def example_lengths(examples: Sequence[Example]) -> Ids:
    """Return the lengths (N, 2) that the sources and targets have in a batch, with END or START."""
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
    """Plan the batches of an epoch: every example once, examples of similar length together.

    The batches and their order depend on the arguments only, so a run that is resumed in epoch 7 gets the
    same batches as an uninterrupted one.

    Args:
        lengths: (N,), or (N, 2) for source and target, as `example_lengths` returns them.
        seed: The seed of the run, 0 or more.
        epoch: The number of the epoch, from 0.
        batch_size: The largest number of sentences in a batch. The sizes of the batches differ by at most 1.
        batch_tokens: The largest number of tokens in a batch, padding included: the length of the longest
            source or target times the number of sentences. A longer example is a batch of its own.
            Exactly one of batch_size and batch_tokens must be given.

    Returns:
        The indices of the examples in each batch.

    Raises:
        UserError: If settings are out of range or do not go together.
    """
    table = _length_table(lengths)
    check_batching(seed, batch_size, batch_tokens)
    require_index("epoch", epoch)
    rng = np.random.default_rng([seed, epoch])

    # Sort by the length of the target, and examples of equal target length by that of the source, so that
    # there is little padding. Both keys contain random numbers, so that the batches differ from epoch to
    # epoch.
    source, target = table[:, 0], table[:, -1]
    target_key = np.floor(target + LENGTH_BLUR * rng.random(len(table)))
    source_key = source + rng.random(len(table))
    order = np.lexsort((source_key, target_key))  # the last key is the primary one
    if batch_size is not None:
        # ceil(N / batch_size) batches whose sizes differ by at most 1, so that the last one is not tiny
        batches = np.array_split(order, -(-len(order) // batch_size))
    else:
        assert batch_tokens is not None  # checked by check_batching
        batches = np.split(order, _cuts(table.max(axis=1)[order], batch_tokens))

    # without this shuffle, training would see short sentences first and long ones last
    return [batches[i] for i in np.argsort(rng.random(len(batches)), kind="stable")]


def make_batch(examples: Sequence[Example], *, max_length: int | None = None) -> Batch:
    """Return the batch of some examples. With max_length, longer sentences are cut, START or END included.

    Raises:
        UserError: If there are no examples or max_length is below 1.
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


def pad(rows: Sequence[Sequence[int]], pad_id: int = PAD) -> Ids:
    """Return the rows as one array (B, T), filled up with pad_id on the right."""
    longest = max(map(len, rows), default=0)
    padded = np.full((len(rows), longest), pad_id, dtype=np.int64)
    for line, row in zip(padded, rows, strict=True):
        line[: len(row)] = row
    return padded


def truncate(ids: Sequence[int], max_length: int) -> list[int]:
    """Return at most max_length of the ids. If they end with END, the shortened ids end with it too.

    Raises:
        UserError: If max_length is below 1.
    """
    require_count("max_length", max_length)
    if len(ids) <= max_length:
        return list(ids)
    if ids[-1] == END:
        return [*ids[: max_length - 1], END]
    return list(ids[:max_length])


def split_batch(batch: BatchT, count: int) -> list[BatchT]:
    """Split a batch into `count` pieces with about the same number of source tokens.

    There are fewer pieces if the batch has fewer sentences, or if their lengths differ much. Columns that
    contain only padding in a piece are removed.
    """
    tokens = np.cumsum((batch[0] != PAD).sum(1))  # (B,)
    ends = np.searchsorted(tokens, tokens[-1] * np.arange(1, count) / count) + 1
    starts = np.unique([0, *np.minimum(ends, len(tokens) - 1)])
    pieces = np.split(np.arange(len(tokens)), starts[1:])
    return [_shorten(type(batch)(*(array[piece] for array in batch))) for piece in pieces]


def _shorten(batch: BatchT) -> BatchT:
    """Return the batch without columns of padding at the end. Arrays of equal width keep equal widths."""
    needed: dict[int, int] = {}
    for array in batch:
        width = array.shape[1]
        used = np.flatnonzero((array != PAD).any(0))
        needed[width] = max(needed.get(width, 1), int(used[-1]) + 1 if len(used) else 1)
    return type(batch)(*(array[:, : needed[array.shape[1]]] for array in batch))


def check_batching(seed: int, batch_size: int | None, batch_tokens: int | None, accumulate: int = 1) -> None:
    """Raise UserError for settings of batches that are out of range or do not go together.

    Args:
        seed: The seed of the run.
        batch_size: The number of examples in a batch, or None.
        batch_tokens: The number of tokens in a batch, or None.
        accumulate: The number of batches in a step.
    """
    if (batch_size is None) == (batch_tokens is None):
        raise UserError("give either batch_size (in sentences) or batch_tokens (in tokens), and not both")
    given = {"batch_size": batch_size} if batch_tokens is None else {"batch_tokens": batch_tokens}
    require_counts(**given, accumulate=accumulate)
    require_index("seed", seed)


def _cuts(lengths: NDArray[np.integer], batch_tokens: int) -> list[int]:
    """Return where to cut a sequence of lengths so that longest * count <= batch_tokens in each piece."""
    cuts: list[int] = []
    start, longest = 0, 0
    for position, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        if position > start and longest * (position + 1 - start) > batch_tokens:
            cuts.append(position)
            start, longest = position, length
    return cuts


def _length_table(lengths: ArrayLike) -> NDArray[np.integer]:
    """Return the lengths as integers (N, 1) or (N, 2), and raise UserError for anything else."""
    table = np.asarray(lengths)
    if table.size == 0:
        raise UserError("there are no examples to make batches of: give training data that is not empty")
    if table.ndim == 1:
        table = table[:, None]
    if table.ndim != 2 or table.shape[1] > 2 or table.dtype.kind not in "iu" or table.min() < 0:
        raise UserError(
            f"lengths must be whole numbers of shape (N,) or (N, 2), none of them negative, "
            f"not {table.dtype} of shape {np.shape(lengths)}: example_lengths(examples) gives them"
        )
    return table
