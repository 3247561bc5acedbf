"""Figures on the pages: an image that opens in full size, with its caption."""

import struct
from html import escape

from npformer.plots.style import DPI

POINTS = 96  # CSS pixels in an inch


def size_of(png: bytes) -> tuple[int, int]:
    """Return the width and the height of a saved figure in CSS pixels."""
    width, height = struct.unpack(">II", png[16:24])
    return round(width * POINTS / DPI), round(height * POINTS / DPI)


def figure_html(file: str, png: bytes, caption: str, *, alt: str = "") -> str:
    """Return a figure as HTML.

    Args:
        file: The address of the image, relative to the page.
        png: The image.
        caption: The caption.
        alt: The text for readers who do not see the image; by default the caption.
    """
    width, height = size_of(png)
    return (
        f'<figure><a href="{file}"><img src="{file}" width="{width}" height="{height}" loading="lazy" '
        f'alt="{escape(alt or caption)}"></a><figcaption>{escape(caption)}</figcaption></figure>'
    )
