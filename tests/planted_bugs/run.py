"""Plant each bug in a copy of the package, and report whether the tests catch it.

    python tests/planted_bugs/run.py [--list] [--only NAME ...] [--jobs N]

The exit status is 1 if a bug is not caught, or can no longer be planted.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from planted_bugs import BUGS, NoLongerApplies
from planted_bugs.bug import ROOT

# the first failure ends the run (see inside.py for the order)
TESTS = (
    "checking/test_gradcheck.py",
    "training/test_optimizer.py",
    "nn/test_module.py",
    "functional/test_masks.py",
    "functional/test_heads.py",
    "functional/test_rotary.py",
    "nn/attention/test_multi_head_grouped.py",
    "nn/test_dropout.py",
    "functional/test_document_numbers.py",
    "models/test_backward_details.py",
    "models/transformer/test_model.py",
    "models/test_torch_parity.py",
    "models/test_universal_translator.py",
    "test_device.py",
    "models/test_document_numbers.py",
    "functional/test_packing.py",
    "training/test_workers.py",
    "training/test_step.py",
    "kernels/test_cpu.py",
    "kernels/test_gpu.py",
    "functional/test_broadcasting.py",
    "kernels/test_random_cases.py",
)
OPTIONS = ("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-o", "addopts=--import-mode=importlib")
ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # halves the time
INSIDE = Path(__file__).with_name("inside.py")
HALF_WRITTEN = shutil.ignore_patterns("*.pyc.*")
PASSED = "every test passes"
LIMIT = 300  # seconds for one bug: far more than it takes
FAILURE = re.compile(r"^(?:FAILED|ERROR) \S*?([^/\s]+::.*?)(?: - .*)?$", re.MULTILINE)


class Outcome(NamedTuple):
    """The result of one bug."""

    caught: bool
    seconds: float
    why: str  # the first test that failed, or the reason why it was not caught


def run_tests(bug=None):
    """Run the tests on a fresh copy of the package, with a bug if one is given."""
    start = time.perf_counter()
    words = "" if bug is None else f"{bug.file} {bug.name}".replace("_", " ").replace("/", " ")
    with tempfile.TemporaryDirectory(prefix="planted-") as name:
        folder = Path(name).resolve()
        shutil.copytree(ROOT / "npformer", folder / "npformer", ignore=HALF_WRITTEN)
        if bug is not None:
            bug.plant(folder / "npformer")
        tests = [str(ROOT / "tests" / test) for test in TESTS]
        try:
            done = subprocess.run(
                [sys.executable, str(INSIDE), str(folder), *OPTIONS, *tests],
                cwd=folder,
                env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(folder), "PLANTED": words},
                capture_output=True,
                text=True,
                timeout=LIMIT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome(False, LIMIT, f"the tests did not end within {LIMIT} s")
    return _judge(done, time.perf_counter() - start)


def _judge(done, seconds):
    """Judge a run: a bug is caught if a test fails, but not if the tests cannot start."""
    failed = FAILURE.search(done.stdout)
    if done.returncode == 1 and failed:
        return Outcome(True, seconds, failed[1])
    if done.returncode == 0:
        return Outcome(False, seconds, PASSED)
    last = (done.stdout + done.stderr).strip().splitlines()[-1:]
    return Outcome(False, seconds, f"the tests did not run: {' '.join(last)}")


def try_bug(bug):
    """Return the outcome of one bug."""
    try:
        return run_tests(bug)
    except NoLongerApplies as error:
        return Outcome(False, 0.0, str(error))


def run_all(bugs, jobs):
    """Print a table with one row for each bug. Return whether all bugs were caught."""
    start = time.perf_counter()
    width, kinds = max(len(bug.name) for bug in bugs), max(len(bug.kind) for bug in bugs)
    outcomes = []
    with ThreadPoolExecutor(jobs) as pool:
        for bug, outcome in zip(bugs, pool.map(try_bug, bugs), strict=True):
            mark = "caught    " if outcome.caught else "NOT CAUGHT"
            row = f"{mark}  {bug.kind:{kinds}}  {bug.name:{width}}  {outcome.seconds:5.1f} s  {outcome.why}"
            print(row, flush=True)
            outcomes.append(outcome)
    files = Counter(outcome.why.partition("::")[0] for outcome in outcomes if outcome.caught)
    by = ", ".join(f"{count} by {file}" for file, count in files.most_common())
    seconds = time.perf_counter() - start
    print(f"\n{len(bugs)} planted bugs, {files.total()} caught ({by or 'none'}), {seconds:.0f} s")
    for bug, outcome in zip(bugs, outcomes, strict=True):
        if not outcome.caught:
            print(f"NOT CAUGHT: {bug.name}: {outcome.why}")
    return files.total() == len(bugs)


def main():
    """Run the bugs of the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the bugs and plant none")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="bugs with one of these in their names")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many at a time (default 2)")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if not options.only or any(part in bug.name for part in options.only)]
    if not bugs:
        print("no planted bug has such a name: see --list")
        return 1
    if options.list:
        for bug in bugs:
            print(f"{bug.kind:15}  {bug.file:26}  {bug.name}")
        return 0
    control = run_tests()
    if control.why != PASSED:
        print(f"The tests fail without any bug, so they prove nothing: {control.why}")
        return 1
    print(f"without a bug every test passes ({control.seconds:.1f} s)", flush=True)
    return 0 if run_all(bugs, options.jobs) else 1


if __name__ == "__main__":
    sys.exit(main())
