"""Run tests on a copy of the package with one fault.

Each trial is a process of its own, forked from a server that has imported NumPy, pytest and hypothesis, but
not npformer or a test. So a trial begins within milliseconds, and imports the changed package itself.
"""

import atexit
import compileall
import functools
import multiprocessing
import os
import shutil
import tempfile
import time
from multiprocessing import forkserver
from pathlib import Path
from typing import NamedTuple

from trials import inside

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 1200  # seconds of processor time for a trial of whole files
LIMIT_OF_CHOSEN = 60  # and for chosen tests, beside ten times what they take without a fault
PATIENCE = 3600  # seconds until a trial is killed that waits for something
PASSED = "every test passes"


class Outcome(NamedTuple):
    """The result of one trial."""

    status: int | None  # the exit status of pytest, or None after PATIENCE seconds
    seconds: float
    why: str  # the first test that failed, or what happened instead
    test: str  # the identifier of the test that caught the fault, or ""

    @property
    def caught(self):
        """True if the tests ended otherwise than without the fault: a failure, a crash, or no end."""
        return self.status is None or self.status in (1, 2) or self.status < 0


def run_tests(tests, fault=None, *, chosen=None, seconds=LIMIT, plugin=None):
    """Run tests on a fresh copy of the package until the first failure.

    Args:
        tests: Test files, relative to tests/.
        fault: The fault that is planted in the copy, or None.
        chosen: The identifiers of the tests that run, in this order. The default is all tests of the files.
        seconds: The limit of processor time.
        plugin: One more plugin of pytest.

    Returns:
        The outcome.
    """
    start = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="trial-") as name:
        folder = Path(name).resolve()
        shutil.copytree(_compiled_package(), folder / "npformer", copy_function=_link)
        if fault is not None:
            fault.plant(folder / "npformer")
        paths = [str(ROOT / "tests" / test) for test in tests]
        process = _server().Process(
            target=inside.main, args=(str(folder), paths, chosen, int(seconds), plugin)
        )
        process.start()
        process.join(PATIENCE)
        if process.is_alive():
            process.kill()
            process.join()
            return Outcome(
                None, PATIENCE, f"the tests did not end within {PATIENCE} s", chosen[0] if chosen else ""
            )
        text, failure = (_text(folder / file) for file in ("output.txt", "failure.txt"))
    return judge(process.exitcode, text, failure, chosen, time.perf_counter() - start)


def run_chosen(identifiers, fault=None, seconds=0.0):
    """Run tests on a fresh copy of the package, in the given order, until the first failure.

    Args:
        identifiers: The identifiers of the tests, such as "tests/nn/test_linear.py::test_bias".
        fault: The fault that is planted in the copy, or None.
        seconds: The processor time that the tests take without the fault.
    """
    files = list(dict.fromkeys(map(file_of, identifiers)))
    limit = LIMIT_OF_CHOSEN + 10 * seconds
    return run_tests(files, fault, chosen=list(identifiers), seconds=limit)


def file_of(identifier):
    """Return the test file of the identifier of a test, relative to tests/."""
    return identifier.partition("::")[0].removeprefix("tests/")


def judge(status, output, failure, chosen, seconds):
    """Return the outcome of a trial.

    Args:
        status: The exit status of pytest, negative after a signal.
        output: What it printed.
        failure: The identifier of the first test that failed, or "".
        chosen: The identifiers of the tests that were to run, or None.
        seconds: The time that the trial took.
    """
    if status == 0:
        return Outcome(0, seconds, PASSED, "")
    if failure and status in (1, 2):
        return Outcome(status, seconds, failure.removeprefix("tests/"), failure)
    last = output.strip().splitlines()[-1:]
    outcome = Outcome(status, seconds, f"the tests did not run to their end: {' '.join(last)}", "")
    return outcome._replace(test=chosen[0]) if outcome.caught and chosen else outcome


def _text(path):
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


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


def _link(source, target):
    """Let two names lead to one file, which is quicker than a copy where the system can do it."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def write_source(package, file, source):
    """Write a source file into a copy of the package, and remove what Python compiled from the old one."""
    path = package / file
    path.unlink(missing_ok=True)  # the file itself may be that of all copies
    path.write_text(source, encoding="utf-8")
    for compiled in path.parent.glob(f"__pycache__/{path.stem}.*.pyc"):
        compiled.unlink()
