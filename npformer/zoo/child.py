"""The process in which a repaired file runs: python -m npformer.zoo.child NAME FILE RESULT SECONDS."""

import sys
from pathlib import Path

from npformer.exercises.child import main, run_file
from npformer.exercises.fault import Verdict
from npformer.zoo import find
from npformer.zoo.judge import judge, unchanged

UNCHANGED = "the code is as it was given: find the bug, repair it, and check again"


def check_file(name: str, file: str) -> Verdict:
    """Run the learner's file and say whether the bug is gone."""
    specimen = find(name)
    verdict = run_file(file, lambda space: judge(specimen, space, file), f"npformer bugs start {name}")
    if not verdict.solved and unchanged(specimen, Path(file)):
        return Verdict(False, UNCHANGED)
    return verdict


if __name__ == "__main__":
    main(check_file, *sys.argv[1:])
