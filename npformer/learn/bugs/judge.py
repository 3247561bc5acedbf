"""Judge a repair: run every trial on the learner's code, train it, and return the story of the bug."""

import ast
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from npformer.errors import UserError
from npformer.learn.bugs.picture import two_lines
from npformer.learn.bugs.specimen import Names, Run, Specimen, Trial
from npformer.learn.tasks.verdict import Fault, Verdict, describe_error

UNCHANGED = "the code is unchanged: find the bug, repair it, and check again"
STILL_THERE = "the bug is still there"
NEWLY_BROKEN = "this worked before your change and now fails"


def judge(specimen: Specimen, namespace: dict[str, Any], file: str = "") -> Verdict:
    """Run the trials until one fails. If all pass, train the code.

    Args:
        specimen: The bug.
        namespace: The names that the learner's file defined.
        file: The path of that file. Messages about exceptions name its lines.

    Returns:
        The verdict: the first mistake, or the story of the bug if the code passes.
    """
    verdict = _judge(specimen, namespace, file)
    if not verdict.solved and unchanged(specimen, Path(file)):
        return Verdict(False, UNCHANGED)
    return verdict


def _judge(specimen: Specimen, namespace: dict[str, Any], file: str) -> Verdict:
    missing = [name for name in specimen.names() if not callable(namespace.get(name))]
    if missing:
        return Verdict(False, f"there is no {missing[0]} in your file: keep the names of the original file")
    own, buggy = Names(**namespace), specimen.buggy()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for trial in specimen.trials:
            failed = failure(trial, own, file)
            if failed:
                kind = NEWLY_BROKEN if failure(trial, buggy) is None else STILL_THERE
                return Verdict(False, f"{kind}: {failed.message}", failed.clues)
        try:
            run = specimen.train(own)
        except Exception as error:  # the learner's code may raise anything
            return Verdict(False, f"the trials pass, but training fails: {describe_error(error, file)}")
        if not np.isfinite(run.losses).all():
            return Verdict(False, "the trials pass, but the loss becomes NaN or infinite in training")
        story = tell(specimen, specimen.train(buggy), run, buggy)
    return Verdict(True, f"gone: {len(specimen.trials)} trials passed", story=story)


def unchanged(specimen: Specimen, file: Path) -> bool:
    """Return whether the learner's file still holds the program with the bug."""
    try:
        return ast.dump(ast.parse(file.read_bytes())) == ast.dump(ast.parse(specimen.file_text()))
    except (OSError, SyntaxError, ValueError):
        return False


def failure(trial: Trial, own: Names, file: str = "") -> Verdict | None:
    """Return the mistake that a trial finds in the code, or None.

    Args:
        trial: The trial.
        own: The names that the code defines.
        file: The path of the learner's file.
    """
    try:
        trial.run(own)
    except Fault as fault:
        return fault.verdict
    except Exception as error:  # the learner's code may raise anything
        return Verdict(False, _describe(error, file))
    return None


def _describe(error: Exception, file: str) -> str:
    """Describe an exception that the learner's code raised, or that a trial raised on its results."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, UserError) or any(frame.filename == file for frame in frames):
        return describe_error(error, file)
    return f"a result has the wrong type or shape ({type(error).__name__}: {error})"


def tell(specimen: Specimen, bug: Run, right: Run, buggy: Names) -> list[str]:
    """Return the story in lines: the numbers of both trainings, and the verdict of each trial on the bug.

    Args:
        specimen: The bug.
        bug: The training with the bug.
        right: The training without it.
        buggy: The names that the code with the bug defines.
    """
    lines = [fill(specimen.story, bug, right), "", *two_lines(bug, right, "yours"), ""]
    lines.append("Which checks find the bug, and which do not:")
    for trial in specimen.trials:
        verdict = "passes with the bug" if failure(trial, buggy) is None else "finds the bug"
        lines.append(f"  {verdict:<19}  {trial.label}")
    return [*lines, "", "One possible repair, to compare with yours:", specimen.repair.strip("\n")]


def fill(text: str, bug: Run, right: Run) -> str:
    """Return the text with the numbers of both trainings in it.

    Args:
        text: A symptom or a story, with fields such as {bug[last]:.2f}.
        bug: The training with the bug.
        right: The training without it.
    """
    return " ".join(text.split()).format(bug=bug.numbers(), right=right.numbers())
