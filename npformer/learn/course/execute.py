"""Run the cells of a lesson in one namespace, and describe the names that each of them defines."""

import ast
import contextlib
import io
import sys
import traceback
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO, Any, TypeAlias

import numpy as np

from npformer.backend import is_array
from npformer.learn.course.lesson import Cell, Lesson
from npformer.learn.course.pictures import Picture, collecting
from npformer.nn.show import as_text

Namespace: TypeAlias = dict[str, Any]

STOPPED = (129, 143)  # the exit statuses after SIGHUP and SIGTERM, which end the command also within a cell


# ---------------------------------------------------------------------------------------------------------
# Running


@dataclass
class Outcome:
    """The outcome of running a cell."""

    printed: str = ""
    pictures: list[Picture] = field(default_factory=list)
    defined: list[str] = field(default_factory=list)
    error: str = ""  # the exception and the lesson's line that raised it, or ""


class _Tee(io.TextIOBase):
    """A stream that stores what is printed and also writes it to another stream, if there is one."""

    def __init__(self, echo: IO[str] | io.TextIOBase | None) -> None:
        self.stored = io.StringIO()
        self.echo = echo

    def write(self, text: str) -> int:
        if self.echo is not None:
            self.echo.write(text)
        return self.stored.write(text)

    def flush(self) -> None:
        # the garbage collector may flush this stream after the other one was closed
        if self.echo is not None and not self.echo.closed:
            self.echo.flush()


class Runner:
    """Runs the cells of one lesson in one namespace."""

    def __init__(self, lesson: Lesson) -> None:
        self.lesson = lesson
        self.namespace: Namespace = {}
        self.restart()

    def restart(self) -> None:
        """Begin again with an empty namespace."""
        # as in a script, so that `if __name__ == "__main__"` runs
        self.namespace = {"__name__": "__main__", "__file__": str(self.lesson.path)}

    def run(self, cell: Cell, echo: IO[str] | io.TextIOBase | None = None) -> Outcome:
        """Run one cell of code and return its outcome, which includes any exception.

        Args:
            cell: The cell.
            echo: A stream to which the output is also written at once.
        """
        outcome, stream, before = Outcome(), _Tee(echo), dict(self.namespace)
        with collecting() as pictures, contextlib.redirect_stdout(stream):
            outcome.error = self._guarded(lambda: exec(self._compiled(cell), self.namespace))
        outcome.printed = stream.stored.getvalue()
        translations = self.lesson.translations
        outcome.pictures = [
            picture._replace(caption=translations.get(picture.caption, picture.caption))
            for picture in pictures
        ]
        counters = loop_names(cell.text)
        after = {name: value for name, value in self.namespace.items() if name not in counters}
        outcome.defined = defined(before, after)
        return outcome

    def replay(self, step: int) -> str:
        """Run every cell before a step again, silently and in an empty namespace. Return the error, or "".

        Copying the namespace before each cell would be faster, but a copy would break links between objects:
        parameters, for example, are views of one buffer.
        """
        self.restart()
        for earlier in self.lesson.steps[:step]:
            for cell in earlier.cells:
                error = self.run(cell).error
                if error:
                    return error
        return ""

    def evaluate(self, line: str) -> str:
        """Return the value of an expression as text, or the output of a statement, or the error.

        Raises:
            SystemExit: If the line ends Python, as quit() does.
        """
        stream = _Tee(None)

        def work() -> None:
            try:
                code = compile(line, "<your line>", "eval")
            except SyntaxError:
                exec(compile(line, "<your line>", "exec"), self.namespace)
                return
            value = eval(code, self.namespace)
            if value is not None:
                print(value if isinstance(value, str) else repr(value))

        with contextlib.redirect_stdout(stream):
            error = self._guarded(work, may_leave=True)
        return stream.stored.getvalue() + error

    def text_from(self, work: Callable[[], str]) -> str:
        """Return the text that a function returns, or a description of the exception that it raised."""
        texts: list[str] = []
        return self._guarded(lambda: texts.append(work())) or texts[0]

    def _compiled(self, cell: Cell) -> types.CodeType:
        """Compile a cell with the lesson's file and line numbers, for tracebacks and debuggers."""
        tree = ast.increment_lineno(ast.parse(cell.text), cell.line - 1)
        return compile(tree, str(self.lesson.path), "exec")

    def _guarded(self, work: Callable[[], None], *, may_leave: bool = False) -> str:
        """Call a function. Return "", or a description of the exception that it raised."""
        try:
            work()
        except KeyboardInterrupt:
            return "stopped by Ctrl-C"
        except SystemExit as leaving:
            if may_leave or leaving.code in STOPPED:
                raise
            return f"the code tried to end Python (SystemExit {leaving.code!r}), which a lesson ignores"
        except Exception as error:
            return self._describe_error(error)
        return ""

    def _describe_error(self, error: Exception) -> str:
        """Return the exception, the lesson's line that it came from, and the line of the package, if any."""
        text = "".join(traceback.format_exception_only(error)).strip()
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename == str(self.lesson.path)]
        if own:
            text += f"\n  {self.lesson.path.name}, line {own[-1].lineno}: {own[-1].line}"
        last = frames[-1] if frames else None
        if last is not None and last.filename not in (str(self.lesson.path), "<your line>", __file__):
            text += f"\n  {last.filename}, line {last.lineno}, in {last.name}: {last.line}"
        return text


