"""Fonts, text sizes, and saving. Saving the same figure again gives the same bytes."""

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib
import matplotlib.style
import numpy as np
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findSystemFonts, fontManager, get_font
from matplotlib.textpath import text_to_path

from npformer.errors import UserError
from npformer.storage.atomic import write_file
from npformer.validation import require_index, short

FIRST = "DejaVu Sans"

# installed fonts with characters that the default font lacks are known by their names: those for Chinese,
# Japanese and Korean, those for other scripts, and those for emoji (in black and white)
_MORE_CHARACTERS = re.compile(
    r"^Noto (Sans|Serif|Emoji|Kufi|Naskh)|Symbola|Segoe UI (Emoji|Symbol)|CJK|Source Han"
    r"|WenQuanYi|YaHei|SimHei|SimSun|PingFang|Heiti|Hei\b"
    r"|Song|Ming|Kai|Fang|Hiragino|Gothic|Mincho|Droid Sans Fallback|Arial Unicode|Unifont|Nanum|UMing|UKai"
)

# what matplotlib says about a formula: a line with it, a line with a mark below, and the reason
_WRONG_FORMULA = re.compile(r"\n(.*)\n *\^\n\w+: (.*?)(?:, found .*)?  \(at char .*")

FONT_ADVICE = "install one that can, such as Noto Sans CJK SC for Chinese"


def families_for(text: str) -> list[str]:
    """Return font families that together have every character of the text, the default font first.

    Raises:
        UserError: If no installed font has one of the characters, which would be drawn as an empty box.
    """
    families, missing = _cover_with_new_fonts(text)
    if missing:
        raise UserError(f"{no_font_for(missing)}: {FONT_ADVICE}")
    return families


def no_font_for(missing: Sequence[str]) -> str:
    """Return the beginning of a message about characters that no installed font has."""
    characters = "".join(missing)
    return f"no installed font can draw {characters if len(characters) <= 8 else characters[:8] + ' …'}"


def missing_characters(text: str) -> list[str]:
    """Return the characters of a text that no installed font has, in their order."""
    return _cover_with_new_fonts(text)[1]


def drawable(texts: Sequence[str]) -> list[str]:
    """Return texts in which characters that no installed font has are code points, such as U+6211.

    Control characters, which tokens of bytes have, are code points as well, apart from the end of a line.
    """
    every = "".join(texts)
    missing = missing_characters(every)
    missing += [c for c in set(every) if not (c.isprintable() or c == "\n" or _has(_path(FIRST), c))]
    return ["".join(f"U+{ord(c):04X}" if c in missing else c for c in text) for text in texts]


def _cover_with_new_fonts(text: str) -> tuple[list[str], list[str]]:
    families, missing = _cover(text)
    if missing and _add_new_fonts():
        families, missing = _cover(text)
    return families, missing


def _cover(text: str) -> tuple[list[str], list[str]]:
    """Return font families for the text, and the characters that none of them has, in their order."""
    missing = [c for c in dict.fromkeys(text) if c.isprintable() and not _has(_path(FIRST), c)]
    families = [FIRST]
    for name in _others() if missing else ():
        rest = [c for c in missing if not _has(_path(name), c)]
        if len(rest) < len(missing):
            families.append(name)
            missing = rest
        if not missing:
            break
    return families, missing


def _add_new_fonts() -> bool:
    """Add fonts that were installed after matplotlib wrote its font cache; return whether there are any."""
    known = {entry.fname for entry in fontManager.ttflist}
    added = False
    for path in sorted(set(findSystemFonts()) - known):
        with contextlib.suppress(OSError, RuntimeError):  # a file that FreeType cannot read
            fontManager.addfont(path)
            added = True
    return added


def _others() -> list[str]:
    """Return the names of installed fonts that may have characters that the default font lacks, sorted."""
    names = {entry.name for entry in fontManager.ttflist if _MORE_CHARACTERS.search(entry.name)}
    return sorted(names)


def _path(name: str) -> str:
    return fontManager.findfont(FontProperties(family=[name]))


@lru_cache(maxsize=4096)
def _has(path: str, character: str) -> bool:
    return get_font(path).get_char_index(ord(character)) != 0


MIN_SIZE = 8.0  # points, the smallest text
SMALL = 8.0  # numbers in cells, labels where space is short
TEXT = 9.0  # labels and ticks
LABEL = 10.0  # axis labels
FORMULA = 12.0  # names of matrices; their exponents have 8 points
TITLE = 12.0
DPI = 150  # the resolution of a saved PNG

Texts: TypeAlias = "str | Iterable[Texts] | None"

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
    "pdf.fonttype": 42,  # TrueType, so that the text of a PDF can be searched and copied
}


@contextlib.contextmanager
def drawing(*texts: Texts) -> Iterator[None]:
    """Return a context for drawing, with matplotlib's defaults, the settings above and fonts for all texts.

    The caller's own settings are restored at the end.

    Args:
        texts: Strings, None, or lists of them.

    Raises:
        UserError: If something is not a text, if no installed font has a character, or if matplotlib cannot
            read a formula between dollar signs.
    """
    families = families_for("".join(_flat(texts)))
    with matplotlib.rc_context():
        matplotlib.style.use("default")
        settings: Any = {**SETTINGS, "font.family": families}  # matplotlib names every key in a type
        matplotlib.rcParams.update(settings)
        try:
            yield
        except ValueError as error:
            wrong = _WRONG_FORMULA.fullmatch(str(error))
            if wrong is None:
                raise
            raise UserError(
                f"the formula {short(wrong[1])} cannot be drawn ({wrong[2]}): correct it, or write \\$ for a "
                "dollar sign"
            ) from None


