"""Several pictures in one figure, key frames, and animated GIFs."""

import os
from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from npformer.errors import UserError, quantity
from npformer.plots.layout import PAD, axes_at, new_figure, put_title, size_of, title_room, titled_figure
from npformer.plots.style import DPI, LABEL, drawing, line_height, text_size, wrapped, write

BETWEEN = 0.45  # inches, from one picture to the next


class Piece(NamedTuple):
    """The size of a picture with all its text, and the place of its first axes in it, in inches."""

    x: float
    y: float
    width: float
    height: float
    axes: tuple[float, float]


def beside(
    draws: Sequence[Callable[..., Figure]],
    *,
    names: Sequence[str] | None = None,
    down: bool = False,
    title: str | None = None,
) -> Figure:
    """Draw pictures in a row or a column, each at its own size and centred, with names above them.

    Args:
        draws: One function for each picture. draw() returns a figure, and the size of its first axes is used
            for the picture; draw(ax=ax) draws on given axes.
        names: One name for each picture.
        down: Whether the pictures stand below each other.
        title: A title above the figure.

    Returns:
        The figure.

    Raises:
        UserError: If the pictures do not fit.
    """
    heads = [""] * len(draws) if names is None else list(names)
    pieces = [_piece(draw()) for draw in draws]
    with drawing(heads, title):
        over = line_height(LABEL) * 1.6 if any(heads) else 0.0
        names_wide = [text_size(head, LABEL, weight="bold")[0] for head in heads]
        wide = [max(each.width, name) for each, name in zip(pieces, names_wide, strict=True)]
        high = [each.height + over for each in pieces]
        gaps = BETWEEN * (len(draws) - 1)
        width, height = (max(wide), sum(high) + gaps) if down else (sum(wide) + gaps, max(high))
        figure, left = titled_figure(width, height, title, line_width=width)
        top = PAD + height
        for index, (draw, piece, head) in enumerate(zip(draws, pieces, heads, strict=True)):
            room = (width, high[index]) if down else (wide[index], height)
            _place(figure, draw, piece, head, (left, top, *room), over)
            left, top = (left, top - room[1] - BETWEEN) if down else (left + room[0] + BETWEEN, top)
    return figure


def _place(
    figure: Figure,
    draw: Callable[..., Figure],
    piece: Piece,
    head: str,
    room: tuple[float, float, float, float],
    over: float,
) -> None:
    """Draw a picture in the middle of its space, given by left, top, width and height in inches."""
    left, top, width, height = room
    x, y = left + (width - piece.width) / 2, top - over - (height - over + piece.height) / 2
    draw(ax=axes_at(figure, x + piece.x, y + piece.y, *piece.axes))
    if head:
        across, up = figure.get_size_inches()
        middle, line = (left + width / 2) / across, (top - over / 2) / up
        figure.text(middle, line, head, size=LABEL, ha="center", va="center", weight="bold")


def _piece(figure: Figure) -> Piece:
    ax = figure.axes[0]
    with drawing():
        box, inner = ax.get_tightbbox(), ax.get_window_extent()
    assert box is not None
    dpi = figure.dpi
    x, y = (inner.x0 - box.x0) / dpi, (inner.y0 - box.y0) / dpi
    return Piece(x, y, box.width / dpi, box.height / dpi, size_of(ax))


# Key frames and animations.


def key_frames(
    draw: Callable[..., Figure],
    frames: Iterable[Any],
    *,
    names: Iterable[str] | None = None,
    columns: int | None = None,
    title: str | None = None,
) -> Figure:
    """Draw several frames in one figure, from left to right, then the next row.

    Args:
        draw: draw(frame) returns the figure of a frame, and its size is the space that the frame gets;
            draw(frame, ax=ax) draws the frame on given axes.
        frames: The arguments of `draw`, one for each frame.
        names: One name above each frame.
        columns: The number of frames in a row; all by default.
        title: A title above the figure.

    Returns:
        The figure.

    Raises:
        UserError: If the frames do not fit, or names are missing.
    """
    frames = list(frames)
    heads = [""] * len(frames) if names is None else list(names)
    if not frames or len(heads) != len(frames):
        raise UserError(
            f"there are {quantity(len(frames), 'frame')} and {quantity(len(heads), 'name')}: "
            "give frames, and one name for each"
        )
    alone = [draw(frame) for frame in frames]
    if columns is not None and columns < 1:
        raise UserError(f"columns is {columns}: it must be 1 or more")
    with drawing(heads, title):
        return _side_by_side(draw, frames, heads, alone, columns or len(frames), title)


