"""Judge a repair: run every trial on the learner's code, train it, and return the story of the bug.

`observe` runs in the child process and yields what the learner's code computes. `judge` runs in the parent
process, on these observations.
"""

import ast
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.cells import set_cell_size

from npformer.errors import UserError
from npformer.language import BUGS, GRADER, later, phrase, say
from npformer.learn.bugs.picture import two_lines
from npformer.learn.bugs.specimen import Names, Run, Specimen, Trial, fill
from npformer.learn.tasks.answer import DamagedAnswer, transported
from npformer.learn.tasks.verdict import Fault, Verdict, describe_error, observed_error

UNCHANGED = later("the code is unchanged: find the bug, repair it, and check again")
STILL_THERE = later("the bug is still there: {what}")
NEWLY_BROKEN = later("this worked before your change and now fails: {what}")


# ---------------------------------------------------------------------------------------------------------
# In the child process


def observe(specimen: Specimen, namespace: dict[str, Any], file: str = "") -> Iterator[dict[str, Any]]:
    """Run the trials up to the first exception, then the training, and yield an observation of each.

    Args:
        specimen: The bug.
        namespace: The names that the learner's file defined.
        file: The path of that file. Messages about exceptions name its lines.
    """
    missing = [name for name in specimen.names() if not callable(namespace.get(name))]
    if missing:
        text = say("there is no {name} in your file: keep the names of the original file", name=missing[0])
        yield {"unusable": text}
        return
    own = Names(**namespace)
    for trial in specimen.trials:
        observation = _observe_trial(trial, own, file)
        yield observation
        if "error" in observation:
            return

    def train() -> dict[str, Any]:
        losses, facts = specimen.train(own)
        return {"losses": [float(loss) for loss in losses], "facts": dict(facts)}

    yield _observed(train, describe_error, file)


def _observe_trial(trial: Trial, own: Names, file: str) -> dict[str, Any]:
    return _observed(lambda: transported(trial.observe(own)), _describe, file)


def _observed(
    work: Callable[[], Any], describe: Callable[[Exception, str], str], file: str
) -> dict[str, Any]:
    """Return the result of some work, under "result", or the exception that the code raised."""
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        try:
            return {"result": work()}
        except Exception as error:  # the learner's code may raise anything
            return Verdict(False, describe(error, file)).as_observation()


# ---------------------------------------------------------------------------------------------------------
# In the parent process


def judge(specimen: Specimen, observations: Sequence[Any], file: str = "") -> Verdict | None:
    """Judge the trials up to the first that fails. If all pass, judge the training.

    Args:
        specimen: The bug.
        observations: An observation of each trial and one of the training, from `observe`.
        file: The path of the learner's file. Messages about exceptions name its lines.

    Returns:
        The verdict: the first mistake, or the story of the bug if the code passes. None if there is no
        mistake, and observations are missing.

    Raises:
        DamagedAnswer: If an observation does not have the form that `observe` gives it.
    """
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        verdict = _judge(specimen, observations, file)
    if verdict is not None and not verdict.solved and unchanged(specimen, Path(file)):
        return Verdict(False, phrase(UNCHANGED, GRADER))
    return verdict


def _judge(specimen: Specimen, observations: Sequence[Any], file: str) -> Verdict | None:
    buggy, repaired = specimen.buggy(), specimen.repaired()
    n_trials = len(specimen.trials)
    for trial, observation in zip(specimen.trials, observations, strict=False):
        failed = _failure_in(trial, observation, repaired, file)
        if failed:
            kind = NEWLY_BROKEN if failure(trial, buggy, repaired) is None else STILL_THERE
            return Verdict(False, phrase(kind, GRADER, what=failed.message), failed.clues)
    if len(observations) <= n_trials:
        return None
    error = observed_error(observations[n_trials])
    if error:
        return Verdict(False, say("the tests pass, but training fails: {what}", what=error.message))
    bug = specimen.train(buggy)
    run = _run_in(observations[n_trials], bug)
    if not np.isfinite(run.losses).all():
        return Verdict(False, say("the tests pass, but the loss becomes NaN or infinite in training"))
    story = tell(specimen, bug, run, buggy, repaired)
    return Verdict(True, say("repaired: {count} tests passed", count=n_trials), story=story)


def unchanged(specimen: Specimen, file: Path) -> bool:
    """Return whether the learner's file still holds the program with the bug."""
    try:
        found, begun = ast.parse(file.read_bytes()), ast.parse(specimen.file_text())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    # without the docstring, which may be in another language
    return [ast.dump(node) for node in found.body[1:]] == [ast.dump(node) for node in begun.body[1:]]


def failure(trial: Trial, own: Names, repaired: Names) -> Verdict | None:
    """Return the mistake that a trial finds in code that runs in this process, or None.

    Args:
        trial: The trial.
        own: The names that the code defines.
        repaired: The names that the repaired code defines.
    """
    return _failure_in(trial, _observe_trial(trial, own, ""), repaired, "")


def _failure_in(trial: Trial, observation: Any, repaired: Names, file: str) -> Verdict | None:
    """Return the mistake that an observation of a trial shows, or None."""
    error = observed_error(observation)
    if error:
        return error
    if "result" not in observation:
        raise DamagedAnswer("no result")
    try:
        trial.judge(observation["result"], repaired)
    except Fault as fault:
        return fault.verdict
    except DamagedAnswer:
        raise
    except Exception as raised:  # the learner's results may be anything
        return Verdict(False, _describe(raised, file))
    return None


def _run_in(observation: Any, bug: Run) -> Run:
    """Return the training that was observed, whose numbers have the types of those of the bug's training."""
    match observation:
        case {"result": {"losses": list(losses), "facts": dict(facts)}}:
            same_losses = len(losses) == len(bug.losses) and all(isinstance(loss, float) for loss in losses)
            if same_losses and _types(facts) == _types(bug.facts):
                return Run(losses, facts)
    raise DamagedAnswer("no training")


def _types(facts: dict[str, Any]) -> dict[str, bool]:
    """Return, for every fact, whether it is a text."""
    return {
        name: isinstance(fact, str) for name, fact in facts.items() if isinstance(fact, str | float | int)
    }


def _describe(error: Exception, file: str) -> str:
    """Describe an exception that the learner's code raised, or that a trial raised on its results."""
    frames = traceback.extract_tb(error.__traceback__)
    if isinstance(error, UserError) or any(frame.filename == file for frame in frames):
        return describe_error(error, file)
    return say(
        "a result has the wrong type or shape ({kind}: {error})", kind=type(error).__name__, error=error
    )


def tell(specimen: Specimen, bug: Run, right: Run, buggy: Names, repaired: Names) -> list[str]:
    """Return the story in lines: the numbers of both trainings, and the verdict of each trial on the bug.

    Args:
        specimen: The bug.
        bug: The training with the bug.
        right: The training without it.
        buggy: The names that the code with the bug defines.
        repaired: The names that the repaired code defines.
    """
    lines = [fill(specimen.story, bug, right), "", *two_lines(bug, right, say("repaired")), ""]
    lines.append(say("The tests, and whether each of them finds the bug:"))
    passes, finds = say("passes with the bug"), say("finds the bug")
    for trial in specimen.trials:
        verdict = passes if failure(trial, buggy, repaired) is None else finds
        lines.append(f"  {set_cell_size(verdict, 19)}  {phrase(trial.label, BUGS)}")
    return [*lines, "", say("One possible repair, to compare with yours:"), specimen.repair.strip("\n")]
