"""Run tests on a copy of the package with one fault.

Each trial is a process of its own, forked from a server that has imported NumPy, pytest and hypothesis, but
not npformer or a test. So a trial begins within milliseconds, and imports the changed package itself.
"""

import atexit
import compileall
import functools
import multiprocessing
import os
import re
import shutil
import tempfile
import time
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple

from trials import inside

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1200  # seconds for one trial: far more than it takes, even on a busy machine
FAILURE = re.compile(r"^(?:FAILED|ERROR) \S*?\btests/(\S+?)::(.*?)(?: - .*)?$", re.MULTILINE)
PASSED = "every test passes"


class Outcome(NamedTuple):
    """The result of one trial."""

    status: int | None  # the exit status of pytest, or None after LIMIT seconds
    seconds: float
    why: str  # the first test that failed, or the reason why none did
    test: str  # the file of that test, relative to tests/, or ""

    @property
    def caught(self):
        """True if a test failed. It is False if the tests could not start."""
        return self.status == 1 and self.test != ""


def run_tests(tests, fault=None, *, words="", chosen=None, plugin=None):
    """Run tests on a fresh copy of the package until the first failure.

    Args:
        tests: Test files, relative to tests/.
        fault: The fault that is planted in the copy, or None.
        words: Words of the fault: the tests whose names contain most of them run first.
        chosen: The identifiers of the tests that run, in this order. The default is all tests of the files.
        plugin: One more plugin of pytest.

    Returns:
        The outcome.
    """
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="trial-") as name:
        folder = Path(name).resolve()
        shutil.copytree(_compiled_package(), folder / "npformer")
        if fault is not None:
            fault.plant(folder / "npformer")
        output = folder / "output.txt"
        paths = [str(ROOT / "tests" / test) for test in tests]
        arguments = (str(folder), str(output), paths, words, chosen, plugin)
        process = _server().Process(target=inside.main, args=arguments)
        process.start()
        process.join(LIMIT)
        if process.is_alive():
            process.kill()
            process.join()
            return Outcome(None, LIMIT, f"the tests did not end within {LIMIT} s", "")
        text = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
    return judge(process.exitcode, text, time.perf_counter() - start)


@functools.cache
def _compiled_package():
    """Return a copy of the package with the bytecode of all files, which the trials copy."""
    folder = tempfile.mkdtemp(prefix="package-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    package = Path(folder) / "npformer"
    shutil.copytree(ROOT / "npformer", package, ignore=shutil.ignore_patterns("*.pyc*"))
    compileall.compile_dir(package, quiet=2)
    return package


@functools.cache
def _server():
    """Return the multiprocessing context that starts the trials."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["numpy", "pytest", "hypothesis", "trials.inside"])
    before = dict(os.environ)
    os.environ.update(inside.ENVIRONMENT)  # before the server imports NumPy
    try:
        forkserver.ensure_running()
    finally:
        os.environ.clear()
        os.environ.update(before)
    return context


def judge(status, output, seconds):
    """Return the outcome of a trial from the exit status and the output of pytest."""
    failed = FAILURE.search(output)
    if status == 1 and failed:
        return Outcome(1, seconds, f"{Path(failed[1]).name}::{failed[2]}", failed[1])
    if status == 0:
        return Outcome(0, seconds, PASSED, "")
    last = output.strip().splitlines()[-1:]
    return Outcome(status, seconds, f"the tests did not run: {' '.join(last)}", "")


def write_source(package, file, source):
    """Write a source file into a copy of the package, and remove what Python compiled from the old one."""
    path = package / file
    path.write_text(source, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()
