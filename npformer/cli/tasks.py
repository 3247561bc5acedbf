"""The actions that npformer exercise and npformer bugs share: list, start, check and hint."""

import re
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Generic

from npformer.cli.options import SECONDS as SECONDS_TYPE
from npformer.cli.options import add, add_language, excludes, only_if
from npformer.cli.output import console, note
from npformer.cli.own_command import as_typed
from npformer.cli.pictures import require_picture
from npformer.errors import UserError
from npformer.escaping import printable
from npformer.language import GRADER, phrase, say
from npformer.learn.console import plain_table, styled
from npformer.learn.course.terminal import print_in_pages
from npformer.learn.tasks import Folder, TaskRegistry, Verdict, find_folder, option_for
from npformer.learn.tasks.process import SECONDS, check
from npformer.learn.tasks.registry import T

PRINTED_LINES = 20  # of the learner's output, the first ones


RULES = (
    only_if(
        "--all --seconds --png",
        lambda arguments: arguments.action == "check",
        "with the action check",
    ),
    excludes("--all", "name", "it checks every file of the folder"),
    only_if(
        "--dir",
        lambda arguments: not (arguments.name or "").endswith(".py"),
        "without the path of a file, which names its folder",
    ),
)


class TaskCommand(Generic[T]):
    """A command for tasks that a learner solves in a file: exercises or bugs.

    A subclass defines the lines that are printed when a task is solved, and may add actions.

    Args:
        tasks: The tasks of the command.
    """

    def __init__(self, tasks: TaskRegistry[T]) -> None:
        self.tasks = tasks

    @property
    def actions(self) -> dict[str, Callable[[Namespace, Folder], int]]:
        """The actions by name. Each returns the exit status."""
        return {
            "list": self.list_tasks,
            "start": self.start_task,
            "check": self.check_tasks,
            "hint": self.show_hint,
        }

    def solved_lines(self, task: T, verdict: Verdict, seconds: float, option: str) -> list[str]:
        """Return the lines to print when a task is solved.

        Args:
            task: The task.
            verdict: The result of the check.
            seconds: The seconds that the check took.
            option: The option that names the folder in commands, or "".
        """
        raise NotImplementedError

    def after_check(self, arguments: Namespace, folder: Folder, solved: list[T]) -> None:
        """Print what follows from a check, after its results. The default prints nothing.

        Args:
            arguments: The arguments of the command.
            folder: The folder of the files.
            solved: The tasks that the check found to be solved.
        """

    def last_hint(self, task: T) -> str:
        """Return the line that follows the last hint."""
        return say("That was the last hint.")

    def tasks_to_list(self, name: str | None) -> list[T]:
        """Return the tasks that `list NAME` shows.

        Raises:
            UserError: If a name was given and the command cannot select by it.
        """
        if name:
            raise UserError(f"list shows all {self.tasks.kind}s: leave out {name}")
        return list(self.tasks)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the arguments of the command."""
        folder, kind = self.tasks.folder, self.tasks.kind
        add(parser, "[action]", f"{', '.join(self.actions)}", self.actions, default="list", metavar="ACTION")
        named = "a number or a name" if self.tasks.numbered else "a name"
        add(parser, "[name]", f"{named}; check and hint take the current {kind} if none is given")
        add(parser, "--dir FOLDER", "the folder of your files", default=folder)
        add(parser, "--all", "with check: check every file of the folder")
        add(parser, "--seconds", "with check: time limit", SECONDS_TYPE, default=SECONDS)
        add(parser, "--png FILE", "with check: draw the difference between your numbers and the correct ones")
        add_language(parser)

    def run(self, arguments: Namespace) -> int:
        """Run the action. Return 0, or 1 if a check found a mistake."""
        folder = Folder(find_folder(arguments.dir))
        status = self.actions[arguments.action](arguments, folder)
        if folder.remark:
            note(folder.remark)
        return status

    def list_tasks(self, arguments: Namespace, folder: Folder) -> int:
        """Print a table of the tasks with the learner's progress."""
        shown = self.tasks_to_list(arguments.name)
        number, *others = (phrase(column, GRADER) for column in self.tasks.columns)
        table = plain_table(f">{number}", *others, say("state"), wrapped=(number, others[-1]))
        states = {task.name: folder.state(task) for task in shown}
        for task in shown:
            state = states[task.name]
            colour = {"solved": "green", "started": "yellow"}.get(state, "dim")
            shown_state = phrase(state, GRADER)
            table.add_row(str(task.number), task.name, task.title, styled((shown_state, colour)))
        solved = sum(state == "solved" for state in states.values())
        print_in_pages(
            console(),
            table,
            say(
                "{solved} of {count} solved. {after}",
                solved=solved,
                count=len(shown),
                after=self._next(shown, states, self.option(folder)),
            ),
        )
        return 0

    def start_task(self, arguments: Namespace, folder: Folder) -> int:
        """Write the learner's file and introduce the task."""
        task = self.tasks.find(self.required_name(arguments))
        for paragraph in self.tasks.introduce(task, folder.start(task)):
            print_text(paragraph)
        print_text(
            say("Then check it: {command}", command=f"{self.tasks.command} check{self.option(folder)}")
        )
        return 0

    def check_tasks(self, arguments: Namespace, folder: Folder) -> int:
        """Judge the file of one task, or every file of the folder. Return 0 if all are solved, or else 1."""
        tasks, folder = self._tasks_to_check(arguments, folder)
        if arguments.png and len(tasks) > 1:
            raise UserError(f"--png draws one picture, and {len(tasks)} files are checked: name one of them")
        if arguments.png:
            require_picture(Path(arguments.png))
        solved = []
        for task in tasks:
            start = time.perf_counter()
            verdict = check(self.tasks, task, folder.file(task), arguments.seconds)
            folder.set_solved(task, verdict.solved)
            self._show_verdict(task, verdict, time.perf_counter() - start, self.option(folder))
            if arguments.png:
                _draw_difference(task.name, verdict, arguments.png)
            if verdict.solved:
                solved.append(task)
        self.after_check(arguments, folder, solved)
        return 0 if len(solved) == len(tasks) else 1

    def show_hint(self, arguments: Namespace, folder: Folder) -> int:
        """Print the hints that were shown before, and one more."""
        name = arguments.name or folder.current() or self.required_name(arguments)
        task = self.tasks.find(name)
        shown = folder.next_hint(task)
        for number, text in enumerate(task.hints[:shown], 1):
            print_text(
                say("Hint {number} of {count}: {text}", number=number, count=len(task.hints), text=text)
            )
        more = say("For one more hint, run the same command again.")
        print_text(self.last_hint(task) if shown == len(task.hints) else more)
        return 0

    def required_name(self, arguments: Namespace) -> str:
        """Return the name that was given.

        Raises:
            UserError: If there is none.
        """
        if arguments.name:
            return str(arguments.name)
        command, example = self.tasks.command, "1" if self.tasks.numbered else "NAME"
        raise UserError(
            f"{arguments.action} needs the name of a task: {command} {arguments.action} {example} "
            f"({command} list prints all names)"
        )

    def option(self, folder: Folder) -> str:
        """Return the option by which a command finds the folder, or "" for that which it finds itself."""
        return option_for(folder.path, self.tasks.folder)

    def _next(self, shown: list[T], states: dict[str, str], option: str) -> str:
        """Return one line about the task to do next: one that was started, or else a new one."""
        for state in ("started", "not started"):
            for task in shown:
                command = f"{self.tasks.command} check {task.argument}{option}"
                if states[task.name] == state == "started":
                    return as_typed(say("To continue: {command}", command=command))
                if states[task.name] == state:
                    return as_typed(say("Next: {command}", command=self.tasks.start_command(task) + option))
        return say("All of them are solved.")

    def _tasks_to_check(self, arguments: Namespace, folder: Folder) -> tuple[list[T], Folder]:
        """Return the tasks to check, with the folder of their files.

        It is the task whose name or file is given, or else the current one, or else all that are started.

        Raises:
            UserError: If the name is unknown, or if nothing is started.
        """
        name = arguments.name
        if name and name.endswith(".py"):  # the file itself, wherever it is
            given, task = Path(name), self.tasks.find(Path(name).stem)
            folder = Folder(given.parent)
            file = folder.file(task)
            if given.exists() and not (file.exists() and file.samefile(given)):
                raise UserError(
                    f"{name} does not have the name of the file of {task.name}: rename it to {file.name}"
                )
            return [task], folder
        if name:
            return [self.tasks.find(name)], folder
        started = [task for task in self.tasks if folder.file(task).exists()]
        if not started:
            first = next(iter(self.tasks))
            raise UserError(
                f"nothing is started in {folder.path}: begin with {self.tasks.start_command(first)}"
                f"{self.option(folder)}"
            )
        current = [task for task in started if task.stem == folder.current()]
        return started if arguments.all or not current else current, folder

    def _show_verdict(self, task: T, verdict: Verdict, seconds: float, option: str) -> None:
        """Print what the check found."""
        print_output(verdict)
        if verdict.solved:
            for line in self.solved_lines(task, verdict, seconds, option):
                print_text(line)
            return
        print_text(say("{name}: not correct yet.", name=task.name))
        for text in (verdict.message, *verdict.clues):
            print_text(f"- {text}")
        if verdict.picture:
            print_text(verdict.picture)
        hint = f"{self.tasks.command} hint {task.argument}{option}"
        print_text(say("For a hint, run {command}", command=hint))


def print_output(verdict: Verdict) -> None:
    """Print the first lines of what the learner's code printed."""
    if verdict.printed:
        print_text(say("Your code printed:"))
        print_text("\n".join("  " + line for line in verdict.printed.splitlines()[:PRINTED_LINES]))


def _draw_difference(name: str, verdict: Verdict, path: str) -> None:
    """Draw the difference between the learner's numbers and the correct ones, into a file."""
    if verdict.difference is None:
        note(say("there is no matrix of numbers to draw"))
        return
    from npformer import plots  # matplotlib takes a second to load

    figure = plots.value_map(
        verdict.difference,
        xlabel="last axis",
        ylabel="row",
        label="difference",
        title=f"{name}: your result minus the correct result",
    )
    print_text(say("A figure of the difference: {path}", path=printable(plots.save(figure, Path(path)))))


def print_text(text: str) -> None:
    """Print a text, wrapped at the width of the terminal, with command lines as they have to be typed."""
    out, text = console(), as_typed(text)
    longest = max(map(len, re.findall("[!-~]+", text)), default=0)  # Chinese has no spaces
    out.print(text, soft_wrap=longest > out.width)  # which leaves a path that is too long for a line whole
