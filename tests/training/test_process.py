"""Freed memory stays with the process: the tests count page faults in separate processes."""

import platform
import subprocess
import sys
from pathlib import Path

import pytest
from training_worker import tiny_run

import npformer.training.process
from npformer.training import trainer, workers

needs_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc is another one here")

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


def run_script(script, *args):
    """Return what a script prints in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, *args],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(npformer.__file__).parents[1],
    )
    return done.stdout


@needs_glibc
def test_freed_memory_is_reused_by_the_next_array_in_every_thread():
    """The script counts the pages that the system provides for arrays of a size that was freed before."""
    assert int(run_script(FAULTS, "kept")) < 100  # a few for the thread itself
    # otherwise every array gets new pages: 10,000 small arrays, or 19 huge ones, for each of forty rounds
    assert int(run_script(FAULTS, "not kept")) > 500


# prints the flags of the part of the memory in which the middle of a new array of 3 MB lies
FLAGS = """
import numpy as np
from npformer.training.process import keep_freed_memory_in_process

assert keep_freed_memory_in_process()
address = np.ones(750_000, np.float32).ctypes.data + 1_500_000
inside = False
for line in open("/proc/self/smaps"):
    first, *others = line.split()
    if "-" in first:
        start, end = (int(number, 16) for number in first.split("-"))
        inside = start <= address < end
    elif inside and first == "VmFlags:":
        print(*others)
"""


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="no huge pages here")
@needs_glibc
def test_arrays_get_huge_pages():
    assert "hg" in run_script(FLAGS).split()


def test_training_keeps_freed_memory_before_it_starts_threads(monkeypatch, tmp_path):
    order, pool = [], workers.ThreadPoolExecutor
    monkeypatch.setattr(trainer, "keep_freed_memory_in_process", lambda: order.append("memory"))

    def start(*args, **settings):
        order.append("threads")
        return pool(*args, **settings)

    monkeypatch.setattr(workers, "ThreadPoolExecutor", start)
    tiny_run(tmp_path / "run", steps=1, workers=2)
    assert order == ["memory", "threads"]