def _side_by_side(
    draw: Callable[..., Figure],
    frames: list[Any],
    heads: list[str],
    alone: list[Figure],
    columns: int,
    title: str | None,
) -> Figure:
    width = max(*(f.get_size_inches()[0] for f in alone), *(text_size(h, LABEL)[0] for h in heads))
    height = max(f.get_size_inches()[1] for f in alone)
    head = line_height(LABEL) * 1.5 if any(heads) else 0.0
    rows = -(-len(frames) // columns)
    title = wrapped(title, columns * width)
    _, up = title_room(title)
    sides = columns * (width + PAD) + PAD, rows * (height + head + PAD) + PAD + up
    figure = new_figure(*sides, f"a picture of {rows} × {columns} frames")
    if title:
        put_title(figure, title)
    for index, (frame, name) in enumerate(zip(frames, heads, strict=True)):
        row, column = divmod(index, columns)
        left = PAD + column * (width + PAD)
        bottom = sides[1] - up - PAD - head - height - row * (height + head + PAD)
        _draw_frame(figure, draw, frame, alone[index], (left, bottom, height))
        if name:
            x, y = (left + width / 2) / sides[0], (bottom + height + head / 2) / sides[1]
            figure.text(x, y, name, size=LABEL, ha="center", va="center")
    return figure


def _draw_frame(
    figure: Figure, draw: Callable[..., Figure], frame: Any, alone: Figure, place: tuple[float, float, float]
) -> None:
    """Draw a frame at a place, its axes as far from the edges as in its own figure."""
    left, bottom, height = place
    box = alone.axes[0].get_position()
    across, up = alone.get_size_inches()
    inner = size_of(alone.axes[0])
    ax = axes_at(figure, left + box.x0 * across, bottom + (height - up) + box.y0 * up, *inner)
    draw(frame, ax=ax)


def animated_gif(
    draw: Callable[..., Figure], frames: Iterable[Any], path: str | os.PathLike[str], *, seconds: float = 1.0
) -> Path:
    """Write an endless animated GIF of draw(frame) for every frame and return its path.

    Args:
        draw: A function that makes the figure of a frame.
        frames: The arguments of `draw`, one for each frame.
        path: The file, which ends in .gif.
        seconds: The time for which each frame is shown.

    Raises:
        UserError: If the name does not end in .gif, the frames differ in size, or the file cannot be written.
            Then no file is left behind.
    """
    path = Path(path)
    if path.suffix.lower() != ".gif":
        raise UserError(f"cannot save an animation as {path.name!r}: end the name in .gif")
    if not 0.02 <= seconds <= 60:
        raise UserError(f"seconds is {seconds}: it must be between 0.02 and 60")
    images = [picture(draw(frame)) for frame in frames]
    if not images:
        raise UserError("there are no frames to animate")
    if len({image.size for image in images}) > 1:
        raise UserError(
            "the frames have different sizes: draw all on figures of equal size, with words of the same width"
        )
    buffer = BytesIO()
    first, *rest = map(_with_few_colours, images)
    first.save(buffer, "GIF", save_all=True, append_images=rest, duration=round(1000 * seconds), loop=0)
    return write(path, buffer.getvalue())


def small_png(figure: Figure) -> bytes:
    """Return a figure as PNG with at most 256 colours, which needs about a third of the bytes."""
    buffer = BytesIO()
    _with_few_colours(picture(figure)).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def _with_few_colours(image: Image.Image) -> Image.Image:
    return image.quantize(256, dither=Image.Dither.NONE)


def picture(figure: Figure, dpi: float = DPI) -> Image.Image:
    """Return the pixels of a figure, which is not changed, as a Pillow image."""
    before = figure.dpi
    try:
        figure.set_dpi(dpi)
        canvas: Any = FigureCanvasAgg(figure)
        with drawing():
            canvas.draw()
        return Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")
    finally:
        figure.set_dpi(before)
