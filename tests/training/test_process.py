"""Freed memory stays with the process: the tests count page faults in separate processes."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest
from training_worker import tiny_dataset, tiny_model, tiny_training

import npformer.training.process
from npformer.training import train, trainer, workers
from npformer.training.process import keep_freed_memory_in_process

FAULTS = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from npformer.training.process import keep_freed_memory_in_process

if sys.argv[1] == "kept":
    assert keep_freed_memory_in_process()

def work():
    for _ in range(20):
        np.ones(10_000_000, np.float32)  # 40 MB, freed at once

with ThreadPoolExecutor(1) as one, ThreadPoolExecutor(1) as other:  # a thread each
    one.submit(work).result()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    one.submit(work).result()
    other.submit(work).result()  # finds what the first one freed
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(how):
    """Count the pages that the system provides for arrays of a size that was freed before."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, how],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(npformer.__file__).parents[1],
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is another one here")
def test_freed_memory_is_reused_by_the_next_array_in_every_thread():
    assert page_faults("kept") < 100  # a few for the thread itself
    # otherwise every array gets new pages: 10,000 small arrays, or 19 huge ones, for each of forty rounds
    assert page_faults("not kept") > 500


def test_other_systems_and_other_c_libraries_are_not_changed(monkeypatch):
    monkeypatch.setattr(npformer.training.process.ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory_in_process()
    monkeypatch.setattr(npformer.training.process.sys, "platform", "darwin")
    monkeypatch.setattr(npformer.training.process.ctypes, "CDLL", None)
    assert not keep_freed_memory_in_process()


def test_training_keeps_freed_memory_before_it_starts_threads(monkeypatch, tmp_path):
    order, pool = [], workers.ThreadPoolExecutor
    monkeypatch.setattr(trainer, "keep_freed_memory_in_process", lambda: order.append("memory"))

    def start(*args, **settings):
        order.append("threads")
        return pool(*args, **settings)

    monkeypatch.setattr(workers, "ThreadPoolExecutor", start)
    dataset = tiny_dataset()
    train(tmp_path / "run", dataset, tiny_model(dataset), tiny_training(steps=1), workers=2)
    assert order == ["memory", "threads"]
