"""Several pictures beside each other in one figure, each at its own size."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from npformer.plots.layout import PAD, axes_at, new_figure, put_title, size_of, title_room
from npformer.plots.style import LABEL, drawing, line_height, text_size, wrapped

BETWEEN = 0.45  # inches, from one picture to the next


def beside(
    draws: Sequence[Callable[..., Figure]],
    *,
    names: Sequence[str] | None = None,
    down: bool = False,
    title: str | None = None,
) -> Figure:
    """Pictures from left to right, or from above down, in the middle of the row or column, names over them.

    Each draw() makes a figure, whose first axes tell the size, and draw(ax=ax) draws on given axes.
    Errors: UserError where they do not fit.
    """
    heads = [""] * len(draws) if names is None else list(names)
    pieces = [_piece(draw()) for draw in draws]
    with drawing(heads, title):
        over = line_height(LABEL) * 1.6 if any(heads) else 0.0
        wide = [max(each.width, text_size(head, LABEL)[0]) for each, head in zip(pieces, heads, strict=True)]
        high = [each.height + over for each in pieces]
        gaps = BETWEEN * (len(draws) - 1)
        width, height = (max(wide), sum(high) + gaps) if down else (sum(wide) + gaps, max(high))
        title = wrapped(title, width)
        across, up = title_room(title)
        figure = new_figure(max(width, across) + 2 * PAD, height + up + 2 * PAD)
        left, top = (figure.get_size_inches()[0] - width) / 2, PAD + height
        for index, (draw, piece, head) in enumerate(zip(draws, pieces, heads, strict=True)):
            room = (width, high[index]) if down else (wide[index], height)
            _place(figure, draw, piece, head, (left, top, *room), over)
            left, top = (left, top - room[1] - BETWEEN) if down else (left + room[0] + BETWEEN, top)
        if title:
            put_title(figure, title)
    return figure


def _place(figure, draw, piece, head, room, over):
    """Draw a piece in the middle of its room: left, top, width, height in inches."""
    left, top, width, height = room
    x, y = left + (width - piece.width) / 2, top - over - (height - over + piece.height) / 2
    draw(ax=axes_at(figure, x + piece.x, y + piece.y, *piece.axes))
    if head:
        across, up = figure.get_size_inches()
        middle, line = (left + width / 2) / across, (top - over / 2) / up
        figure.text(middle, line, head, size=LABEL, ha="center", va="center", weight="bold")


class Piece(NamedTuple):
    """A picture's size with all its writing, and where its first axes stand in it, in inches."""

    x: float
    y: float
    width: float
    height: float
    axes: tuple[float, float]


def _piece(figure: Figure) -> Piece:
    ax = figure.axes[0]
    with drawing():
        box, inner = ax.get_tightbbox(), ax.get_window_extent()
    assert box is not None
    dpi = figure.dpi
    x, y = (inner.x0 - box.x0) / dpi, (inner.y0 - box.y0) / dpi
    return Piece(x, y, box.width / dpi, box.height / dpi, size_of(ax))
