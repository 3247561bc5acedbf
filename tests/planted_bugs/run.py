"""Plant each bug in a copy of the package, and report whether the tests catch it.

    python tests/planted_bugs/run.py [--only NAME ...] [--changed] [--record] [--minutes M] [--jobs N]

caught.json remembers which test caught each bug: with --changed, those are left out for which nothing
relevant has changed since (see trials/record.py). --record brings it up to date. The exit status is 1 if a
bug is not caught, or can no longer be planted.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from trials.circle import add_options, try_all
from trials.record import Record

from planted_bugs import BUGS, NoLongerApplies

RECORD = Path(__file__).with_name("caught.json")


def main():
    """Try the bugs of the command line. Return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="bugs with one of these in their names")
    add_options(parser)
    options = parser.parse_args()
    bugs = [bug for bug in BUGS if not options.only or any(part in bug.name for part in options.only)]
    if not bugs:
        print("no planted bug has such a name: see --list")
        return 1
    try:
        for bug in bugs:
            bug.changed(bug.source())
    except NoLongerApplies as error:
        print(error)
        return 1
    return 0 if try_all(bugs, Record(RECORD, BUGS), options) else 1


if __name__ == "__main__":
    sys.exit(main())
