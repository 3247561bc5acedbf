"""The progress bar of a large model that is read. It appears after a second, so small models show none."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

DELAY = 1.0  # seconds


@contextmanager
def loading_bar(clock: Callable[[], float] = monotonic) -> Iterator[Callable[[int, int], None]]:
    """Show a progress bar on standard error, if that is a terminal and reading takes more than DELAY.

    Args:
        clock: A function that returns the time in seconds.

    Yields:
        The function to call with the bytes that were read and the bytes of all tensors.
    """
    columns = (
        TextColumn("loading"),
        BarColumn(bar_width=24),
        DownloadColumn(),
        TimeRemainingColumn(compact=True),
    )
    bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty())
    task = bar.add_task("", total=None)
    start = clock()

    def report(done: int, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if clock() - start > DELAY:
            bar.start()  # and nothing if it has started

    try:
        yield report
    finally:
        if bar.live.is_started:
            bar.stop()
