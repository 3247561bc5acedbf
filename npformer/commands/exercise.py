"""npformer exercise: tasks that grade themselves."""

import argparse
import inspect
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

from rich.table import Table

from npformer.errors import UserError
from npformer.exercises import EXERCISES, Exercise, Verdict, find
from npformer.exercises.folder import Folder
from npformer.exercises.process import SECONDS, check
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
    parser.add_argument(
        "--dir", default="exercises", metavar="FOLDER", help="of your files (default: exercises)"
    )
    parser.add_argument("--all", action="store_true", help="check every file of the folder")
    parser.add_argument("--png", metavar="FILE", help="check: draw where the result differs")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"check: the time limit (default {SECONDS:g})"
    )


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
    console().print(table)
    left = [exercise.name for exercise in shown if states[exercise.name] == "not started"]
    say(
        f"{list(states.values()).count('solved')} of {len(states)} solved. "
        + (f"Next: npformer exercise start {left[0]}" if left else "None is left to start here.")
    )
    return 0


def _of_lesson(number: str | None) -> list[Exercise]:
    """The exercises of a lesson, or all. Errors: UserError for a lesson without any."""
    shown = [e for e in EXERCISES.values() if number in (None, str(e.lesson))]
    if not shown:
        lessons = sorted({exercise.lesson for exercise in EXERCISES.values()})
        raise UserError(f"lesson {number} has no exercises: give a number from {lessons[0]} to {lessons[-1]}")
    return shown


def start(arguments, folder: Folder) -> int:
    """Write the learner's file."""
    exercise = find(_required(arguments, "start"))
    file = folder.start(exercise)
    where = "" if arguments.dir == "exercises" else f" --dir {arguments.dir}"
    say(f"{file} is yours: {exercise.title} (lesson {exercise.lesson}).")
    say(f"Fill in {' and '.join(exercise.functions)} with any editor. Then: npformer exercise check{where}")
    return 0


def check_some(arguments, folder: Folder) -> int:
    """Grade one exercise, or all whose files are there."""
    if arguments.seconds <= 0:
        raise UserError(f"--seconds is {arguments.seconds:g}: it must be more than 0")
    if arguments.name and arguments.name.endswith(".py"):  # the file itself, wherever it is
        folder = Folder(Path(arguments.name).parent)
        arguments.name = Path(arguments.name).stem
    solved = []
    for exercise in _chosen(arguments, folder):
        began = time.perf_counter()
        verdict = check(exercise, folder.file(exercise), arguments.seconds)
        folder.set_solved(exercise, verdict.solved)
        show_verdict(exercise, verdict, time.perf_counter() - began)
        if arguments.png:
            _draw(exercise, verdict, arguments.png)
        solved.append(verdict.solved)
    return 0 if all(solved) else 1


def _chosen(arguments, folder: Folder) -> list[Exercise]:
    """The exercise that is named, the one at hand, or all that are started."""
    if arguments.name:
        return [find(arguments.name)]
    current = folder.current()
    if current in EXERCISES and not arguments.all:
        return [EXERCISES[current]]
    there = [exercise for exercise in EXERCISES.values() if folder.file(exercise).exists()]
    if not there:
        raise UserError(
            f"no exercise is started in {folder.path}: npformer exercise start softmax-backward, say"
        )
    return there


def show_verdict(exercise: Exercise, verdict: Verdict, seconds: float) -> None:
    """What the grader found, in lines."""
    if verdict.printed:
        say("Your code printed:")
        say("\n".join("  " + line for line in verdict.printed.splitlines()[:20]))
    if verdict.solved:
        say(f"{exercise.name} is {verdict.says}, in {seconds:.1f} s.")
        say(f"Compare yours with the package's: npformer exercise solution {exercise.name}")
        return
    say(f"{exercise.name}: not yet.")
    say(f"- {verdict.says}")
    for text in verdict.looks_like:
        say(f"- {text}")
    if verdict.picture:
        say(verdict.picture)
    say(f"Stuck? npformer exercise hint {exercise.name}")


def hint(arguments, folder: Folder) -> int:
    """The hints so far, and one more."""
    name = arguments.name or folder.current()
    if name is None:
        raise UserError("a hint for which exercise? npformer exercise hint NAME")
    exercise = find(name)
    shown = folder.next_hint(exercise)
    for number, text in enumerate(exercise.hints[:shown], 1):
        say(f"Hint {number} of {len(exercise.hints)}: {text}")
    if shown == len(exercise.hints):
        say(f"That was the last one. The solution: npformer exercise solution {exercise.name}")
    else:
        say("Still stuck? The same command gives one more.")
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


def say(text: str) -> None:
    """Print it as it is, broken at the terminal's width."""
    console().print(text, markup=False)
