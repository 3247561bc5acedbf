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
from npformer.plots.layout import PAD, axes_at, new_figure, size_of, titled_figure, write_at
from npformer.plots.style import DPI, LABEL, drawing, line_height, text_size, write
from npformer.validation import require_count

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
        down, title: Whether the pictures stand below each other, and a title above the figure.

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
            across, up = (width, high[index]) if down else (wide[index], height)
            x = left + (across - piece.width) / 2 + piece.x  # in the middle of its space
            y = top - over - (up - over + piece.height) / 2 + piece.y
            draw(ax=axes_at(figure, x, y, *piece.axes))
            if head:
                write_at(figure, left + across / 2, top - over / 2, head, size=LABEL, weight="bold")
            left, top = (left, top - up - BETWEEN) if down else (left + across + BETWEEN, top)
    return figure


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
        names, title: One name above each frame, and a title above the figure.
        columns: The number of frames in a row; all by default.

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
    if columns is not None:
        require_count("columns", columns)
    columns = columns or len(frames)
    with drawing(heads, title):
        sizes = [figure.get_size_inches() for figure in alone]
        width = max(*(across for across, _ in sizes), *(text_size(head, LABEL)[0] for head in heads))
        height = max(up for _, up in sizes)
        over = line_height(LABEL) * 1.5 if any(heads) else 0.0
        rows = -(-len(frames) // columns)
        size = columns * (width + PAD) + PAD, rows * (height + over + PAD) + PAD
        what = f"a picture of {rows} × {columns} frames"
        figure = new_figure(*size, what, title=title, line_width=columns * width)
        for index, (frame, name, (across, up)) in enumerate(zip(frames, heads, sizes, strict=True)):
            row, column = divmod(index, columns)
            left = PAD + column * (width + PAD)
            bottom = size[1] - PAD - over - height - row * (height + over + PAD)
            own = alone[index].axes[0]  # as far from the edges as in its own figure
            box = own.get_position()
            x, y = left + box.x0 * across, bottom + (height - up) + box.y0 * up
            draw(frame, ax=axes_at(figure, x, y, *size_of(own)))
            if name:
                write_at(figure, left + width / 2, bottom + height + over / 2, name, size=LABEL)
        return figure


def animated_gif(
    draw: Callable[..., Figure], frames: Iterable[Any], path: str | os.PathLike[str], *, seconds: float = 1.0
) -> Path:
    """Write an endless animated GIF of draw(frame) for every frame and return its path.

    Args:
        draw, frames: A function that makes the figure of a frame, and its arguments, one for each frame.
        path, seconds: The file, which ends in .gif, and the seconds for which each frame is shown.

    Returns:
        The path.

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