def _flat(texts: Iterable[Texts]) -> Iterator[str]:
    for text in texts:
        if isinstance(text, str):
            yield text
        elif np.iterable(text):
            yield from _flat(text)
        elif text is not None:
            raise UserError(f"{short(text)} is not a text: give a string, or a list of strings")


def visible(word: str) -> str:
    """Return a text with visible signs for control characters and for spaces at its ends."""
    signs = {"\n": "↵", "\r": "↵", "\t": "⇥"}
    shown = "".join(c if c.isprintable() else signs.get(c, "�") for c in word)
    inner = shown.strip(" ")
    if not inner:
        return "␣" * len(shown) or "∅"
    before = len(shown) - len(shown.lstrip(" "))
    return "␣" * before + inner + "␣" * (len(shown) - before - len(inner))


def literal(text: str) -> str:
    """Return a text as it is drawn where text between dollar signs is mathtext, such as in a title."""
    return visible(text).replace("$", r"\$")


def number(value: Any, decimals: int = 2) -> str:
    """Return a number as a short text: .88, −.42, 1.00, −∞. Integers have no decimals: 14."""
    value = np.asarray(value)[()]
    if value.dtype.kind in "biu":
        text = str(int(value))
    elif np.isnan(value):
        return "NaN"
    elif np.isinf(value):
        text = "-∞" if value < 0 else "∞"
    else:
        text = f"{value:.{require_index('decimals', decimals)}f}"
        text = text if float(text) else text.lstrip("-")  # −.00 is .00
    minus, digits = ("−", text[1:]) if text.startswith("-") else ("", text)
    return minus + (digits[1:] if digits.startswith("0.") else digits)


def text_size(
    text: str, size: float = TEXT, *, weight: str = "normal", math: bool = False
) -> tuple[float, float]:
    """Return width and height of a text in inches, in the fonts of the surrounding `drawing`.

    Args:
        text, size: The text, whose lines end at \\n, and the size of its letters in points.
        weight: "normal" or "bold".
        math: Whether text between dollar signs is mathtext.
    """
    families = tuple(matplotlib.rcParams["font.family"])
    lines = text.split("\n")
    width = max(_width(line, size, weight, families, math) for line in lines)
    return width, len(lines) * line_height(size)


def line_height(size: float = TEXT) -> float:
    """Return the distance from one line to the next, in inches."""
    return size * 1.25 / 72


@lru_cache(maxsize=4096)
def _width(line: str, size: float, weight: str, families: tuple[str, ...], math: bool) -> float:
    font = FontProperties(family=list(families), size=size, weight=weight)
    ismath = math and line.count("$") >= 2
    width, _, _ = text_to_path.get_text_width_height_descent(line, font, ismath)
    return width / 72


def widest(words: Iterable[str], size: float = TEXT) -> float:
    """Return the width of the widest of some words, in inches; 0 for none."""
    return max((text_size(word, size)[0] for word in words), default=0.0)


def wrapped(text: str | None, width: float, size: float = TITLE, *, weight: str = "normal") -> str:
    """Break a text into lines that are no wider than `width`, unless a single word is wider.

    Args:
        text, size: The text, or None for an empty one, and the size of its letters in points.
        width: The width, in inches.
        weight: "normal" or "bold".
    """
    lines: list[str] = []
    for paragraph in (text or "").split("\n"):
        line = ""
        for word in paragraph.split(" "):
            longer = f"{line} {word}" if line else word
            if line and text_size(longer, size, weight=weight, math=True)[0] > width:
                lines.append(line)
                longer = word
            line = longer
        lines.append(line)
    return "\n".join(lines)


# for each kind of picture: the version of matplotlib and the date are left out, so the bytes are the same
METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}


def save(figure: Figure, path: str | os.PathLike[str]) -> Path:
    """Write a figure as PNG, SVG or PDF, depending on the name's ending, and return the path.

    Raises:
        UserError: If the name has another ending, or the file cannot be written. Then no file is left behind.
    """
    path = Path(path)
    kind = kind_of_picture(path)
    buffer = BytesIO()
    with drawing():
        figure.savefig(buffer, format=kind, dpi=DPI, metadata=METADATA[kind])
    return write(path, buffer.getvalue())


def kind_of_picture(path: Path) -> str:
    """Return the kind of picture that the ending of a file's name tells, one of METADATA.

    Raises:
        UserError: If the name has another ending.
    """
    kind = path.suffix.lower().removeprefix(".")
    if kind not in METADATA:
        raise UserError(f"cannot save a picture as {path.name!r}: end the name in .png, .svg or .pdf")
    return kind


def write(path: Path, data: bytes) -> Path:
    """Write data into a file, completely or not at all, and return the path.

    Raises:
        UserError: If the file cannot be written.
    """
    write_file(path, data, advice="give a folder that exists and may be written to")
    return path
