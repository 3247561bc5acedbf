"""Random choices that give the same result on every version of Python."""

from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

# Python promises that random() keeps its sequence for a seed, but not that choice() and shuffle() do.


def pick(rng: Random, items: Sequence[T]) -> T:
    """Return one of the items, all with the same probability."""
    return items[int(rng.random() * len(items))]


def chance(rng: Random, probability: float) -> bool:
    """Return True with this probability."""
    return rng.random() < probability


def shuffled(rng: Random, items: Iterable[T]) -> list[T]:
    """Return the items in random order."""
    return sorted(items, key=lambda _: rng.random())


def weighted(rng: Random, choices: Sequence[tuple[float, T]]) -> T:
    """Return one of the items, with probabilities proportional to the weights."""
    aim = rng.random() * sum(weight for weight, _ in choices)
    for weight, item in choices:
        aim -= weight
        if aim < 0:
            return item
    return choices[-1][1]
