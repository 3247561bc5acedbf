"""How time and memory grow with the length of sentences, and with their number."""

import math
import statistics
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from npformer.attention import MultiHeadAttention
from npformer.bench.child import time_steps
from npformer.bench.own_step import own_step
from npformer.bench.setups import DROPOUT, SETUPS, Setup
from npformer.kernels import plain_pairs

LENGTHS = (16, 32, 64, 128, 256, 512, 1024)
BATCHES = (4, 8, 16, 32, 64, 128, 256)
SENTENCES, LENGTH = 2, 16  # of a step, where the other one grows
D, H = 128, 4  # of the attention layer, which sees one sentence


class Cost(NamedTuple):
    """What forward and backward together take at one size."""

    name: str  # "attention", "plain attention" or "step"
    against: str  # what grows: "length" or "batch"
    size: int
    seconds: float
    bytes: int  # the most that the arrays made meanwhile hold at once; parameters are not among them


def measure_costs(
    report: Callable[[str, int], None],
    *,
    lengths: Sequence[int] = LENGTHS,
    batches: Sequence[int] = BATCHES,
    setup: Setup = SETUPS["tiny"],
    seconds: float = 0.3,
) -> Iterator[Cost]:
    """The cost of an attention layer and of a training step against length, and of the step against batch.

    On one core, so that no curve bends where a second one joins in.
    report is told what comes next: its name, and its size.
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
    """The median time of what prepare() returns, and the most bytes that it needs beside what it had."""
    run = prepare()
    run()
    took, _ = time_steps(run, seconds)
    del run
    tracemalloc.start()  # NumPy tells it of every array; that takes time, so nothing is timed meanwhile
    try:
        run = prepare()
        before, _ = tracemalloc.get_traced_memory()
        run()  # buffers that are kept for the next time count as well
        tracemalloc.reset_peak()
        run()
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return statistics.median(took), most - before


def _step(setup: Setup) -> Callable[[], Callable[[], float]]:
    return lambda: own_step(setup, workers=1, backend="numpy")


class AttentionPass(NamedTuple):
    """An attention layer that looks at one sentence, forward and backward."""

    length: int
    plain: bool = False  # with the plain pairs, which make all T × T weights at once

    def prepare(self) -> Callable[[], Any]:
        """Make the layer and its input. Returns what runs both ways."""
        rng = np.random.default_rng(0)
        layer = MultiHeadAttention(D, H, fused="qkv", rate=DROPOUT, rng=rng)
        x = rng.standard_normal((1, self.length, D), dtype=np.float32)

        def both_ways():
            with plain_pairs() if self.plain else nullcontext():
                y, cache = layer.forward(x, train=True, rng=rng)
                return layer.backward(y, cache)

        return both_ways


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """With which power of the size the values grow at the right end, over the last two doublings."""
    return math.log(values[-1] / values[-3]) / math.log(sizes[-1] / sizes[-3])