def run_lesson(lesson: Lesson) -> list[tuple[Cell, Outcome | None]]:
    """Run a lesson and return every cell with its outcome, None for prose. It stops after a failed cell."""
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


# ---------------------------------------------------------------------------------------------------------
# Describing the names that a cell defines


def defined(before: Namespace, after: Namespace) -> list[str]:
    """Return a phrase for each name of the lesson that is new or bound to another object, except strings."""
    return [
        describe(name, value)
        for name, value in own(after).items()
        if (name not in before or before[name] is not value) and not isinstance(value, str)
    ]


def own(namespace: Namespace) -> Namespace:
    """Return the names that the lesson defined: without imports and names that begin with _."""
    return {n: value for n, value in namespace.items() if not n.startswith("_") and _made_here(value)}


def bound_names(code: str) -> set[str]:
    """Return the names that some code defines."""
    nodes = list(ast.walk(ast.parse(code)))
    names = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    return names | {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def loop_names(code: str) -> set[str]:
    """Return the loop variables of some code. Their last values are not worth showing."""
    loops = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.For)]
    return {name.id for loop in loops for name in ast.walk(loop.target) if isinstance(name, ast.Name)}


def _made_here(value: Any) -> bool:
    """Return False if a value was imported, or is a figure, which the lesson shows anyway."""
    if isinstance(value, types.ModuleType | types.BuiltinFunctionType | np.ufunc):
        return False
    if type(value).__name__ == "Figure":
        return False
    if isinstance(value, types.FunctionType | type):
        return value.__module__ == "__main__"
    return True


def describe(name: str, value: Any) -> str:
    """Return a name with its shape, its number or its type."""
    if is_array(value):
        dtype = "" if value.dtype == np.float64 else f" {value.dtype}"
        return f"{name} {value.shape}{dtype}"
    if isinstance(value, types.FunctionType):
        return f"{name}()"
    if isinstance(value, bool | int | float | complex | np.generic):
        return f"{name} = {value:.6g}" if isinstance(value, float | np.floating) else f"{name} = {value}"
    if isinstance(value, str):
        return f"{name} = {value!r}" if len(value) <= 30 else f"{name} str"
    if type(value) in (list, tuple, dict, set):
        return f"{name} {type(value).__name__} of {len(value)}"
    return f"{name} {type(value).__name__}"


def in_full(name: str, value: Any) -> str:
    """Return a variable as the command `s` shows it: an array with its numbers, a cache with every array."""
    if is_array(value):
        numbers = np.array2string(
            np.asarray(value), precision=4, suppress_small=True, threshold=120, edgeitems=3
        )
        return f"{describe(name, value)}\n{numbers}"
    if isinstance(value, list | tuple):
        return as_text(value).replace(type(value).__name__, f"{name}: {type(value).__name__}", 1)
    return f"{describe(name, value)}\n{value!r}"[:2000]
