"""A figure as Sixel graphics: text that makes terminals such as xterm, foot and Windows Terminal draw pixels.

A picture is drawn in bands of six rows of pixels. In a band, each colour has one letter per column, whose six
bits say which pixels of the column have that colour.

Source: Digital Equipment Corporation, VT330/VT340 Programmer Reference Manual, volume 2, chapter 14.
"""

import re
from collections.abc import Iterator

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from npformer.plots.composition import picture

BAND = 6  # rows of pixels in a band
MOST_COLOURS = 256
FIRST_LETTER = ord("?")  # the letter of no pixels; the letter of all six is ~
RUN = re.compile(r"(.)\1{3,}")  # the same letter four times or more is written as a number and the letter


def sixel_picture(figure: Figure, dpi: float, colours: int = MOST_COLOURS) -> str:
    """Return the escape sequence that draws a figure.

    Args:
        figure: The figure, which is not changed.
        dpi: The pixels in each inch of the figure.
        colours: The largest number of different colours.
    """
    image = picture(figure, dpi).quantize(min(colours, MOST_COLOURS), dither=Image.Dither.NONE)
    return encode(np.asarray(image), np.array(image.getpalette(), dtype=np.int64).reshape(-1, 3))


def encode(indices: np.ndarray, palette: np.ndarray) -> str:
    """Return the escape sequence that draws an image.

    Args:
        indices: The row of the palette for each pixel (height, width).
        palette: Red, green and blue of each colour, from 0 to 255 (colours, 3).
    """
    height, width = indices.shape
    percent = (palette * 100 + 127) // 255  # Sixel's unit, rounded
    registers = [f"#{i};2;{percent[i, 0]};{percent[i, 1]};{percent[i, 2]}" for i in np.unique(indices)]
    bands = ["$".join(_layers(indices[top : top + BAND])) for top in range(0, height, BAND)]
    # 1: pixels that no colour covers stay as they are; 1;1: pixels are as high as wide
    return f'\033P0;1q"1;1;{width};{height}' + "".join(registers) + "-".join(bands) + "\033\\"


def _layers(band: np.ndarray) -> Iterator[str]:
    """Yield the letters of each colour in a band (at most 6, width)."""
    weights = 1 << np.arange(len(band))  # the top row is the lowest bit
    for colour in np.unique(band):
        letters = weights @ (band == colour) + FIRST_LETTER  # (width,)
        text = bytes(letters.astype(np.uint8)).decode("ascii").rstrip(chr(FIRST_LETTER))
        yield f"#{colour}" + RUN.sub(lambda run: f"!{len(run[0])}{run[1]}", text)
