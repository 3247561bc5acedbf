"""The growth of time and memory with the length and the number of sentences."""

import math
import statistics
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.bench.measure import time_steps
from npformer.bench.own_step import own_step
from npformer.bench.setups import DROPOUT, TINY, AnySetup
from npformer.kernels import plain_pairs
from npformer.nn.attention import MultiHeadAttention

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
BATCHES = (4, 8, 16, 32, 64, 128, 256)
# the number of sentences while the length grows, and the length while the number of sentences grows
SENTENCES, LENGTH = 2, 16
D, H = 128, 4  # sizes of the attention layer, whose input is one sentence


class Cost(NamedTuple):
    """The cost of forward and backward pass together at one size."""

    name: str  # "attention", "plain attention" or "step"
    against: str  # the size that grows: "length" or "batch"
    size: int
    seconds: float
    bytes: int  # the peak of the arrays that both passes create, without the parameters


def measure_costs(
    report: Callable[[str, int], None],
    *,
    lengths: Sequence[int] = LENGTHS,
    batches: Sequence[int] = BATCHES,
    setup: AnySetup = TINY,
    seconds: float = 0.3,
) -> Iterator[Cost]:
    """Measure an attention layer and a training step against length, and the step against batch size.

    Everything runs on one core, because curves would bend at the size from which a second core is used.

    Args:
        report: A function that is called with the name and size of each measurement before it begins.
        lengths: The lengths of sentences.
        batches: The numbers of sentences.
        setup: The model of the step.
        seconds: The shortest time of one measurement.
    """
    plan: list[tuple[str, str, int, Callable[[], Any]]] = []
    for length in lengths:
        plan += [
            ("step", "length", length, _step(replace(setup, sentences=SENTENCES, length=length))),
            ("attention", "length", length, AttentionPass(length).prepare),
            ("plain attention", "length", length, AttentionPass(length, plain=True).prepare),
        ]
    for batch in batches:
        plan.append(("step", "batch", batch, _step(replace(setup, sentences=batch, length=LENGTH))))
    for name, against, size, prepare in plan:
        report(f"{name} against {against}", size)
        yield Cost(name, against, size, *cost(prepare, seconds))


def cost(prepare: Callable[[], Callable[[], Any]], seconds: float) -> tuple[float, int]:
    """Return the median time of the function that prepare() returns, and its peak of additional bytes."""
    run = prepare()
    run()
    times, _ = time_steps(run, seconds)
    del run
    tracemalloc.start()  # it makes every allocation slower, so nothing is timed from here on
    try:
        run = prepare()
        before, _ = tracemalloc.get_traced_memory()
        run()  # buffers that are kept for the next run count as well
        tracemalloc.reset_peak()
        run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return statistics.median(times), peak - before


def _step(setup: AnySetup) -> Callable[[], Callable[[], float]]:
    return lambda: own_step(setup, workers=1, backend="numpy")


class AttentionPass(NamedTuple):
    """The forward and backward pass of an attention layer on one sentence."""

    length: int
    plain: bool = False  # with the plain pairs, which compute all T × T weights at once

    def prepare(self) -> Callable[[], Any]:
        """Create the layer and its input, and return a function that runs both passes."""
        rng = np.random.default_rng(0)
        layer = MultiHeadAttention(D, H, fused="qkv", dropout=DROPOUT, rng=rng)
        x = rng.standard_normal((1, self.length, D), dtype=np.float32)

        def forward_and_backward() -> Array:
            with plain_pairs() if self.plain else nullcontext():
                y, cache = layer.forward(x, train=True, rng=rng)
                dx: Array = layer.backward(y, cache)
                return dx

        return forward_and_backward


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Return the power of the size with which the values grow over the last two doublings."""
    return math.log(values[-1] / values[-3]) / math.log(sizes[-1] / sizes[-3])
