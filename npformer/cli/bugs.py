"""npformer bugs: find and repair a bug in code that looks correct and mostly trains."""

from npformer.cli.tasks import RULES, TaskCommand
from npformer.language import say
from npformer.learn.bugs import BUGS, Specimen
from npformer.learn.tasks import Verdict

EPILOG = """\
npformer bugs list       lists all bugs with their symptoms and your progress
npformer bugs start 3    writes bugs/03_embedding.py, whose bug you repair, and a figure of its loss
npformer bugs check      tests your repair, and explains the bug if the repair is correct
npformer bugs hint       prints a hint, and one more hint with each call"""

__all__ = ["RULES", "add_arguments", "run"]


class BugCommand(TaskCommand[Specimen]):
    """The command, which explains a bug once it is repaired."""

    def solved_lines(self, task: Specimen, verdict: Verdict, seconds: float, option: str) -> list[str]:
        """Return the lines to print when a bug is repaired.

        Args:
            task: The bug.
            verdict: The result of the check.
            seconds: The seconds that the check took.
            option: The option that names the folder in commands, or "".
        """
        return [
            say(
                "The bug of {name} is {repaired}, in {seconds:.1f} s.\n",
                name=task.name,
                repaired=verdict.message,
                seconds=seconds,
            ),
            "\n".join(verdict.story),
            "\n" + say("To list the other bugs, run npformer bugs list{option}", option=option),
        ]


COMMAND = BugCommand(BUGS)
add_arguments, run = COMMAND.add_arguments, COMMAND.run
