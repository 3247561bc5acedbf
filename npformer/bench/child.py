"""The process that measures one thing: python -m npformer.bench.child TASK prints what it found as JSON.

TASK is a Task as JSON. A process of its own has one BLAS library in it, and its peak of memory is its own.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

from npformer.bench.memory import peak, resident
from npformer.bench.setups import Setup

KINDS = ("npformer", "torch", "floor", "packed floor")
WARM_UP, LEAST = 2, 3  # steps


@dataclass(frozen=True)
class Task:
    """What to measure, and for how long."""

    kind: str
    setup: Setup
    workers: int = 2  # threads
    seconds: float = 1.0
    backend: str = "numpy"
    tf32: bool = False  # whether PyTorch may round products on a GPU

    def to_json(self) -> str:
        """The task as text."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> "Task":
        """The task of a text."""
        settings = json.loads(text)
        return cls(**settings | {"setup": Setup(**settings["setup"])})


def measure(task: Task) -> dict[str, Any]:
    """The median time of a step, and the memory that it took."""
    kind = import_kind(task)
    before = resident()
    step = kind.make()
    for _ in range(WARM_UP):
        step()
    seconds, value = time_steps(step, task.seconds)
    most = peak()
    return {
        "seconds": statistics.median(seconds),
        "steps": len(seconds),
        "loss": value,  # of the last step; None for a floor
        "peak": most,
        "above_import": most - before if most is not None and before is not None else None,
        "gpu_peak": kind.gpu_peak(),
    }


class Kind(NamedTuple):
    """One kind of measurement, with all that it needs imported."""

    make: Callable[[], Callable[[], Any]]  # makes the step
    gpu_peak: Callable[[], int | None]


def import_kind(task: Task) -> Kind:
    """Import what the task needs, PyTorch only where it is asked for."""
    setup, workers, backend = task.setup, task.workers, task.backend
    make: Callable[[], Callable[[], Any]]
    if task.kind == "torch":
        from npformer.bench.torch_step import torch_peak, torch_step

        device = "cpu" if backend == "numpy" else "cuda"
        make = partial(torch_step, setup, threads=workers, device=device, tf32=task.tf32)
        return Kind(make, partial(torch_peak, device))
    from npformer.bench.own_step import gpu_peak, own_step

    if task.kind == "npformer":
        make = partial(own_step, setup, workers=workers, backend=backend)
    else:
        from npformer.bench.floor import floor_step

        packed = task.kind == "packed floor"
        make = partial(floor_step, setup, workers=workers, backend=backend, packed=packed)
    return Kind(make, partial(gpu_peak, backend))


def time_steps(step: Callable[[], Any], seconds: float) -> tuple[list[float], Any]:
    """Step for about so many seconds, three times at least. Returns (seconds a step, what the last gave)."""
    times: list[float] = []
    began, value = time.perf_counter(), None
    while len(times) < LEAST or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        value = step()
        times.append(time.perf_counter() - start)
    return times, value


if __name__ == "__main__":
    print(json.dumps(measure(Task.from_json(sys.argv[1]))))
