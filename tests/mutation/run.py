"""Draw mutants of the package, and report those that no test notices.

    python tests/mutation/run.py [--seed S] [--count N] [--changed] [--record] [--results FILE] [--jobs N]

A mutant is killed if a test fails on it that passes without it. Only tests that call the function of the
mutant run, the fastest first, up to the first failure. caught.json remembers which test file killed each
mutant. This file runs first, and with --changed, mutants are left out for which nothing relevant has changed
since (see trials/record.py). The exit status is 1 if a mutant survives that is not declared in equivalent.py.
"""

import argparse
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trials.inside import WRONG_COPY
from trials.record import Record
from trials.trial import ROOT, Outcome, run_tests

from mutation.equivalent import is_equivalent
from mutation.mutant import FOLDERS, all_mutants, sample
from mutation.reach import MeasuredReach, TestsFail

SEEDS = (1, 2, 3)
COUNT = 400  # for each seed
RECORD = Path(__file__).with_name("caught.json")
MORE = (
    "checking/test_gradcheck.py",
    "test_device.py",
    "training/test_optimizer.py",
    "training/test_step.py",
    "training/test_workers.py",
)
NO_TEST = "no test calls it"


def all_test_files():
    """Return the test files, relative to tests/: those of the folders with mutants, and a few more."""
    tests = ROOT / "tests"
    found = (path for folder in FOLDERS for path in sorted((tests / folder).rglob("test_*.py")))
    mirrored = [path.relative_to(tests).as_posix() for path in found]
    return [*MORE, *(name for name in mirrored if not name.endswith("_torch.py"))]


def is_killed(outcome):
    """Return True if the tests ended otherwise than without the mutant: a failure, a crash, or no end."""
    return outcome.status not in (0, 5, WRONG_COPY)  # 5: no test ran


def try_mutant(mutant, reach, last=""):
    """Return the outcome of one mutant.

    Args:
        mutant: The mutant.
        reach: The tests that call each function.
        last: The test file that killed the mutant last time, which runs first, or "".
    """
    if last:
        outcome = run_tests([last], mutant)
        if is_killed(outcome):
            return outcome._replace(test=last)
    chosen = reach.of(mutant)
    if not chosen:
        return Outcome(0, 0.0, NO_TEST, "")
    identifiers, files = zip(*chosen, strict=True)
    outcome = run_tests(list(dict.fromkeys(files)), mutant, chosen=identifiers)
    if is_killed(outcome) and not outcome.test:
        return outcome._replace(test=files[0])  # the package could not be imported, or the test did not end
    return outcome


def check_without_mutant(tests):
    """Run test files without any mutant, or raise TestsFail."""
    outcome = run_tests(sorted(tests)) if tests else None
    if outcome is not None and outcome.status != 0:
        raise TestsFail(outcome.why)


def try_all(mutants, record, options):
    """Try mutants, and print a line for each.

    Args:
        mutants: The mutants.
        record: The record, which the option --record brings up to date.
        options: The options of the command line.

    Returns:
        The survivors.

    Raises:
        TestsFail: If a test fails without any mutant.
    """
    tests = all_test_files()
    last = [record.test(mutant) if record.test(mutant) in tests else "" for mutant in mutants]
    check_without_mutant(set(last) - {""})
    reach, survivors = MeasuredReach(tests), []
    with ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda mutant, test: try_mutant(mutant, reach, test), mutants, last)
        for mutant, outcome in zip(mutants, outcomes, strict=True):
            killed = is_killed(outcome)
            mark = "killed  " if killed else "SURVIVES"
            print(f"{mark}  {outcome.seconds:5.1f} s  {mutant.name}  {outcome.why}", flush=True)
            survivors += [] if killed else [mutant]
            if options.results is not None:
                row = {"mutant": mutant.name, "kind": mutant.operator, "killed": killed, "why": outcome.why}
                with options.results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
            if options.record:
                record.update(mutant, outcome.test if killed else "")
                record.write(all_mutants())
    return survivors


def read_options():
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, action="append", help=f"of the draw; default: {SEEDS}")
    parser.add_argument("--count", type=int, default=COUNT, help=f"mutants for each seed (default {COUNT})")
    parser.add_argument("--changed", action="store_true", help="only mutants that caught.json does not hold")
    parser.add_argument("--record", action="store_true", help="store in caught.json what killed each")
    parser.add_argument("--results", type=Path, metavar="FILE", help="append a line of JSON for each mutant")
    parser.add_argument("--list", action="store_true", help="print the mutants and try none")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many at a time (default 2)")
    return parser.parse_args()


def main():
    """Try the mutants of the command line. Return the exit status."""
    options = read_options()
    draws = (sample(all_mutants(), seed, options.count) for seed in options.seed or SEEDS)
    drawn = list(dict.fromkeys(mutant for draw in draws for mutant in draw))
    mutants = [mutant for mutant in drawn if not is_equivalent(mutant)]
    print(f"{len(drawn)} of {len(all_mutants())} mutants, {len(drawn) - len(mutants)} of them equivalent")
    record = Record(RECORD)
    if options.changed:
        mutants = record.changed(mutants, all_test_files())
        print(f"{len(mutants)} are tried: the record holds the others")
    if options.list:
        print(*(f"{mutant.operator:12}  {mutant.name}" for mutant in mutants), sep="\n")
    if options.list or not mutants:
        return 0
    try:
        survivors = try_all(mutants, record, options)
    except TestsFail as error:
        print(f"The tests fail without any mutant, so they prove nothing: {error}")
        return 1
    killed = len(mutants) - len(survivors)
    print(f"\n{len(mutants)} mutants, {killed} killed ({killed / len(mutants):.1%})")
    print(*(f"SURVIVES: {mutant.name}" for mutant in survivors), sep="\n")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
