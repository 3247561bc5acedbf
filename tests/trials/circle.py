"""Try faults one after the other, and report those that no test notices.

The test that caught a fault last time runs first, alone. If it does not fail, those tests run that call the
function of the fault, the fastest first, up to the first failure.
"""

import hashlib
import json
import re
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from trials.reach import MeasuredReach, TestsFail
from trials.trial import ROOT, Outcome, run_chosen

FOLDERS = ("functional", "nn", "models", "kernels")
MORE = (  # these test what no test of those folders does, or test it in fewer seconds
    "checking/test_blind_spots.py",
    "checking/test_cases_options.py",
    "checking/test_derivative.py",
    "checking/test_gradcheck.py",
    "test_device.py",
    "training/test_consistency.py",
    "training/test_optimizer.py",
    "training/test_step.py",
    "training/test_workers.py",
    "data/test_sentences.py",
    "data/test_monolingual.py",
    "data/test_casing.py",
    "generation/test_fill_in.py",
    "generation/test_bleu_statistics.py",
    "generation/test_invented_words.py",
    "generation/test_fast_state.py",
    "generation/test_scoring.py",
    "generation/test_prefixes.py",
    "learn/capstone/test_compare.py",
    "learn/capstone/test_training.py",
    "pretrained/test_encoders.py",
    "pretrained/test_input_gradients.py",
    "pretrained/test_saliency.py",
    "lenses/test_logit_lens.py",
    "lenses/test_attribution.py",
    "lenses/test_patching.py",
    "pretrained/test_loss_check.py",
    "interop/test_export.py",
    "interop/test_mapped_tensors.py",
)
NO_TEST = "no test calls it"


def all_test_files(folders=FOLDERS, more=MORE, faults=()):
    """Return the test files of some folders and those named like the files of faults, relative to tests/."""
    tests = ROOT / "tests"
    found = (path for folder in folders for path in sorted((tests / folder).rglob("test_*.py")))
    mirrored = [path.relative_to(tests).as_posix() for path in found]
    named = [re.sub(r"([^/]+)$", r"test_\1", fault.file) for fault in faults]
    names = dict.fromkeys([*more, *mirrored, *(name for name in named if (tests / name).is_file())])
    return [name for name in names if not name.endswith("_torch.py")]


def add_options(parser):
    """Add the options that say which faults are tried, and for how long."""
    parser.add_argument("--changed", action="store_true", help="only faults that caught.json does not hold")
    parser.add_argument("--record", action="store_true", help="store in caught.json what caught each")
    parser.add_argument(
        "--minutes",
        type=float,
        metavar="M",
        help="begin no trial later than that: the faults that are left do not change the result",
    )
    parser.add_argument("--results", type=Path, metavar="FILE", help="append a line of JSON for each fault")
    parser.add_argument("--list", action="store_true", help="print the faults and try none")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many at a time (default 2)")


def try_fault(fault, reach, last=""):
    """Return the outcome of one fault.

    Args:
        fault: The fault.
        reach: The tests that call each function.
        last: The identifier of the test that caught it last time, or "".
    """
    if last:
        outcome = run_chosen([last], fault)
        if outcome.caught:
            return outcome
    chosen, seconds = reach.of(fault)
    return run_chosen(chosen, fault, seconds) if chosen else Outcome(0, 0.0, NO_TEST, "")


def try_all(faults, record, options, tests=None):
    """Try faults, and print a line for each.

    Args:
        faults: The faults.
        record: The record of the faults that were caught.
        options: The options of the command line.
        tests: The test files, relative to tests/. The default is those of `all_test_files`.

    Returns:
        True if all faults that were tried were caught.
    """
    if options.changed:
        stale = record.changed(faults)
        print(f"{len(stale)} of {len(faults)} faults are tried: the record holds the others")
        faults = stale
    if options.list:
        print(*(fault.name for fault in faults), sep="\n")
    if options.list or not faults:
        return True
    end = time.monotonic() + 60 * options.minutes if options.minutes is not None else float("inf")
    faults = _in_the_order_of_the_commit(faults) if options.minutes is not None else faults
    try:
        outcomes = _outcomes(
            faults, record, options, end, all_test_files(faults=faults) if tests is None else tests
        )
    except TestsFail as error:
        print(f"The tests fail without any fault, so they prove nothing: {error}")
        return False
    return _print_summary(faults, outcomes)


def _outcomes(faults, record, options, end, tests):
    """Return the outcomes of faults, those of which are None that the time did not allow."""
    last = [record.test(fault) for fault in faults]
    reach = MeasuredReach(tests)
    _check_without_fault(sorted(set(last) - {""}))

    def attempt(fault, test):
        return try_fault(fault, reach, test) if time.monotonic() < end else None

    outcomes = []
    with ThreadPoolExecutor(options.jobs) as pool:
        for fault, outcome in zip(faults, pool.map(attempt, faults, last), strict=True):
            outcomes.append(outcome)
            if outcome is None:
                continue
            mark = "caught    " if outcome.caught else "NOT CAUGHT"
            print(f"{mark}  {outcome.seconds:5.1f} s  {fault.name}  {outcome.why}", flush=True)
            if options.results is not None:
                row = {"fault": fault.name, "caught": outcome.caught, "why": outcome.why}
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            if options.record:
                record.update(fault, outcome.test if outcome.caught else "")
                record.write()
    return outcomes


def _check_without_fault(tests):
    """Run tests without any fault, or raise TestsFail. A test that no longer exists decides nothing."""
    outcome = run_chosen(tests, seconds=100.0) if tests else None
    if outcome is not None and outcome.status not in (0, 5):
        raise TestsFail(outcome.why)


def _in_the_order_of_the_commit(faults):
    """Return faults in an order that each commit draws afresh, so that every one of them is tried one day."""
    commit = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=False).stdout
    return sorted(faults, key=lambda fault: hashlib.sha256(commit + fault.name.encode()).digest())


def _print_summary(faults, outcomes):
    """Print the numbers, and the faults that were not caught. Return True if there are none."""
    tried = [(fault, outcome) for fault, outcome in zip(faults, outcomes, strict=True) if outcome]
    escaped = [(fault, outcome) for fault, outcome in tried if not outcome.caught]
    left = len(faults) - len(tried)
    print(f"\n{len(tried)} faults, {len(tried) - len(escaped)} caught")
    if left:
        print(f"{left} more are stale, but the time was up: run this without --minutes to try them,")
        print("with --record to go on where an earlier run ended, or with --list to see their names")
    print(*(f"NOT CAUGHT: {fault.name}: {outcome.why}" for fault, outcome in escaped), sep="\n")
    return not escaped
