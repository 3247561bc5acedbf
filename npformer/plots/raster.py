"""A figure as a coarse raster of colours and the texts in it, for terminals without images."""

import math
from typing import Any, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

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
    """

    text: str
    x: float
    y: float
    angle: float
    colour: str


class Raster(NamedTuple):
    """The colours of a figure without its texts, uint8 (height, width, 3), and the texts."""

    pixels: np.ndarray
    labels: list[Label]


class _Collector(RendererAgg):
    """A renderer that collects texts and does not draw them."""

    def __init__(self, width: int, height: int, dpi: float, finer: int) -> None:
        super().__init__(width * finer, height * finer, dpi)
        self.finer = finer
        self.labels: list[Label] = []

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
        """Store one line of text. x and y are the beginning of its base line."""
        width, height, descent = self.get_text_width_height_descent(s, prop, ismath)
        along, above = width / 2, height / 2 - descent
        turn = np.deg2rad(angle)
        centre_x = x + along * np.cos(turn) - above * np.sin(turn)
        centre_y = y - along * np.sin(turn) - above * np.cos(turn)
        self.labels.append(
            Label(s, centre_x / self.finer, centre_y / self.finer, angle, to_hex(gc.get_rgb()))
        )


def rasterize(figure: Figure, width: int, height: int) -> Raster:
    """Return a figure as a raster of the figure's own shape.

    Args:
        figure: The figure, which is not changed.
        width: The largest width, in pixels.
        height: The largest height, in pixels.
    """
    size, dpi = figure.get_size_inches(), figure.dpi
    scale = min(width / size[0], height / size[1])
    finer = max(FINER, math.ceil(LEAST_DPI / scale))
    wide, high = max(int(size[0] * scale), 1), max(int(size[1] * scale), 1)
    with drawing():
        try:
            figure.set_dpi(scale * finer)
            renderer = _Collector(wide, high, figure.dpi, finer)
            figure.draw(renderer)
        finally:
            figure.set_dpi(dpi)
    fine = np.asarray(renderer.buffer_rgba()).astype(np.int64)
    fine = 255 + (fine[..., :3] - 255) * fine[..., 3:] // 255  # on white
    blocks = fine.reshape(high, finer, wide, finer, 3).swapaxes(1, 2).reshape(high, wide, finer**2, 3)
    order = np.argsort(blocks.sum(-1), axis=-1)[..., int(DARK * finer**2)]  # (height, width)
    pixels = np.take_along_axis(blocks, order[..., None, None], axis=2)[:, :, 0]
    return Raster(pixels.astype(np.uint8), renderer.labels)
