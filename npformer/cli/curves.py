"""npformer curves: draw the curves of a training run from its log."""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from npformer.backend import Array
from npformer.cli.options import add
from npformer.cli.output import note
from npformer.errors import UserError
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import read_log
from npformer.training.run_folder import RunFolder

if TYPE_CHECKING:
    from npformer.plots import Curve, Panel

FILE = "curves.png"
LARGEST = 1e100  # of a number; larger ones are drawn as this one
MAX_POINTS = 250  # the most points of a curve; of more points, the means of neighbours are drawn
MAX_NOISY_POINTS = 2000  # the same for a curve that is drawn smoothed as well

Entries = Sequence[dict[str, Any]]


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "run", "the folder of a run", metavar="RUN")
    add(parser, "--out FILE", f"the picture, .png, .svg or .pdf (default: RUN/{FILE})")


def run(arguments: Namespace) -> int:
    """Draw the curves. Return 0."""
    note(f"drawn: {draw_curves(Path(arguments.run), arguments.out)}")
    return 0


def draw_curves(folder: Path, out: str | Path | None = None) -> Path:
    """Draw the curves of a run, by default into its folder. Return the path of the picture.

    Raises:
        UserError: If there is no log, or no step in it yet.
    """
    log = read_log(folder)
    steps = [entry for entry in log if "loss" in entry]
    if not steps:
        raise UserError(f"the log of {folder} has no step yet: let the run continue for a while")
    from npformer.plots import curve_page, save  # matplotlib takes a second to load
    from npformer.plots.style import literal

    hours, minutes = divmod(round(log[-1]["seconds"] / 60), 60)
    lasted = f"{hours} h {minutes} min" if hours else f"{minutes} min"
    title = f"{literal(folder.name)}: {steps[-1]['step']:,} steps in {lasted}"
    panels = panels_of(log, _training_label(folder))
    return save(curve_page(panels, xlabel="minutes", title=title), out or folder / FILE)


def _training_label(folder: Path) -> str:
    """Return the name of the curve of the training loss, with what raises it above the validation loss.

    The log does not say that. Without a checkpoint, as beside a published log, the name is "training" alone.
    """
    try:
        settings = load_checkpoint(RunFolder(folder).last).model_settings
    except UserError:
        return "training"
    has_dropout = any(value for name, value in settings.items() if name.endswith("dropout"))
    parts = ["dropout"] * has_dropout + ["label smoothing"] * bool(settings.get("label_smoothing"))
    return f"training, with {' and '.join(parts)}" if parts else "training"


def panels_of(log: Entries, training: str = "training") -> "list[Panel]":
    """Return the panels of what was measured: losses, BLEU, learning rate and speed, over minutes.

    Args:
        log: The entries of the log.
        training: The name of the curve of the training loss.
    """
    from npformer.plots import Panel

    losses = [
        _curve(log, "loss", training, smooth=True),
        _curve(log, "valid_loss", "validation", marked=True),
        _curve(log, "averaged_loss", "average of the last snapshots", marked=True),
    ]
    panels = [
        Panel("loss per target token", losses),
        Panel("BLEU of validation sentences, greedy", [_curve(log, "valid_bleu", marked=True)], True),
        Panel("bits per character of validation", [_curve(log, "valid_bits_per_character", marked=True)]),
        Panel("learning rate", [_curve(log, "lr")], True),
        Panel("target tokens per second", [_curve(log, "tokens_per_second")], True),
    ]
    measured = [panel._replace(curves=[each for each in panel.curves if len(each.x)]) for panel in panels]
    return [panel for panel in measured if panel.curves]


def _curve(
    log: Entries, name: str, label: str = "", *, marked: bool = False, smooth: bool = False
) -> "Curve":
    """Return the curve of one entry of the log, over minutes."""
    from npformer.plots import Curve

    found = [(entry["seconds"] / 60, entry[name]) for entry in log if name in entry]
    # sums and axes of larger numbers overflow
    x, y = np.clip(np.array(found, np.float64), -LARGEST, LARGEST).reshape(-1, 2).T
    if marked:
        return Curve(x, y, label, marked=True)
    most = MAX_NOISY_POINTS if smooth else MAX_POINTS
    return Curve(thinned(x, most), thinned(y, most), label, smooth=smooth)


def thinned(values: Array, most: int = MAX_POINTS) -> Array:
    """Return the means of groups of neighbours, at most `most` of them. Shapes: (N,) -> (M,)."""
    together = max(1, -(-len(values) // most))
    starts = np.arange(0, len(values), together)
    return np.add.reduceat(values, starts) / np.diff([*starts, len(values)]) if len(values) else values
