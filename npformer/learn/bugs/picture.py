"""Show the loss with the bug beside the loss without it, as lines of characters and as a figure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import set_cell_size

from npformer.backend import Array
from npformer.language import say
from npformer.learn.bugs.specimen import Run

if TYPE_CHECKING:
    from npformer.plots import Figure

BARS = "▁▂▃▄▅▆▇█"
COLUMNS, POINTS = 40, 80  # the largest numbers of points of a line of characters and of a drawn curve


def two_lines(bug: Run, right: Run, right_name: str) -> list[str]:
    """Return both curves on one scale, each as a line of characters with its last value.

    Args:
        bug: The training with the bug.
        right: The training without it.
        right_name: The label of the second curve.
    """
    curves = {say("with the bug"): bug, right_name: right}
    short = np.stack([thinned(run.losses, COLUMNS) for run in curves.values()])
    heights = np.log(short) if scale_of(short) == "log" else short
    lines = [sparkline(curve, heights.min(), heights.max()) for curve in heights]
    return [
        f"  {set_cell_size(name, 12)}  {line}  {run.numbers()['last']:.3g}"
        for (name, run), line in zip(curves.items(), lines, strict=True)
    ]


def scale_of(curves: Array) -> str:
    """Return "log" if the curves span more than a factor of 30, and "linear" otherwise."""
    return "log" if curves.min() > 0 and curves.max() > 30 * curves.min() else "linear"


def sparkline(values: Sequence[float] | Array, low: float, high: float) -> str:
    """Return a line of characters with one bar for each value.

    Args:
        values: The values, of shape (N,).
        low: The value of the lowest bar.
        high: The value of the highest bar.
    """
    share = (np.asarray(values) - low) / max(high - low, 1e-12)
    return "".join(BARS[i] for i in np.clip(share * len(BARS), 0, len(BARS) - 1).astype(int))


def thinned(values: Sequence[float] | Array, n: int) -> Array:
    """Return at most n means, each over the same number of neighbouring values.

    The means are smoother than the losses of single steps.

    Shapes: values (N,) -> (M,).
    """
    values = np.asarray(values, np.float64)
    size = -(-len(values) // n)
    return np.array([values[i : i + size].mean() for i in range(0, len(values), size)])


def draw(bug: Run, right: Run, axes: tuple[str, str], title: str) -> "Figure":
    """Return both curves as a figure.

    Args:
        bug: The training with the bug.
        right: The training without it.
        axes: The labels of the x axis and the y axis.
        title: The title.
    """
    from npformer import plots  # matplotlib takes a second to load

    both = np.stack([thinned(run.losses, POINTS) for run in (bug, right)])
    steps = thinned(np.arange(1, len(bug.losses) + 1), POINTS)
    labels = ["with the bug", "without"]
    return plots.curves(
        both, steps, labels=labels, xlabel=axes[0], ylabel=axes[1], yscale=scale_of(both), title=title
    )
