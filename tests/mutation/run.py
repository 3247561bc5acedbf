"""Draw mutants of the package, and report those that no test notices.

    python tests/mutation/run.py [--seed S] [--count N] [--changed] [--record] [--minutes M] [--jobs N]

caught.json remembers which test killed each mutant: with --changed, those are left out for which nothing
relevant has changed since (see trials/record.py). --record brings it up to date. The exit status is 1 if a
mutant survives that is not declared in equivalent.txt.

With --folder, the mutants of other folders are drawn, and only the tests of those folders run. Their record
is the file of --record-file: it shows which tests notice what before any of them is changed.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trials.circle import FOLDERS, add_options, all_test_files, try_all
from trials.record import Record

from mutation.equivalent import is_equivalent
from mutation.mutant import all_mutants, sample

SEEDS = (1, 2, 3)
COUNT = 400  # for each seed
RECORD = Path(__file__).with_name("caught.json")


def main():
    """Try the mutants of the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, action="append", help=f"of the draw; default: {SEEDS}")
    parser.add_argument("--count", type=int, default=COUNT, help=f"mutants for each seed (default {COUNT})")
    parser.add_argument("--folder", nargs="+", metavar="NAME", help="such as data learn/course")
    parser.add_argument(
        "--record-file", type=Path, default=RECORD, metavar="FILE", help="in place of caught.json"
    )
    add_options(parser)
    options = parser.parse_args()
    if options.folder and options.record and options.record_file == RECORD:
        parser.error("give --record-file: caught.json holds the mutants of other folders")
    folders = tuple(options.folder or FOLDERS)
    tests = all_test_files(folders, ()) if options.folder else None
    draws = (sample(all_mutants(folders), seed, options.count) for seed in options.seed or SEEDS)
    drawn = list(dict.fromkeys(mutant for draw in draws for mutant in draw))
    mutants = [mutant for mutant in drawn if not is_equivalent(mutant)]
    print(
        f"{len(drawn)} of {len(all_mutants(folders))} mutants, {len(drawn) - len(mutants)} of them equivalent"
    )
    record = Record(options.record_file, all_mutants(folders))
    return 0 if try_all(mutants, record, options, tests) else 1


if __name__ == "__main__":
    sys.exit(main())
