"""The curve of the code with the bug beside the right one: as characters, and as a picture."""

import numpy as np

from npformer.zoo.specimen import Run

BARS = "▁▂▃▄▅▆▇█"
COLUMNS, POINTS = 40, 80  # at most, of a line of characters and of a drawn curve


def two_lines(bug: Run, right: Run, right_name: str) -> list[str]:
    """Both curves on one scale, a line each, with their last value."""
    curves = {"with the bug": bug, right_name: right}
    short = np.stack([thinned(run.losses, COLUMNS) for run in curves.values()])
    heights = np.log(short) if scale_of(short) == "log" else short
    return [
        f"  {name:<12}  {sparkline(curve, heights.min(), heights.max())}  {run.numbers()['last']:.3g}"
        for (name, run), curve in zip(curves.items(), heights, strict=True)
    ]


def scale_of(curves) -> str:
    """ "log" where the curves go through several powers of ten, "linear" otherwise."""
    return "log" if curves.min() > 0 and curves.max() > 30 * curves.min() else "linear"


def sparkline(values, low: float, high: float) -> str:
    """A bar for each value, the lowest at `low`, the highest at `high`."""
    share = (np.asarray(values) - low) / max(high - low, 1e-12)
    return "".join(BARS[i] for i in np.clip(share * len(BARS), 0, len(BARS) - 1).astype(int))


def thinned(values, n: int) -> np.ndarray:
    """Means of so many neighbours that at most n remain: single steps jump about. Shapes: (N,) -> (M,)."""
    values = np.asarray(values, np.float64)
    size = -(-len(values) // n)
    return np.array([values[i : i + size].mean() for i in range(0, len(values), size)])


def draw(bug: Run, right: Run, axes: tuple[str, str], title: str):
    """Both curves as a figure."""
    from npformer import plots  # matplotlib takes a second to load: only who draws should wait

    both = np.stack([thinned(run.losses, POINTS) for run in (bug, right)])
    steps = thinned(np.arange(1, len(bug.losses) + 1), POINTS)
    labels = ["with the bug", "without"]
    return plots.curves(
        both, steps, labels=labels, xlabel=axes[0], ylabel=axes[1], yscale=scale_of(both), title=title
    )
