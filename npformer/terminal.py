"""What the commands print: tables, notes, and the progress bar of a training run."""

import sys
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from npformer.training.events import Event, Started, Stepped, Validated


def console() -> Console:
    """Standard output; where it is no terminal, wide enough that no table is cut."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120)


def note(text: str) -> None:
    """A line beside the output proper: on standard error."""
    print(f"npformer: {text}", file=sys.stderr)


@contextmanager
def training_progress(out: Console):
    """A bar with loss, tokens per second and time left. Yields the callback that training reports to."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]:.3f}  {task.fields[rate]:>6,.0f} tokens/s"),
        TimeRemainingColumn(compact=True),
    )
    progress = Progress(*columns, console=out)
    task = progress.add_task("training", loss=float("nan"), rate=0.0)

    def report(event: Event) -> None:
        if isinstance(event, Started):  # not before: a run that is refused shows no bar
            progress.update(task, total=event.steps, completed=event.step)
            progress.start()
        elif isinstance(event, Stepped):
            progress.update(task, completed=event.step, loss=event.loss, rate=event.tokens_per_second)
        elif isinstance(event, Validated):
            best = "  (best so far)" if event.best else ""
            progress.console.print(
                f"step {event.step:>6}  validation loss {event.loss:.4f}  "
                f"right words {event.accuracy:.1%}{best}"
            )

    try:
        yield report
    finally:
        if progress.live.is_started:
            progress.stop()
