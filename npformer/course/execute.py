"""Running the cells of a lesson: one namespace, what a cell printed, drew, defined, and where it failed."""

import ast
import contextlib
import io
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any

from npformer.course.cells import Cell
from npformer.course.describe import defined, loop_names
from npformer.course.library import Lesson
from npformer.course.pictures import Picture, collecting


@dataclass
class Outcome:
    """What came of a cell."""

    printed: str = ""
    pictures: list[Picture] = field(default_factory=list)
    defined: list[str] = field(default_factory=list)
    error: str = ""  # what went wrong, and at which line of the lesson; empty where nothing did


class _Tee(io.TextIOBase):
    """A stream that keeps what is printed, and passes it on at once to another one, if there is one."""

    def __init__(self, on: IO[str] | io.TextIOBase | None):
        self.kept = io.StringIO()
        self.on = on

    def write(self, text: str) -> int:
        if self.on is not None:
            self.on.write(text)
        return self.kept.write(text)

    def flush(self) -> None:
        if self.on is not None:
            self.on.flush()


class Runner:
    """The cells of one lesson, run in one namespace that begins empty."""

    def __init__(self, lesson: Lesson):
        self.lesson = lesson
        self.namespace: dict[str, Any] = {}
        self.restart()

    def restart(self) -> None:
        """Begin anew with an empty namespace."""
        # a lesson that asks for its name is told that of a script, which it is as well
        self.namespace = {"__name__": "__main__", "__file__": str(self.lesson.path)}

    def run(self, cell: Cell, on: IO[str] | io.TextIOBase | None = None) -> Outcome:
        """Run one cell of code; what it prints also goes to `on`, and what it raises into the outcome."""
        outcome, stream, before = Outcome(), _Tee(on), dict(self.namespace)
        with collecting() as pictures, contextlib.redirect_stdout(stream):
            outcome.error = self._guarded(lambda: exec(self._compiled(cell), self.namespace))
        outcome.printed = stream.kept.getvalue()
        outcome.pictures = pictures
        counters = loop_names(cell.text)
        after = {name: value for name, value in self.namespace.items() if name not in counters}
        outcome.defined = defined(before, after)
        return outcome

    def replay(self, step: int) -> str:
        """Run every cell before a step anew, in an empty namespace and silently. Returns the error, if any.

        Copying the namespace before each cell would be quicker, but a copy parts what belongs together:
        parameters are views of one buffer, and a generator goes on where it stands.
        """
        self.restart()
        for earlier in self.lesson.steps[:step]:
            if earlier.code is not None:
                error = self.run(earlier.code).error
                if error:
                    return error
        return ""

    def evaluate(self, line: str) -> str:
        """The value of an expression in the namespace, as text, or what a statement printed, or the error."""
        stream = _Tee(None)

        def work():
            try:
                code = compile(line, "<your line>", "eval")
            except SyntaxError:
                exec(compile(line, "<your line>", "exec"), self.namespace)
                return
            value = eval(code, self.namespace)
            if value is not None:
                print(value if isinstance(value, str) else repr(value))

        with contextlib.redirect_stdout(stream):
            error = self._guarded(work)
        return stream.kept.getvalue() + error

    def _compiled(self, cell: Cell):
        """The code of a cell that knows its file and lines, so that tracebacks and debuggers do."""
        tree = ast.increment_lineno(ast.parse(cell.text), cell.line - 1)
        return compile(tree, str(self.lesson.path), "exec")

    def _guarded(self, work: Callable[[], None]) -> str:
        """Do the work. Returns "" or, in a few lines, what it raised."""
        try:
            work()
        except KeyboardInterrupt:
            return "stopped by Ctrl-C"
        except SystemExit as leaving:
            return f"it wanted to leave Python with {leaving.code!r}, and was kept here"
        except Exception as error:
            return self._told(error)
        return ""

    def _told(self, error: Exception) -> str:
        """The exception, the lesson's line that it came from, and the place in the package, if there."""
        told = "".join(traceback.format_exception_only(error)).strip()
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == str(self.lesson.path)]
        if own:
            told += f"\n  {self.lesson.path.name}, line {own[-1].lineno}: {own[-1].line}"
        last = frames[-1] if frames else None
        if last is not None and last.filename not in (str(self.lesson.path), "<your line>", __file__):
            told += f"\n  {last.filename}, line {last.lineno}, in {last.name}: {last.line}"
        return told


def lesson_runs_through(lesson: Lesson) -> list[tuple[Cell, Outcome | None]]:
    """Every cell with its outcome (None for prose). A cell that fails is the last that is run."""
    runner, rows, failed = Runner(lesson), list[tuple[Cell, Outcome | None]](), False
    for cell in lesson.cells:
        if cell.kind == "prose" or failed:
            rows.append((cell, None))
            continue
        outcome = runner.run(cell)
        failed = bool(outcome.error)
        rows.append((cell, outcome))
    sys.stdout.flush()
    return rows
