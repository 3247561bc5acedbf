"""npformer bugs: find and repair a bug in code that looks right and mostly trains."""

from npformer.cli.tasks import TaskCommand
from npformer.learn.bugs import BUGS, Specimen
from npformer.learn.tasks import Verdict

EPILOG = """\
npformer bugs list       lists all bugs with their symptoms and your progress
npformer bugs start 3    writes bugs/03_embedding.py and a picture of its loss: find the bug, repair it
npformer bugs check      says whether the bug is gone, and then tells its story
npformer bugs hint       names a tool to use, and gives one more hint with each call"""


class BugCommand(TaskCommand[Specimen]):
    """The command, which tells the story of a bug once it is repaired."""

    def solved_lines(self, task: Specimen, verdict: Verdict, seconds: float) -> list[str]:
        """Return the lines to print when a bug is repaired.

        Args:
            task: The bug.
            verdict: The result of the check.
            seconds: The seconds that the check took.
        """
        return [
            f"The bug of {task.name} is {verdict.message}, in {seconds:.1f} s.\n",
            "\n".join(verdict.story),
            "\nThe others: npformer bugs list",
        ]


COMMAND = BugCommand(BUGS, EPILOG)
add_arguments, run = COMMAND.add_arguments, COMMAND.run
