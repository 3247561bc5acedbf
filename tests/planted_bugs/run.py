"""Plant each bug in a copy of the package, and report whether the tests catch it.

    python tests/planted_bugs/run.py [--list] [--only NAME ...] [--changed] [--record] [--jobs N]

caught.json remembers which test file caught each bug: with --changed, those are left out whose source file,
declaration and test file are as they were then (see trials/record.py). --record brings it up to date. The
exit status is 1 if a bug is not caught, or can no longer be planted.
"""

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trials.record import Record
from trials.trial import PASSED, Outcome, run_tests

from planted_bugs import BUGS, NoLongerApplies

RECORD = Path(__file__).with_name("caught.json")

# the first failure ends the run (see inside.py for the order)
TESTS = (
    "checking/test_gradcheck.py",
    "training/test_optimizer.py",
    "nn/test_module.py",
    "functional/test_masks.py",
    "functional/test_heads.py",
    "functional/test_rotary.py",
    "functional/test_softmax.py",
    "nn/attention/test_multi_head_grouped.py",
    "nn/attention/test_kv_cache.py",
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
    "training/test_consistency.py",
    "kernels/test_cpu.py",
    "kernels/test_gpu.py",
    "functional/test_broadcasting.py",
    "kernels/test_random_cases.py",
    "models/test_bert.py",
    "data/test_sentences.py",
    "data/test_monolingual.py",
    "generation/test_fill_in.py",
    "generation/test_bleu_statistics.py",
    "generation/test_invented_words.py",
    "generation/test_fast_state.py",
    "learn/capstone/test_compare.py",
    "learn/capstone/test_training.py",
    "data/test_casing.py",
    "pretrained/test_input_gradients.py",
    "pretrained/test_saliency.py",
    "pretrained/test_loss_check.py",
    "interop/test_mapped_tensors.py",
)


def try_bug(bug, record):
    """Return the outcome of one bug. The test file that caught it last time runs first, alone."""
    words = f"{bug.file} {bug.name}".replace("_", " ").replace("/", " ")
    last = record.test(bug)
    try:
        if last in TESTS:
            outcome = run_tests([last], bug, words=words)
            if outcome.caught:
                return outcome
        return run_tests(TESTS, bug, words=words)
    except NoLongerApplies as error:
        return Outcome(None, 0.0, str(error), "")


def run_all(bugs, jobs, record, is_recording):
    """Try bugs, and print a table with one row for each.

    Args:
        bugs: The bugs.
        jobs: The number of trials at a time.
        record: The record of the bugs that were caught.
        is_recording: True updates the record after each bug.

    Returns:
        True if all bugs were caught.
    """
    start = time.perf_counter()
    width, kinds = max(len(bug.name) for bug in bugs), max(len(bug.kind) for bug in bugs)
    outcomes = []
    with ThreadPoolExecutor(jobs) as pool:
        for bug, outcome in zip(bugs, pool.map(lambda bug: try_bug(bug, record), bugs), strict=True):
            mark = "caught    " if outcome.caught else "NOT CAUGHT"
            row = f"{mark}  {bug.kind:{kinds}}  {bug.name:{width}}  {outcome.seconds:5.1f} s  {outcome.why}"
            print(row, flush=True)
            outcomes.append(outcome)
            if is_recording:
                record.update(bug, outcome.test if outcome.caught else "")
                record.write(BUGS)
    _print_summary(bugs, outcomes, time.perf_counter() - start)
    return all(outcome.caught for outcome in outcomes)


def _print_summary(bugs, outcomes, seconds):
    """Print which test files caught how many bugs, and the bugs that were not caught."""
    files = Counter(outcome.test for outcome in outcomes if outcome.caught)
    by = ", ".join(f"{count} by {file}" for file, count in files.most_common())
    print(f"\n{len(bugs)} planted bugs, {files.total()} caught ({by or 'none'}), {seconds:.0f} s")
    for bug, outcome in zip(bugs, outcomes, strict=True):
        if not outcome.caught:
            print(f"NOT CAUGHT: {bug.name}: {outcome.why}")


def main():
    """Run the bugs of the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the bugs and plant none")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="bugs with one of these in their names")
    parser.add_argument("--changed", action="store_true", help="only bugs that caught.json does not hold")
    parser.add_argument("--record", action="store_true", help="store in caught.json what caught each")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="so many at a time (default 2)")
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if not options.only or any(part in bug.name for part in options.only)]
    if not bugs:
        print("no planted bug has such a name: see --list")
        return 1
    record = Record(RECORD)
    if options.changed:
        named, bugs = len(bugs), record.changed(bugs, TESTS)
        print(f"{len(bugs)} of {named} planted bugs are tried: the record holds the others")
    if options.list:
        for bug in bugs:
            print(f"{bug.kind:15}  {bug.file:26}  {bug.name}")
    if options.list or not bugs:
        return 0
    control = run_tests(TESTS)
    if control.why != PASSED:
        print(f"The tests fail without any bug, so they prove nothing: {control.why}")
        return 1
    print(f"without a bug every test passes ({control.seconds:.1f} s)", flush=True)
    return 0 if run_all(bugs, options.jobs, record, options.record) else 1


if __name__ == "__main__":
    sys.exit(main())
