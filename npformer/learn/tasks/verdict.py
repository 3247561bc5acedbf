"""The result of judging a learner's file, and the description of an exception that its code raised.

An observation is a dict of what the learner's code computed. If the code raised an exception, the observation
has a sentence about it under "error", and likely causes under "clues".
"""

import traceback
from dataclasses import dataclass, field
from typing import Any

from npformer.errors import UserError
from npformer.language import say
from npformer.learn.tasks.answer import DamagedAnswer


@dataclass
class Verdict:
    """The result of a check. It says that the task is solved, or describes the first mistake."""

    solved: bool
    message: str  # one sentence
    clues: list[str] = field(default_factory=list)  # likely causes of the mistake
    picture: str = ""  # the entries that differ, as a grid of characters
    difference: list[list[float]] | None = None  # the same entries as numbers: one matrix, found - right
    printed: str = ""  # the beginning of the output of the learner's code
    story: list[str] = field(default_factory=list)  # lines to print once the task is solved

    def as_observation(self) -> dict[str, Any]:
        """Return the observation of a mistake that the child process saw."""
        return {"error": self.message, "clues": self.clues}


class Fault(Exception):
    """A mistake in the learner's code. Its `verdict` describes the mistake.

    Args:
        message: One sentence that says what is wrong.
        clues: Likely causes. Empty strings are left out.
        picture: The entries that differ, as a grid of characters.
        difference: The same entries as numbers.
    """

    def __init__(
        self,
        message: str,
        clues: tuple[str, ...] = (),
        picture: str = "",
        difference: list[list[float]] | None = None,
    ) -> None:
        super().__init__(message)
        self.verdict = Verdict(False, message, [clue for clue in clues if clue], picture, difference)


def observed_error(observation: Any) -> Verdict | None:
    """Return the mistake that the child process saw, or None.

    Raises:
        DamagedAnswer: If this is not an observation.
    """
    match observation:
        case {"error": str(message), "clues": [*clues]}:
            return Verdict(False, " ".join(message.splitlines()), [str(clue) for clue in clues])
        case dict():
            return None
    raise DamagedAnswer("no observation")


def describe_error(error: BaseException, file: str) -> str:
    """Return one sentence that names the exception and the line of the learner's file."""
    lines = error_lines(error, file)
    if isinstance(error, UserError) and not lines:
        return str(error)
    line = error.lineno if isinstance(error, SyntaxError) else next(iter(lines), None)
    where = say("line {line} raised", line=line) if line else say("your code raised")
    message = error.msg if isinstance(error, SyntaxError) else str(error)
    first = message.splitlines()[0] if message else ""
    return f"{where} {type(error).__name__}" + (f": {first}" if first else "")


def error_lines(error: BaseException, file: str) -> list[int | None]:
    """Return the lines of the learner's file in the error's traceback, the innermost first."""
    frames = traceback.extract_tb(error.__traceback__)
    return [frame.lineno for frame in frames[::-1] if frame.filename == file]
