"""Processes that measure: their tasks, their turns, their results and their errors."""

import itertools
import os
import sys

import numpy as np
import pytest
import strict_cupy
from bench_toys import TOY, Clock

from npformer.bench import floor, measure
from npformer.bench.measure import LEAST, Task, time_steps
from npformer.bench.own_step import gpu_peak, own_step
from npformer.bench.profile import profile
from npformer.errors import UserError


def test_steps_are_timed_until_the_time_is_over(monkeypatch):
    times, value = time_steps(itertools.count().__next__, 0.0)
    assert len(times) == LEAST
    assert value == LEAST - 1
    clock = Clock()
    monkeypatch.setattr("npformer.bench.measure.time", clock)

    def step():
        clock.now += 0.25

    times, _ = time_steps(step, 2.0)
    assert times == [0.25] * 8


def test_measurements_take_turns(monkeypatch):
    reported, measured = [], []
    monkeypatch.setattr(measure, "run_child", lambda task: measured.append(task.kind) or {"n": len(measured)})
    tasks = [Task(kind, TOY) for kind in ("npformer", "torch")]
    found = measure.take_turns(tasks, 3, lambda task: reported.append(task.kind))
    assert measured == reported == ["npformer", "torch"] * 3
    assert found == [[{"n": 1}, {"n": 3}, {"n": 5}], [{"n": 2}, {"n": 4}, {"n": 6}]]


@pytest.mark.parametrize("kind", ["npformer", pytest.param("torch", marks=pytest.mark.torch), "floor"])
def test_a_process_measures(kind):
    if kind == "torch":
        pytest.importorskip("torch")
    ballast = np.ones(50_000_000)  # 400 MB of this process, not of the child
    found = measure.run_child(Task(kind, TOY, seconds=0.0))
    assert found["steps"] == LEAST
    assert found["seconds"] > 0
    assert 0 <= found["above_import"] < found["peak"]
    assert kind == "torch" or found["peak"] < ballast.nbytes / 2
    assert found["gpu_peak"] is None
    assert found["loss"] is None if kind == "floor" else 0.1 < found["loss"] < 20


def test_on_a_gpu(monkeypatch):
    """All measurements run on the stand-in for CuPy, and they wait for the device."""
    cupy, waits = strict_cupy.install(monkeypatch), []
    monkeypatch.setattr(cupy.cuda.Device, "synchronize", lambda device: waits.append(device))
    settings = {"workers": 1, "backend": "cupy"}
    assert 1 < own_step(TOY, **settings)() < 10
    assert len(waits) == 1
    floor.floor_step(TOY, packed=False, **settings)()
    assert len(waits) == 2
    assert gpu_peak("cupy") == 0  # the stand-in's pool is empty
    assert sum(line.seconds for line in profile(TOY, backend="cupy", seconds=0.0)) > 0
    assert len(waits) > 500


@pytest.mark.skipif(os.name == "nt", reason="needs a shell and signals")
def test_the_error_of_a_killed_process(monkeypatch, tmp_path):
    shell = tmp_path / "python"
    shell.write_text("#!/bin/sh\nkill -9 $$\n")
    shell.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(shell))
    with pytest.raises(UserError, match="of floor with toy was killed, probably for lack of memory"):
        measure.run_child(Task("floor", TOY, seconds=0.0))
