"""What the commands print: tables, notes, and the progress bar of a training run."""

import sys
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from npformer.training.events import Averaged, Event, Noted, Scored, Started, Stepped, Validated


def console(*, quiet: bool = False) -> Console:
    """Standard output, or quiet; where it is no terminal, wide enough that no table is cut."""
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120, quiet=quiet)


def note(text: str) -> None:
    """A line beside the output proper: on standard error."""
    print(f"npformer: {text}", file=sys.stderr)


@contextmanager
def training_progress(out: Console):
    """A bar with loss, tokens per second and time left. Yields the callback that training reports to."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=18),
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
        elif line := _line(event):
            progress.console.print(line)

    try:
        yield report
    finally:
        if progress.live.is_started:
            progress.stop()


def _line(event: Event) -> str | None:
    """What stays on the screen of an event, in 80 columns; None for one that leaves nothing."""
    if isinstance(event, Validated):
        best = "  (best so far)" if event.best else ""
        right = f"right words {event.accuracy:.1%}"
        return f"step {event.step:>6}  validation loss {event.loss:.4f}  {right}{best}"
    if isinstance(event, Scored):
        return (
            f"step {event.step:>6}  BLEU {event.bleu:.2f}  (greedy, {event.sentences} validation sentences)"
        )
    if isinstance(event, Averaged):
        loss = "" if event.loss is None else f"  validation loss {event.loss:.4f}"
        best = "  (best of the run)" if event.best else ""
        return f"average of {event.snapshots} snapshots{loss}{best}"
    if isinstance(event, Noted):
        return f"step {event.step:>6}  note: {event.text}"
    return None
