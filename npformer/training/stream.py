"""The endless stream of training batches, which can be entered at any step."""

from collections.abc import Iterator, Sequence
from itertools import chain, count, islice

from npformer.data.batches import Batch, Example, Ids, example_lengths, make_batch, plan_batches
from npformer.training.config import TrainingConfig


def training_batches(
    examples: Sequence[Example], config: TrainingConfig, *, done: int = 0
) -> Iterator[list[Batch]]:
    """The batches of step done + 1, of the step after that, and so on for ever.

    Epochs follow one another without a gap: a step may take its last batch from the next epoch. The
    order depends on the seed alone, so a resumed run sees what it would have seen.
    """
    for step in planned_steps(example_lengths(examples), config, done=done):
        yield [make_batch([examples[i] for i in indices]) for indices in step]


def planned_steps(lengths: Ids, config: TrainingConfig, *, done: int = 0) -> Iterator[list[Ids]]:
    """Which examples make each batch of step done + 1, of the step after that, and so on for ever."""
    plans = (plan_epoch(lengths, config, epoch) for epoch in count())
    plan = islice(chain.from_iterable(plans), done * config.accumulate, None)
    while True:
        yield list(islice(plan, config.accumulate))


def validation_batches(examples: Sequence[Example], config: TrainingConfig) -> list[Batch]:
    """All sentences in batches of the same size as in training, the same ones each time."""
    plan = plan_epoch(example_lengths(examples), config, 0) if examples else []
    return [make_batch([examples[i] for i in indices]) for indices in plan]


def count_steps(examples: Sequence[Example], config: TrainingConfig) -> int:
    """How many steps a run has; its last step may begin a further epoch to be whole."""
    if config.steps is not None:
        return config.steps
    assert config.epochs is not None  # TrainingConfig saw to it
    lengths = example_lengths(examples)
    batches = sum(len(plan_epoch(lengths, config, epoch)) for epoch in range(config.epochs))
    return -(-batches // config.accumulate)


def plan_epoch(lengths: Ids, config: TrainingConfig, epoch: int) -> list[Ids]:
    """Which examples make each batch of an epoch."""
    return plan_batches(
        lengths,
        seed=config.seed,
        epoch=epoch,
        batch_size=config.batch_size,
        batch_tokens=config.batch_tokens,
    )
