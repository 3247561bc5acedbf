"""npformer exercise: tasks that grade themselves."""

import argparse
import inspect
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from npformer.commands.tasks import (
    add_task_arguments,
    say,
    show_hints,
    show_not_yet,
    show_printed,
    to_check,
    where,
)
from npformer.course.screen import print_in_pages
from npformer.errors import UserError
from npformer.exercises import EXERCISES, Exercise, Verdict, find
from npformer.exercises.folder import Folder
from npformer.exercises.process import check
from npformer.terminal import console, note

EPILOG = """\
npformer exercise list                     all of them, and how far you are (list 5: those of lesson 5)
npformer exercise start softmax-backward   writes exercises/softmax-backward.py: fill it in with any editor
npformer exercise check                    says what is wrong with it, and where
npformer exercise hint                     a hint, and with each call one more
npformer exercise solution softmax-backward"""

ACTIONS = ("list", "start", "check", "hint", "solution")


def add_arguments(parser) -> None:
    """The arguments of the command."""
    parser.epilog = EPILOG
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("action", nargs="?", default="list", choices=ACTIONS, help="default: list")
    parser.add_argument(
        "name", nargs="?", help="an exercise; check and hint without it take the one you are at"
    )
    add_task_arguments(parser, "exercises")
    parser.add_argument("--png", metavar="FILE", help="check: draw where the result differs")


def run(arguments) -> int:
    """Returns 0, or 1 where a check says not yet."""
    actions: dict[str, Callable] = {
        "list": list_all, "start": start, "check": check_some, "hint": hint, "solution": solution,
    }  # fmt: skip
    return actions[arguments.action](arguments, Folder(Path(arguments.dir)))


def list_all(arguments, folder: Folder) -> int:
    """A table of all exercises, or of one lesson's."""
    shown = _of_lesson(arguments.name)
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("lesson", "name", "title", "state"):
        table.add_column(column, justify="right" if column == "lesson" else "left", no_wrap=True)
    states = {name: folder.state(exercise) for name, exercise in EXERCISES.items()}
    for exercise in shown:
        state = states[exercise.name]
        colour = {"solved": "green", "started": "yellow"}.get(state, "dim")
        table.add_row(str(exercise.lesson), exercise.name, exercise.title, f"[{colour}]{state}[/]")
    solved = sum(states[exercise.name] == "solved" for exercise in shown)
    print_in_pages(console(), table, f"{solved} of {len(shown)} solved. {_next(shown, states)}")
    return 0


def _next(shown: list[Exercise], states: dict[str, str]) -> str:
    """How to go on: with what is begun, else with what is not."""
    begun = [exercise.name for exercise in shown if states[exercise.name] == "started"]
    left = [exercise.name for exercise in shown if states[exercise.name] == "not started"]
    if begun:
        return f"Go on: npformer exercise check {begun[0]}"
    return f"Next: npformer exercise start {left[0]}" if left else "None is left to start here."


def _of_lesson(number: str | None) -> list[Exercise]:
    """The exercises of a lesson, or all. Errors: UserError for a lesson without any."""
    if number is None:
        return list(EXERCISES.values())
    shown = [e for e in EXERCISES.values() if number == str(e.lesson)]
    if not shown:
        lessons = sorted({exercise.lesson for exercise in EXERCISES.values()})
        why = f"lesson {number} has no exercises" if number.isdecimal() else f"{number!r} is no number"
        raise UserError(f"{why}: list takes that of a lesson, from {lessons[0]} to {lessons[-1]}")
    return shown


def start(arguments, folder: Folder) -> int:
    """Write the learner's file."""
    exercise = find(_required(arguments, "start"))
    file = folder.start(exercise)
    say(f"{file} is yours: {exercise.title} (lesson {exercise.lesson}).")
    then = f"npformer exercise check{where(arguments, 'exercises')}"
    say(f"Fill in {' and '.join(exercise.functions)} with any editor. Then: {then}")
    return 0


def check_some(arguments, folder: Folder) -> int:
    """Grade one exercise, or all whose files are there."""
    start = "npformer exercise start softmax-backward"
    exercises, folder = to_check(arguments, folder, find, EXERCISES.values(), start)
    solved = []
    for exercise in exercises:
        began = time.perf_counter()
        verdict = check(exercise.name, folder.file(exercise), arguments.seconds)
        folder.set_solved(exercise, verdict.solved)
        show_verdict(exercise, verdict, time.perf_counter() - began)
        if arguments.png:
            _draw(exercise, verdict, arguments.png)
        solved.append(verdict.solved)
    return 0 if all(solved) else 1


def show_verdict(exercise: Exercise, verdict: Verdict, seconds: float) -> None:
    """What the grader found, in lines."""
    show_printed(verdict)
    if verdict.solved:
        say(f"{exercise.name} is {verdict.says}, in {seconds:.1f} s.")
        say(f"Compare yours with the package's: npformer exercise solution {exercise.name}")
        say(f"The others of its lesson: npformer exercise list {exercise.lesson}")
    else:
        show_not_yet(exercise.name, verdict, f"npformer exercise hint {exercise.name}")


def hint(arguments, folder: Folder) -> int:
    """The hints so far, and one more."""
    name = arguments.name or folder.current()
    if name is None:
        raise UserError("a hint for which exercise? npformer exercise hint NAME")
    exercise = find(name)
    solution = f"That was the last one. The solution: npformer exercise solution {exercise.name}"
    show_hints(exercise, folder, solution)
    return 0


def solution(arguments, folder: Folder) -> int:
    """The package's own functions, with their places."""
    exercise = find(_required(arguments, "solution"))
    for name, function in exercise.solution.items():
        file, line = Path(inspect.getsourcefile(function) or ""), inspect.getsourcelines(function)[1]
        say(f"{name} is npformer's {function.__qualname__}, in {_short(file)}:{line}\n")
        print(textwrap.dedent(inspect.getsource(function)) + "\n")
    return 0


def _short(file: Path) -> Path:
    """From here, where it lies below; else in full."""
    return file.relative_to(Path.cwd()) if file.is_relative_to(Path.cwd()) else file


def _required(arguments, action: str) -> str:
    if not arguments.name:
        raise UserError(f"{action} which exercise? npformer exercise {action} NAME (npformer exercise list)")
    return arguments.name


def _draw(exercise: Exercise, verdict: Verdict, path: str) -> None:
    """The difference as colours, in a file."""
    if verdict.difference is None:
        note("there is no matrix of numbers to draw")
        return
    from npformer import plots  # matplotlib takes a second to load: only who draws should wait

    title = f"{exercise.name}: yours less the right one"
    figure = plots.value_map(
        verdict.difference, xlabel="last axis", ylabel="row", label="difference", title=title
    )
    say(f"Drawn in {plots.save(figure, Path(path))}")
