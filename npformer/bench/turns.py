"""Measurements that take turns, each in a process of its own: A B C A B C ..."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from npformer.bench.child import Task
from npformer.errors import UserError

THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def take_turns(
    tasks: Sequence[Task], repeats: int, report: Callable[[Task], None]
) -> list[list[dict[str, Any]]]:
    """Measure each task so many times, all of them in every round. Returns for each task what was found.

    report is told of each measurement before it begins.
    Errors: UserError where a process ends before it has measured.
    """
    found: list[list[dict[str, Any]]] = [[] for _ in tasks]
    for _ in range(repeats):
        for task, results in zip(tasks, found, strict=True):
            report(task)
            results.append(run_child(task))
    return found


def run_child(task: Task) -> dict[str, Any]:
    """Measure in a process of its own. Errors: UserError where it ends before it has measured."""
    # threads of workers take one core each, so their BLAS must not take more
    blas = task.workers if task.kind == "torch" else 1
    done = subprocess.run(
        [sys.executable, "-P", "-m", "npformer.bench.child", task.to_json()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ
        | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        | dict.fromkeys(THREADS, str(blas)),
    )
    if done.returncode:
        raise UserError(f"the measurement of {task.kind} with {task.setup.name} {_reason(done)}")
    return json.loads(done.stdout)


def _reason(done: subprocess.CompletedProcess) -> str:
    """Why a process ended, as the end of a sentence."""
    if done.returncode == -getattr(signal, "SIGKILL", 9):
        return "was killed: is there enough memory? --only tiny needs least"
    lines = done.stderr.strip().splitlines()
    return f"failed: {lines[-1] if lines else f'status {done.returncode}'}"
