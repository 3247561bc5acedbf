"""Pictures that move: key frames side by side, and animated GIFs."""

import os
from collections.abc import Callable, Iterable
from io import BytesIO
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from npformer.errors import UserError
from npformer.plots.layout import PAD, axes_at, new_figure, put_title, size_of, title_room
from npformer.plots.style import DPI, LABEL, drawing, line_height, text_size, wrapped, write


def key_frames(
    draw: Callable[..., Figure],
    frames: Iterable,
    *,
    names: Iterable[str] | None = None,
    columns: int | None = None,
    title: str | None = None,
) -> Figure:
    """Several frames in one figure, from left to right, then the next row.

    draw(frame) makes the figure of a frame, draw(frame, ax=ax) draws it on given axes; the first tells how
    much room the second needs. names stand over the frames.
    Errors: UserError where they do not fit, or names are missing.
    """
    frames = list(frames)
    heads = [""] * len(frames) if names is None else list(names)
    if not frames or len(heads) != len(frames):
        raise UserError(f"there are {len(frames)} frames and {len(heads)} names: give one name for each")
    alone = [draw(frame) for frame in frames]
    if columns is not None and columns < 1:
        raise UserError(f"columns is {columns}: it must be 1 or more")
    with drawing(heads, title):
        return _side_by_side(draw, frames, heads, alone, columns or len(frames), title)


def _side_by_side(draw, frames, heads, alone, columns, title):
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
        _frame(figure, draw, frame, alone[index], (left, bottom, height))
        if name:
            x, y = (left + width / 2) / sides[0], (bottom + height + head / 2) / sides[1]
            figure.text(x, y, name, size=LABEL, ha="center", va="center")
    return figure


def _frame(figure, draw, frame, alone, place):
    """Draw a frame where its own axes were in its own figure."""
    left, bottom, height = place
    box = alone.axes[0].get_position()
    across, up = alone.get_size_inches()
    inner = size_of(alone.axes[0])
    ax = axes_at(figure, left + box.x0 * across, bottom + (height - up) + box.y0 * up, *inner)
    draw(frame, ax=ax)


def animated_gif(
    draw: Callable[..., Figure], frames: Iterable, path: str | os.PathLike[str], *, seconds: float = 1.0
) -> Path:
    """Write an animated GIF of draw(frame), each frame shown for some seconds, without end. Returns path.

    Errors: UserError for a name that does not end in .gif, frames of different sizes, or where the file
    cannot be written; then nothing is left behind.
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
            "the frames have different sizes: draw all on figures of one size, with words of the same width"
        )
    buffer = BytesIO()
    first, *rest = [image.quantize(256, dither=Image.Dither.NONE) for image in images]
    first.save(buffer, "GIF", save_all=True, append_images=rest, duration=round(1000 * seconds), loop=0)
    return write(path, buffer.getvalue())


def picture(figure: Figure) -> Image.Image:
    """The pixels of a figure, as a Pillow image."""
    before = figure.dpi
    try:
        figure.set_dpi(DPI)
        canvas = FigureCanvasAgg(figure)
        with drawing():
            canvas.draw()
        return Image.frombuffer("RGBA", canvas.get_width_height(), canvas.buffer_rgba()).convert("RGB")
    finally:
        figure.set_dpi(before)
