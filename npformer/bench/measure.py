"""Measurements, each in its own process, in alternating order: A B C A B C ...

Each process has only one BLAS library, and its peak memory is that of its own measurement. `python -m
npformer.bench.measure TASK` is its command: TASK is a Task as JSON, and the output is the result as JSON.
"""

import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, NamedTuple

from npformer.bench.machine import peak, resident
from npformer.bench.setups import SETUP_CLASSES, AnySetup
from npformer.errors import UserError

KINDS = ("npformer", "torch", "floor", "packed floor")
WARM_UP, LEAST = 2, 3  # steps before the measurement, and the smallest number of measured steps
THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


@dataclass(frozen=True)
class Task:
    """One measurement: its kind, its setup and its duration."""

    kind: str  # one of KINDS
    setup: AnySetup
    workers: int = 2  # threads
    seconds: float = 1.0
    backend: str = "numpy"
    tf32: bool = False  # True if PyTorch may round the factors of products on a GPU to TF32
    compiled: bool = False  # True for torch.compile and the fused Adam

    def to_json(self) -> str:
        """Return the task as JSON."""
        return json.dumps(asdict(self) | {"setup_class": type(self.setup).__name__})

    @classmethod
    def from_json(cls, text: str) -> "Task":
        """Return the task that to_json wrote."""
        settings = json.loads(text)
        setup = SETUP_CLASSES[settings.pop("setup_class")](**settings["setup"])
        return cls(**settings | {"setup": setup})


def measure(task: Task) -> dict[str, Any]:
    """Return the median time of a step in seconds and its memory in bytes, measured in this process."""
    kind = import_kind(task)
    before = resident()
    step = kind.make()
    for _ in range(WARM_UP):
        step()
    seconds, value = time_steps(step, task.seconds)
    peak_bytes = peak()
    return {
        "seconds": statistics.median(seconds),
        "steps": len(seconds),
        "loss": value,  # of the last step; None for a floor
        "peak": peak_bytes,
        "above_import": peak_bytes - before if peak_bytes is not None and before is not None else None,
        "gpu_peak": kind.gpu_peak(),
    }


class Kind(NamedTuple):
    """The functions of one kind of measurement. Their modules are imported already."""

    make: Callable[[], Callable[[], Any]]  # builds the model and returns the step
    gpu_peak: Callable[[], int | None]


def import_kind(task: Task) -> Kind:
    """Import what the task needs. PyTorch is imported only for a task that measures it."""
    setup, workers, backend = task.setup, task.workers, task.backend
    make: Callable[[], Callable[[], Any]]
    if task.kind == "torch":
        from npformer.bench.torch_step import torch_peak, torch_step

        device = "cpu" if backend == "numpy" else "cuda"
        make = partial(
            torch_step, setup, threads=workers, device=device, tf32=task.tf32, compiled=task.compiled
        )
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
    """Repeat a step for about the given time, at least three times.

    Returns:
        (seconds of each step, the return value of the last one).
    """
    times: list[float] = []
    began, value = time.perf_counter(), None
    while len(times) < LEAST or time.perf_counter() - began < seconds:
        start = time.perf_counter()
        value = step()
        times.append(time.perf_counter() - start)
    return times, value


def take_turns(
    tasks: Sequence[Task], repeats: int, report: Callable[[Task], None]
) -> list[list[dict[str, Any]]]:
    """Measure all tasks once in each of several rounds.

    Args:
        tasks: The tasks, in the order of each round.
        repeats: The number of rounds.
        report: A function that is called with each task before it is measured.

    Returns:
        For each task, the results of its rounds.

    Raises:
        UserError: If a process ends before it has measured.
    """
    results: list[list[dict[str, Any]]] = [[] for _ in tasks]
    for _ in range(repeats):
        for task, results_of_task in zip(tasks, results, strict=True):
            report(task)
            results_of_task.append(run_child(task))
    return results


def run_child(task: Task) -> dict[str, Any]:
    """Measure a task in its own process.

    Raises:
        UserError: If the process ends before it has measured.
    """
    # each worker of npformer is a thread that takes one core, so its BLAS must not take more
    blas = task.workers if task.kind == "torch" else 1
    process = subprocess.run(
        [sys.executable, "-P", "-m", "npformer.bench.measure", task.to_json()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        | dict.fromkeys(THREADS, str(blas)),
    )
    if process.returncode:
        raise UserError(f"the measurement of {task.kind} with {task.setup.name} {_reason(process)}")
    result: dict[str, Any] = json.loads(process.stdout)
    return result


def _reason(process: subprocess.CompletedProcess[str]) -> str:
    """Return the reason why a process ended, as the end of a sentence."""
    if process.returncode == -getattr(signal, "SIGKILL", 9):
        return "was killed, probably for lack of memory: --only tiny needs the least memory"
    lines = process.stderr.strip().splitlines()
    return f"failed: {lines[-1] if lines else f'status {process.returncode}'}"


if __name__ == "__main__":
    print(json.dumps(measure(Task.from_json(sys.argv[1]))))
