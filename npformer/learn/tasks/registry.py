"""A registry of tasks of one kind, which finds, introduces and judges them."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from npformer.errors import Registry, UserError
from npformer.learn.tasks.verdict import Verdict


class Task(Protocol):
    """A task for the learner: an exercise or a bug."""

    @property
    def name(self) -> str:
        """The name under which the task is registered."""

    @property
    def number(self) -> int:
        """The number in the first column of the list: an exercise's chapter, or a bug's own number."""

    @property
    def title(self) -> str:
        """One line for the list."""

    @property
    def argument(self) -> str:
        """The name or the number that commands shown to the learner use for the task."""

    @property
    def stem(self) -> str:
        """The name of the learner's file without its ending .py."""

    @property
    def hints(self) -> tuple[str, ...]:
        """The hints, from the first to the last."""

    def file_text(self) -> str:
        """Return the text of the learner's file as it is when the task is started."""


T = TypeVar("T", bound=Task)


class TaskRegistry(Registry[T]):
    """All tasks of one kind, with the settings and functions that differ between the kinds.

    Args:
        kind: The noun for error messages: "exercise" or "bug".
        command: The command that starts and checks the tasks, such as "npformer exercise".
        folder: The default folder of the learner's files.
        source: The place from which the child process imports this registry: "MODULE:NAME".
        columns: The headings of a task's number, name and title in the list.
        observe: observe(task, namespace, file) runs the names that the learner's file defined, and yields
            what they compute. It runs in the child process.
        judge: judge(task, observations, file) returns the verdict on what was observed, or None if nothing is
            wrong as far as the observations go, and some are missing. It runs in the parent process.
        introduce: introduce(task, file) yields the paragraphs to print once the file has been written.
        numbered: True if `number` identifies a task, so that `find` accepts it.
    """

    def __init__(
        self,
        kind: str,
        *,
        command: str,
        folder: str,
        source: str,
        columns: tuple[str, str, str],
        observe: Callable[[T, dict[str, Any], str], Iterator[Any]],
        judge: Callable[[T, Sequence[Any], str], Verdict | None],
        introduce: Callable[[T, Path], Iterator[str]],
        numbered: bool = False,
    ) -> None:
        super().__init__(kind, listing=f"{command} list")
        self.command = command
        self.folder = folder
        self.source = source
        self.columns = columns
        self.observe = observe
        self.judge = judge
        self.introduce = introduce
        self.numbered = numbered

    def find(self, name: str) -> T:
        """Return the task with this name, this file name (without .py) or, for numbered tasks, this number.

        Raises:
            UserError: If there is none. The message suggests the most similar name.
        """
        asked = _normalized(name)
        for task in self:
            names = {_normalized(task.name), _normalized(task.stem)}
            if asked in names or (self.numbered and asked == str(task.number)):
                return task
        if self.numbered and re.fullmatch(r"-?\d+", asked):
            raise UserError(f"there is no {self.kind} {name}: they have the numbers 1 to {len(self)}")
        return super().find(name)

    def start_command(self, task: T) -> str:
        """Return the command that writes the task's file."""
        return f"{self.command} start {task.argument}"


def _normalized(name: str) -> str:
    return name.lower().replace("_", "-")
