"""Commands that run in this process, and what they print."""

import shlex

from npformer.cli.main import main


def said(capsys, line, *more, status=0):
    """Run a command line, which must end with a status. Return its standard output.

    Args:
        capsys: The fixture of pytest.
        line: The line without "npformer", with quotes as in a shell.
        more: More arguments.
        status: The status.
    """
    found = main([*shlex.split(line), *map(str, more)])
    shown = capsys.readouterr()
    assert found == status, shown
    return shown.out


def refused(capsys, line, *more):
    """Run a command line that must fail. Return its message, which is one sentence on standard error."""
    assert main([*shlex.split(line), *map(str, more)]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("npformer: ")
    assert shown.err.count("\n") == 1
    return shown.err.removeprefix("npformer: ").rstrip("\n")
