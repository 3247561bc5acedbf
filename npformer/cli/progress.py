"""The progress bar of a training run, and the lines that stay on the screen beside it."""

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

from npformer.escaping import printable
from npformer.language import say
from npformer.learn.console import text_column
from npformer.training.events import (
    Averaged,
    Event,
    Noted,
    Report,
    Sampled,
    Scored,
    Started,
    Stepped,
    Validated,
)


@contextmanager
def training_progress(out: Console) -> Iterator[Report]:
    """Show a bar with loss, tokens per second and time left.

    Yields:
        The callback to which training reports.
    """
    columns = (
        text_column("{task.description}"),
        BarColumn(bar_width=18),
        MofNCompleteColumn(),
        text_column("{task.fields[shown]}"),
        TimeRemainingColumn(compact=True),
    )
    progress = Progress(*columns, console=out)
    task = progress.add_task(say("training"))

    def report(event: Event) -> None:
        if isinstance(event, Started):
            progress.update(task, total=event.steps, completed=event.step)
        if isinstance(event, Stepped):
            rate = event.tokens_per_second
            shown = say("loss {loss:.3f}  {rate:>6,.0f} tokens/s", loss=event.loss, rate=rate)
            progress.update(task, completed=event.step, shown=shown)
            progress.start()  # at the first step and not earlier, so that the bar always has a loss
        elif line := _line(event):
            progress.console.print(line)

    try:
        yield report
    finally:
        if progress.live.is_started:
            progress.stop()


def _line(event: Event) -> str | None:
    """Return the line that stays on the screen, of at most 80 columns, or None if the event leaves none."""
    if isinstance(event, Started):
        left = event.steps - event.step
        if left == 1:
            return say("{parameters:,} parameters, 1 step to go", parameters=event.parameters)
        return say("{parameters:,} parameters, {left:,} steps to go", parameters=event.parameters, left=left)
    if isinstance(event, Validated):
        bits = event.bits_per_character
        if bits is None:
            quality = say("token accuracy {accuracy:.1%}", accuracy=event.accuracy)
        else:
            quality = say("{bits:.3f} bits per character", bits=bits)
        line = say("step {step:>6}  validation loss {loss:.4f}", step=event.step, loss=event.loss)
        return f"{line}  {quality}{say('  (best so far)') if event.best else ''}"
    if isinstance(event, Sampled):
        lines = printable(event.text, keep="\n").split("\n")
        return "\n".join([f"step {event.step:>6}  sample:", *(f"    {line}".rstrip() for line in lines)])
    if isinstance(event, Scored):
        return (
            f"step {event.step:>6}  BLEU {event.bleu:.2f}  (greedy, {event.sentences} validation sentences)"
        )
    if isinstance(event, Averaged):
        loss = "" if event.loss is None else f"  validation loss {event.loss:.4f}"
        best = "  (best of the run)" if event.best else ""
        return f"average of {event.snapshots} snapshots{loss}{best}"
    if isinstance(event, Noted):
        return f"step {event.step:>6}  note: {printable(event.text)}"
    return None
