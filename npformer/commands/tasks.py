"""What npformer exercise and npformer bugs share: a learner's folder, verdicts, hints."""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from npformer.errors import UserError
from npformer.exercises import Verdict
from npformer.exercises.folder import Folder, Task
from npformer.exercises.process import SECONDS
from npformer.terminal import console
from npformer.zoo.picture import BARS

AnyTask = TypeVar("AnyTask", bound=Task)


def add_task_arguments(parser, folder: str) -> None:
    """--dir, --all and --seconds."""
    parser.add_argument("--dir", default=folder, metavar="FOLDER", help=f"of your files (default: {folder})")
    parser.add_argument("--all", action="store_true", help="check every file of the folder")
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help=f"check: the time limit (default {SECONDS:g})"
    )


def where(arguments, folder: str) -> str:
    """What a command that is shown needs at its end, so that it finds the folder."""
    return "" if arguments.dir == folder else f" --dir {arguments.dir}"


def to_check(
    arguments, folder: Folder, find: Callable[[str], AnyTask], tasks: Iterable[AnyTask], start: str
) -> tuple[list[AnyTask], Folder]:
    """What `check` is to look at: the task that is named, that of the file, the one at hand, or all started.

    Returns the tasks and the folder where their files are. start is a command that starts one.
    Errors: UserError for an unknown name, where nothing is started, or a time limit of 0.
    """
    if not arguments.seconds > 0:
        raise UserError(f"--seconds is {arguments.seconds:g}: it must be more than 0")
    name = arguments.name
    if name and name.endswith(".py"):  # the file itself, wherever it is
        return [find(Path(name).stem)], Folder(Path(name).parent)
    if name:
        return [find(name)], folder
    there = [task for task in tasks if folder.file(task).exists()]
    if not there:
        raise UserError(f"nothing is started in {folder.path}: {start}, say")
    at_hand = [task for task in there if task.stem == folder.current()]
    return there if arguments.all or not at_hand else at_hand, folder


def show_printed(verdict: Verdict) -> None:
    """What the learner's code printed, its beginning."""
    if verdict.printed:
        say("Your code printed:")
        say("\n".join("  " + line for line in verdict.printed.splitlines()[:20]))


def show_not_yet(name: str, verdict: Verdict, hint: str) -> None:
    """What is wrong, in lines; hint is the command that gives one."""
    say(f"{name}: not yet.")
    say(f"- {verdict.says}")
    for text in verdict.looks_like:
        say(f"- {text}")
    if verdict.picture:
        say(verdict.picture)
    say(f"Stuck? {hint}")


def show_hints(task: Any, folder: Folder, at_the_end: str) -> None:
    """The hints so far and one more; at_the_end is said with the last one."""
    shown = folder.next_hint(task)
    for number, text in enumerate(task.hints[:shown], 1):
        say(f"Hint {number} of {len(task.hints)}: {text}")
    say(at_the_end if shown == len(task.hints) else "Still stuck? The same command gives one more.")


def say(text: str) -> None:
    """Print it as it is, broken at the terminal's width."""
    console().print(showable(text, sys.stdout.encoding or "utf-8"), markup=False)


def showable(text: str, encoding: str) -> str:
    """The text in signs that an output of this encoding has: a bar becomes its height, others a ?."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        heights = {ord(bar): str(height) for height, bar in enumerate(BARS, 1)}
        return text.translate(heights | {ord("·"): "."}).encode(encoding, "replace").decode(encoding)
    return text
