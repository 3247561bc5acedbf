"""A small emulator of a terminal with images, for the tests that check where texts and images stand."""

import math
import re
from typing import NamedTuple

import numpy as np
from sixel_decoder import decode

TOKEN = re.compile(
    r"(?P<sixel>\033P[^\033]*\033\\)|\033_G(?P<kitty>[^;]*);[^\033]*\033\\|\033\]1337;(?P<iterm2>[^:]*):[^\a]*\a"
    r"|\033\[(?P<numbers>[\d;?]*)(?P<control>[A-Za-z])|\033(?P<cursor>[78])|(?P<text>.)",
    re.DOTALL,
)


class Placed(NamedTuple):
    """An image on the screen: its first line, the lines that it covers, and the pixels if it is of Sixel."""

    line: int
    height: int
    pixels: np.ndarray | None


class ImageScreen:
    """Collects the lines that a terminal shows, with those that have scrolled away, and its images.

    Args:
        rows: The number of lines on the screen.
        cell: The width and height of a letter in pixels.
        below: Where an image leaves the cursor: True for the line below, as in xterm; False for its last band
            of pixels, as in the VT340.
    """

    def __init__(self, rows, cell=(10, 20), *, below):
        self.rows, self.cell, self.below = rows, cell, below
        self.lines = [""]  # from the first line ever printed
        self.images = []
        self.row = self.column = 0
        self.saved = (0, 0)

    @property
    def top(self):
        """The first line on the screen."""
        return max(len(self.lines) - self.rows, 0)

    def feed(self, text):
        """Show a text with escape sequences."""
        for found in TOKEN.finditer(text):
            if found["sixel"]:
                pixels = decode(found[0])
                height = math.ceil(len(pixels) / 6) * 6
                self._place(math.ceil(height / self.cell[1]), (height - 6) // self.cell[1], pixels)
            elif found["kitty"] or found["iterm2"]:
                height = re.search(r"\b(?:r|height)=(\d+)", found["kitty"] or found["iterm2"])
                if height:  # in kitty's first piece
                    self._place(int(height[1]), int(height[1]) - 1, None)
            elif found["control"] in ("A", "B"):
                distance = int(found["numbers"]) * (-1 if found["control"] == "A" else 1)
                top = self.top
                self.row = min(max(self.row + distance, top), top + self.rows - 1)
                self.lines += [""] * (self.row + 1 - len(self.lines))
            elif found["cursor"] == "7":
                self.saved = self.row - self.top, self.column
            elif found["cursor"] == "8":
                self.row, self.column = self.saved[0] + self.top, self.saved[1]
            elif found["text"] == "\n":
                self._down(1)
                self.column = 0
            elif found["text"] == "\r":
                self.column = 0
            elif found["text"]:
                line = self.lines[self.row].ljust(self.column)
                self.lines[self.row] = line[: self.column] + found[0] + line[self.column + 1 :]
                self.column += 1

    def _place(self, height, last, pixels):
        self.images.append(Placed(self.row, height, pixels))
        self._down(height if self.below else last)

    def _down(self, distance):
        for _ in range(distance):
            self.row += 1
            if self.row == len(self.lines):
                self.lines.append("")
