"""A figure as a coarse raster of colours and the texts in it, for terminals without images."""

import math
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from npformer.plots.style import drawing

FINER = 4  # subpixels along each side of a pixel, at least
LEAST_DPI = 20  # of the subpixels: fonts have no smaller letters
DARK = 0.2  # a fifth of the subpixels are darker than the one that gives the colour: thin lines stay visible


class Label(NamedTuple):
    """A text of a figure.

    Args:
        text: One line, in which text between dollar signs is a formula.
        x: The column of its centre, in pixels from the left.
        y: The row of its centre, in pixels from the top.
        angle: The angle in degrees, counterclockwise.
        colour: The colour of the letters, such as #1d2126.
        table: The name of the table in one of whose cells it stands, or "" for a text that stands elsewhere.
    """

    text: str
    x: float
    y: float
    angle: float
    colour: str
    table: str


class Raster(NamedTuple):
    """The colours of a figure without its texts, uint8 (height, width, 3), and the texts."""

    pixels: np.ndarray
    labels: list[Label]


class TextRecorder(RendererAgg):
    """A renderer that records each line of text and does not draw it.

    Attributes:
        lines: For each line the text, its font, whether it is a formula, its angle in degrees, its colour,
            and the corners of its ink in pixels, (4, 2) with y downwards: those of its lower side, from its
            beginning, then those of its upper side, from its end.
        tables: For each line the label of its artist, which names a table if the text stands in a cell.
    """

    def __init__(self, width: float, height: float, dpi: float) -> None:
        initialize: Any = super().__init__  # matplotlib leaves it untyped
        initialize(width, height, dpi)
        self.lines: list[tuple[str, FontProperties, bool, float, str, np.ndarray]] = []
        self.tables: list[str] = []

    def draw_text(
        self,
        gc: Any,
        x: float,
        y: float,
        s: str,
        prop: Any,
        angle: float,
        ismath: Any = False,
        mtext: Any = None,
    ) -> None:
        """Record one line of text.

        Args:
            x, y: The beginning of its base line.
            gc, s, prop, angle, ismath, mtext: As for other renderers of matplotlib.
        """
        measure: Any = self.get_text_width_height_descent
        width, height, descent = measure(s, prop, ismath)
        turn = np.deg2rad(angle)
        along, up = np.array([np.cos(turn), -np.sin(turn)]), np.array([-np.sin(turn), -np.cos(turn)])
        start = np.array([x, y]) - descent * up
        far = start + width * along
        corners = np.array([start, far, far + height * up, start + height * up])
        self.lines.append((s, prop, bool(ismath), angle, to_hex(gc.get_rgb()), corners))
        self.tables.append(mtext.get_label() if mtext is not None else "")


def rasterize(figure: Figure, width: int, height: int, stretch: int = 1) -> Raster:
    """Return a figure as a raster of the figure's own shape, or stretched.

    Args:
        figure: The figure, which is not changed.
        width: The largest width, in pixels.
        height: The largest height, in pixels.
        stretch: The factor by which the raster is higher than the figure's shape.
    """
    size, dpi = figure.get_size_inches(), figure.dpi
    scale = min(width / size[0], height / stretch / size[1])
    finer = max(FINER, math.ceil(LEAST_DPI / scale / stretch)) * stretch  # across; 1/stretch as many down
    wide, high = max(int(size[0] * scale), 1), max(int(size[1] * scale), 1)
    with drawing():
        try:
            figure.set_dpi(scale * finer)
            renderer = TextRecorder(wide * finer, high * finer, figure.dpi)
            figure.draw(renderer)
        finally:
            figure.set_dpi(dpi)
    fine = np.asarray(renderer.buffer_rgba()).astype(np.int64)
    fine = 255 + (fine[..., :3] - 255) * fine[..., 3:] // 255  # on white
    down = finer // stretch
    blocks = fine.reshape(high * stretch, down, wide, finer, 3).swapaxes(1, 2)
    blocks = blocks.reshape(high * stretch, wide, down * finer, 3)
    order = np.argsort(blocks.sum(-1), axis=-1)[..., int(DARK * down * finer)]  # (height, width)
    pixels = np.take_along_axis(blocks, order[..., None, None], axis=2)[:, :, 0]
    labels = []
    for (text, _, _, angle, colour, corners), table in zip(renderer.lines, renderer.tables, strict=True):
        x, y = corners.mean(0) / (finer, down)
        labels.append(Label(text, x, y, angle, colour, table))
    return Raster(pixels.astype(np.uint8), labels)
