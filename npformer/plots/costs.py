"""How time and memory grow with the size of what is computed: panels of curves."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from npformer.errors import UserError
from npformer.plots.curves import curves
from npformer.plots.layout import PAD, axes_at, new_figure, put_title, title_room
from npformer.plots.style import drawing

WIDTH, HEIGHT = 4.6, 2.9  # inches, of each panel's axes
LEFT, BOTTOM = 0.85, 0.6  # for the ticks and the label before them
BETWEEN = 0.3  # from one panel to the next


def cost_panels(
    costs: Mapping[str, Mapping[str, Sequence[float]]],
    sizes: Mapping[str, Sequence[float]],
    *,
    panels: Sequence[Sequence[tuple[str, str]]],
    title: str | None = None,
) -> Figure:
    """Rows of panels, each with its curves over a size, both on logarithmic scales: a power is a line.

    panels: for each panel (what is measured, against what), as ("seconds", "length"). costs: for each
    panel's two words joined by a blank, the curves by name. sizes: by the second word.
    Errors: UserError for a curve with another number of points than its sizes, or with numbers not above 0.
    """
    with drawing(title, *costs):
        rows, columns = len(panels), max(map(len, panels))
        _, up = title_room(title)
        across, down = LEFT + WIDTH + BETWEEN, BOTTOM + HEIGHT + BETWEEN
        figure = new_figure(columns * across, rows * down + PAD + up)
        for i, row in enumerate(panels):
            for j, (what, against) in enumerate(row):
                ax = axes_at(figure, j * across + LEFT, (rows - 1 - i) * down + BOTTOM, WIDTH, HEIGHT)
                _panel(ax, costs[f"{what} {against}"], sizes[against], what, against)
        if title:
            put_title(figure, title)
        return figure


def _panel(ax, lines, sizes, what, against):
    for name, values in lines.items():
        if len(values) != len(sizes) or min(values) <= 0:
            raise UserError(f"{name} needs {len(sizes)} numbers above 0, one for each {against}")
    curves(
        np.array(list(lines.values()), np.float64),
        np.array(sizes, np.float64),
        labels=list(lines),
        xlabel=against,
        ylabel=what,
        xscale="log",
        yscale="log",
        legend=True,
        ax=ax,
    )
    ax.set_xticks(sizes, labels=[f"{size:g}" for size in sizes])
    ax.xaxis.set_minor_locator(NullLocator())
