"""npformer exercise: write a function of the package yourself, and have it graded."""

import inspect
import textwrap
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path

from npformer.cli import tasks
from npformer.cli.options import only_if
from npformer.cli.output import print_lines
from npformer.cli.tasks import TaskCommand, print_text
from npformer.errors import UserError
from npformer.language import say
from npformer.learn.capstone.parts import own_parts, part_of, progress
from npformer.learn.exercises import EXERCISES, Exercise
from npformer.learn.tasks import Folder, Verdict

EPILOG = """\
npformer exercise list                     lists all exercises with your progress (list 5: of chapter 5)
npformer exercise start softmax-backward   writes exercises/softmax-backward.py, which you complete
npformer exercise check                    grades your solution and explains mistakes
npformer exercise hint                     prints a hint, and one more hint with each call
npformer exercise solution NAME            prints the solution, which is npformer's own code"""

RULES = (
    *tasks.RULES,
    only_if(
        "--dir",
        lambda arguments: arguments.action != "solution",
        "with an action that reads or writes your files",
    ),
)


class ExerciseCommand(TaskCommand[Exercise]):
    """The command with its action `solution`, which prints the package's own functions."""

    @property
    def actions(self) -> dict[str, Callable[[Namespace, Folder], int]]:
        """The actions by name. Each returns the exit status."""
        return super().actions | {"solution": self.show_solution}

    def tasks_to_list(self, name: str | None) -> list[Exercise]:
        """Return the exercises of a chapter, or all exercises.

        Raises:
            UserError: If the chapter has no exercises.
        """
        if name is None:
            return list(self.tasks)
        shown = [exercise for exercise in self.tasks if name == str(exercise.chapter)]
        if not shown:
            chapters = sorted({exercise.chapter for exercise in self.tasks})
            why = f"chapter {name} has no exercises" if name.isdecimal() else f"{name!r} is not a chapter"
            raise UserError(
                f"{why}: list takes the number of a chapter, from {chapters[0]} to {chapters[-1]}"
            )
        return shown

    def solved_lines(self, task: Exercise, verdict: Verdict, seconds: float, option: str) -> list[str]:
        """Return the lines to print when an exercise is solved.

        Args:
            task: The exercise.
            verdict: The result of the check.
            seconds: The seconds that the check took.
            option: The option that names the folder in commands, or "".
        """
        return [
            say(
                "{name} is {solved}, in {seconds:.1f} s.",
                name=task.name,
                solved=verdict.message,
                seconds=seconds,
            ),
            say(
                "To compare it with the code of the package, run npformer exercise solution {name}",
                name=task.name,
            ),
            say(
                "To list the other exercises of the chapter, run npformer exercise list {chapter}{option}",
                chapter=task.chapter,
                option=option,
            ),
        ]

    def after_check(self, arguments: Namespace, folder: Folder, solved: list[Exercise]) -> None:
        """Say which parts of `npformer build` are complete by the solved exercises.

        Args:
            arguments: The arguments of the command line.
            folder: The folder of the learner's files.
            solved: The exercises that this check found solved.
        """
        parts = own_parts(folder)
        finished = [part.name for part in parts if any(part is part_of(exercise) for exercise in solved)]
        if finished:
            print_text(progress(finished, len(parts)))
            print_text(say("To see your Transformer, run npformer build{option}", option=self.option(folder)))

    def last_hint(self, task: Exercise) -> str:
        """Return the line that follows the last hint."""
        return say(
            "That was the last hint. To see the solution, run npformer exercise solution {name}",
            name=task.name,
        )

    def show_solution(self, arguments: Namespace, folder: Folder) -> int:
        """Print the source of the package's own functions, with file and line."""
        exercise = self.tasks.find(self.required_name(arguments))
        for name, function in exercise.solution.items():
            file, line = Path(inspect.getsourcefile(function) or ""), inspect.getsourcelines(function)[1]
            if file.is_relative_to(Path.cwd()):
                file = file.relative_to(Path.cwd())
            print_text(
                say(
                    "{name} is npformer's {function}, in {place}",
                    name=name,
                    function=function.__qualname__,
                    place=f"{file}:{line}\n",
                )
            )
            print_lines(textwrap.dedent(inspect.getsource(function)) + "\n")
        return 0


COMMAND = ExerciseCommand(EXERCISES)
add_arguments, run = COMMAND.add_arguments, COMMAND.run
