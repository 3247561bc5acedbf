"""Score the grader on solutions that were written without a look at its lists of mistakes, and print counts.

    PYTHONPATH=tests/helpers python tests/score_grader.py development
    PYTHONPATH=tests/helpers python tests/score_grader.py held_out

The solutions themselves are not printed: those of the held-out half stay unopened.
"""

import argparse
import tempfile
from pathlib import Path

from read_measure import HALVES, KINDS, read_measure, scores


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("half", choices=HALVES)
    half = parser.parse_args().half
    with tempfile.TemporaryDirectory() as folder:
        for kind in KINDS:
            counts = scores(read_measure(kind, half), Path(folder))
            print(f"{kind}: {', '.join(f'{name} {count}' for name, count in counts.items())}", flush=True)


if __name__ == "__main__":
    main()
