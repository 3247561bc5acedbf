"""The progress bar of translation. It is apart from that of training, which translation does not load."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn


class TranslationBar:
    """A progress bar on standard error, if that is a terminal. It hides while other text is printed.

    Args:
        total: The number of lines or, if `advance` is given sizes, of bytes; None if it is not known.
        shown: False shows no bar.
    """

    def __init__(self, total: int | None = None, *, shown: bool = True) -> None:
        columns = (
            TextColumn("translating"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[lines]:,} lines"),
            TimeRemainingColumn(compact=True),
        )
        self._progress = Progress(
            *columns,
            console=Console(stderr=True),
            transient=True,
            disable=not (shown and sys.stderr.isatty()),
        )
        self._task = self._progress.add_task("", total=total, lines=0)
        self._lines = 0

    def __enter__(self) -> "TranslationBar":
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def advance(self, lines: int, size: int | None = None) -> None:
        """Count lines that were translated, and their size in bytes if that is what the total counts."""
        self._lines += lines
        self._progress.update(self._task, advance=lines if size is None else size, lines=self._lines)

    @contextmanager
    def hidden(self) -> Iterator[None]:
        """Remove the bar while other text is printed to the terminal."""
        self._progress.stop()
        try:
            yield
        finally:
            self._progress.start()
