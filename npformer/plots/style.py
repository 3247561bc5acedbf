"""Fonts and sizes of all pictures, and saving them: the same figure gives the same bytes."""

import contextlib
import os
from collections.abc import Iterator
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path

from npformer.atomic import write_atomically
from npformer.errors import UserError
from npformer.plots.fonts import families_for

MIN_SIZE = 8.0  # points: nothing is written smaller
SMALL = 8.0  # numbers in cells, words where space is short
TEXT = 9.0  # words and ticks
LABEL = 10.0  # axis labels
FORMULA = 12.0  # names of matrices: their exponents are still 8 points
TITLE = 12.0
DPI = 150  # of a saved PNG

SETTINGS: dict[str, Any] = {
    "font.size": TEXT,
    "axes.titlesize": TITLE,
    "axes.labelsize": LABEL,
    "xtick.labelsize": TEXT,
    "ytick.labelsize": TEXT,
    "legend.fontsize": TEXT,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "mathtext.fontset": "dejavusans",
    "svg.hashsalt": "npformer",
}


@contextlib.contextmanager
def drawing(*texts) -> Iterator[None]:
    """Draw inside this: matplotlib's defaults with the settings above, and fonts that have all of the texts.

    The caller's own settings are back afterwards. texts are strings, None, or lists of them.
    Errors: UserError where no installed font has a character.
    """
    families = families_for("".join(_flat(texts)))
    with matplotlib.rc_context():
        matplotlib.style.use("default")
        settings: Any = {**SETTINGS, "font.family": families}  # matplotlib names every key in a type
        matplotlib.rcParams.update(settings)
        yield


def _flat(texts) -> Iterator[str]:
    for text in texts:
        if isinstance(text, str):
            yield text
        elif text is not None:
            yield from _flat(text)


def printable(word: str) -> str:
    """A word as it can be drawn: control characters, and spaces at its ends, become visible signs."""
    signs = {"\n": "↵", "\r": "↵", "\t": "⇥"}
    shown = "".join(c if c.isprintable() else signs.get(c, "�") for c in word)
    inner = shown.strip(" ")
    if not inner:
        return "␣" * len(shown) or "∅"
    before = len(shown) - len(shown.lstrip(" "))
    return "␣" * before + inner + "␣" * (len(shown) - before - len(inner))


def number(value, decimals: int = 2) -> str:
    """A number as short as it can be read: .88, −.42, 1.00, −∞; whole ones, if of an integer type, as 14."""
    value = np.asarray(value)[()]
    if value.dtype.kind in "biu":
        text = str(int(value))
    elif np.isnan(value):
        return "NaN"
    elif np.isinf(value):
        text = "-∞" if value < 0 else "∞"
    else:
        text = f"{value:.{decimals}f}"
        text = text if float(text) else text.lstrip("-")  # −.00 is .00
    minus, digits = ("−", text[1:]) if text.startswith("-") else ("", text)
    return minus + (digits[1:] if digits.startswith("0.") else digits)


def text_size(
    text: str, size: float = TEXT, *, weight: str = "normal", math: bool = False
) -> tuple[float, float]:
    """Width and height of a text in inches, in the fonts of the `drawing` round it; lines end at \\n."""
    families = tuple(matplotlib.rcParams["font.family"])
    lines = text.split("\n")
    width = max(_width(line, size, weight, families, math) for line in lines)
    return width, len(lines) * line_height(size)


def line_height(size: float = TEXT) -> float:
    """From one line to the next, in inches."""
    return size * 1.25 / 72


@lru_cache(maxsize=4096)
def _width(line, size, weight, families, math):
    font = FontProperties(family=list(families), size=size, weight=weight)
    ismath = math and line.count("$") >= 2
    width, _, _ = text_to_path.get_text_width_height_descent(line, font, ismath)
    return width / 72


def widest(words, size: float = TEXT) -> float:
    """Width of the widest of some words, in inches; 0 for none."""
    return max((text_size(word, size)[0] for word in words), default=0.0)


def wrapped(text: str | None, width: float, size: float = TITLE) -> str:
    """The text in lines no wider than `width` inches, where its words allow."""
    lines: list[str] = []
    for paragraph in (text or "").split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and text_size(longer, size, math=True)[0] > width:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return "\n".join(lines)


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG or SVG, by the name's ending: the same figure, the same bytes. Returns the path.

    Errors: UserError for another ending, or where the file cannot be written; then nothing is left behind.
    """
    path = Path(path)
    kind = path.suffix.lower().removeprefix(".")
    metadata: dict[str, dict[str, None]] = {"png": {"Software": None}, "svg": {"Date": None, "Creator": None}}
    if kind not in metadata:
        raise UserError(f"cannot save a picture as {path.name!r}: end the name in .png or .svg")
    buffer = BytesIO()
    with drawing():
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=metadata[kind])
    return write(path, buffer.getvalue())


def write(path: Path, data: bytes) -> Path:
    """Put data into a file, whole or not at all. Errors: UserError where it cannot be written."""
    try:
        write_atomically(path, data)
    except OSError as error:
        raise UserError(
            f"cannot write {path} ({error.strerror}): give a folder that exists and may be written to"
        ) from None
    return path
