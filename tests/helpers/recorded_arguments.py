"""Arguments that record which of them a command reads, to find options that are ignored."""

from npformer.cli.main import read_command_line
from npformer.cli.options import Arguments


class RecordedArguments(Arguments):
    """The arguments of a command, and the names of those that were read.

    A read by a rule does not count: the rules have been checked before a command gets its arguments.
    """

    def __init__(self, arguments):
        super().__init__(**vars(arguments))
        object.__setattr__(self, "_read", set())

    def __getattribute__(self, name):
        if not name.startswith("_"):
            object.__getattribute__(self, "_read").add(name)
        return super().__getattribute__(name)

    @property
    def _ignored(self):
        return sorted(self.given - self._read)


def run_recorded(argv):
    """Run a command line. Return its exit status and the names of the given arguments that were not read."""
    command, arguments = read_command_line(argv)
    recorded = RecordedArguments(arguments)
    status = command.run(recorded)
    return status, recorded._ignored
