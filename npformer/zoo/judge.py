"""judge: is the bug gone? Every trial on the learner's code, then a training, and the story."""

import ast
import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from npformer.errors import UserError
from npformer.exercises.fault import Fault, Verdict
from npformer.exercises.grade import describe_error
from npformer.zoo.picture import two_lines
from npformer.zoo.specimen import Names, Run, Specimen, Trial

WHAT_IT_IS = {True: "the bug is still there", False: "this was right before, and no longer is"}


def judge(specimen: Specimen, space: dict[str, Any], file: str = "") -> Verdict:
    """Run the trials up to the first that fails; where none does, train, and tell the story.

    space is what the learner's file defines, file its path.
    """
    missing = [name for name in specimen.names() if not callable(space.get(name))]
    if missing:
        return Verdict(False, f"there is no {missing[0]} in your file: keep its name as it was")
    own, buggy = Names(**space), specimen.buggy()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for trial in specimen.trials:
            fault = failure(trial, own, file)
            if fault:
                was_there = failure(trial, buggy) is not None
                return Verdict(False, f"{WHAT_IT_IS[was_there]}: {fault.says}", fault.looks_like)
        try:
            run = specimen.train(own)
        except Exception as error:  # whatever the learner's code raises
            return Verdict(False, f"the trials pass, and training does not: {describe_error(error, file)}")
        if not np.isfinite(run.losses).all():
            return Verdict(False, "the trials pass, and in training the loss becomes NaN or infinite")
        told = tell(specimen, specimen.train(buggy), run, buggy)
    return Verdict(True, f"gone: {len(specimen.trials)} trials passed", told=told)


def unchanged(specimen: Specimen, file: Path) -> bool:
    """Whether the learner's file holds the same program as the one that was given."""
    try:
        return ast.dump(ast.parse(file.read_bytes())) == ast.dump(ast.parse(specimen.file_text()))
    except (OSError, SyntaxError, ValueError):
        return False


def failure(trial: Trial, own: Names, file: str = "") -> Verdict | None:
    """What a trial finds wrong with the code, or None."""
    try:
        trial.run(own)
    except Fault as fault:
        return fault.verdict
    except Exception as error:  # whatever the learner's code raises
        return Verdict(False, _describe(error, file))
    return None


def _describe(error: Exception, file: str) -> str:
    """The error, with the learner's line; or, where a trial could not take what it was given, so."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, UserError) or any(frame.filename == file for frame in frames):
        return describe_error(error, file)
    return f"something has another type or shape than it had ({type(error).__name__}: {error})"


def tell(specimen: Specimen, bug: Run, right: Run, buggy: Names) -> list[str]:
    """The story in lines, with the numbers of both trainings, and what each trial says of the bug."""
    lines = [fill(specimen.story, bug, right), "", *two_lines(bug, right, "yours"), ""]
    lines.append("What sees it, and what does not:")
    for trial in specimen.trials:
        verdict = "passes with the bug" if failure(trial, buggy) is None else "finds the bug"
        lines.append(f"  {verdict:<19}  {trial.label}")
    return [*lines, "", "One repair, beside yours:", specimen.repair.strip("\n")]


def fill(text: str, bug: Run, right: Run) -> str:
    """The text with the numbers of both trainings in it."""
    return " ".join(text.split()).format(bug=bug.numbers(), right=right.numbers())
