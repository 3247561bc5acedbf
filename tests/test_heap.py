"""Memory that arrays free stays with the process: counted in page faults, in processes of their own."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest

import npformer.training.heap
from npformer.training import workers
from npformer.training.heap import keep_freed_memory

FAULTS = """
import resource, sys
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from npformer.training.heap import keep_freed_memory

if sys.argv[1] == "kept":
    assert keep_freed_memory()

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
    """How often the system had to hand out a page to arrays of a size that came before."""
    done = subprocess.run(
        [sys.executable, "-c", FAULTS, how],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(npformer.__file__).parents[1],
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is another one here")
def test_the_room_of_a_freed_array_is_there_for_the_next_one_in_every_thread():
    assert page_faults("kept") < 100  # a few for the thread itself
    # without, every array comes in fresh pages: 10,000 small ones, or 19 huge ones, for each of forty
    assert page_faults("not kept") > 500


def test_another_system_and_another_c_library_are_left_alone(monkeypatch):
    monkeypatch.setattr(npformer.training.heap.ctypes, "CDLL", lambda name: object())
    assert not keep_freed_memory()
    monkeypatch.setattr(npformer.training.heap.sys, "platform", "darwin")
    monkeypatch.setattr(npformer.training.heap.ctypes, "CDLL", None)
    assert not keep_freed_memory()


def test_a_team_of_workers_has_it_told_before_it_makes_its_threads(monkeypatch):
    told = []
    monkeypatch.setattr(workers, "keep_freed_memory", lambda: told.append("heap"))
    monkeypatch.setattr(workers, "ThreadPoolExecutor", lambda *_, **__: told.append("threads"))

    class Model:
        def replicate(self):
            return self

    workers.Workers(Model(), 2)
    assert told == ["heap", "threads"]
