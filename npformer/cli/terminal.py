"""Printing for all commands: tables on standard output and notes on standard error."""

import sys

from rich.console import Console


def console(*, quiet: bool = False) -> Console:
    """Return a console on standard output, wide enough for every table if that is no terminal."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120, quiet=quiet)


def note(text: str) -> None:
    """Print a line on standard error, beside the output proper."""
    print(f"npformer: {text}", file=sys.stderr)
