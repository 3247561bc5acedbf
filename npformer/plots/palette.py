"""The palette of all pictures: a colour for every role."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb

from npformer.errors import UserError

COLOURS = {
    # vectors and matrices, in the colours of the source documents
    "x": "#a3e49e",
    "q": "#e7b8f4",
    "k": "#ffcf98",
    "v": "#b3dafe",
    "z": "#ffb5d8",
    "normalised": "#ff64bb",
    "r": "#7cbfff",
    "position": "#fcf09a",
    "x_position": "#e8feb6",
    "weight": "#dcdee0",
    # masked cells and padding
    "masked": "#4d4d4d",
    "padding": "#4c9f58",
    # boxes
    "encoder": "#e4f7e3",
    "decoder": "#ffe5f1",
    "attention": "#ffefde",
    "feed_forward": "#e4f1fe",
    "norm": "#e9ffd3",
    "linear": "#f3dbf9",
    "softmax": "#ffd6d6",
    "plain": "#ffffff",
    # lines and letters
    "ink": "#222222",
    "faint": "#767676",
    "highlight": "#ff7100",
}

# Darker companions, for edges and for the grid of a weight matrix. Some of the light colours above cannot be
# told apart with colour blindness (q and v, x and k); these differ in lightness too.
EDGES = {
    "x": "#4a8f45",
    "q": "#5b1f80",
    "k": "#b85c00",
    "v": "#2f86d6",
    "z": "#a8005c",
    "normalised": "#8f0050",
    "r": "#0b4a8f",
    "position": "#9c8500",
    "x_position": "#7f9a2f",
    "weight": "#8a8f94",
    "masked": "#2b2b2b",
    "padding": "#2c6b36",
}

# The first two are those of the source documents. With protanopia they are similar, so heads are always
# numbered or drawn side by side as well. The others were chosen to be far apart for every kind of colour
# vision.
HEADS = (
    "#ff7100",
    "#00ab2c",
    "#5a0f87",
    "#f087ff",
    "#002dff",
    "#690f2d",
    "#969687",
    "#964b87",
    "#2d5a00",
    "#b45aff",
    "#87b4c3",
    "#785ab4",
    "#a54b4b",
    "#4b00b4",
    "#c3a578",
    "#3c2d5a",
)


def colour(name: str) -> str:
    """Return the colour of a role, such as "q" or "padding", or the colour itself, such as "#ff7100".

    Raises:
        UserError: If the name is neither a role nor a colour.
    """
    if name in COLOURS:
        return COLOURS[name]
    try:
        to_rgb(name)
    except ValueError:
        raise UserError(
            f"{name!r} is not a colour: choose one of {', '.join(COLOURS)}, or give #rrggbb"
        ) from None
    return name


def edge(name: str) -> str:
    """Return the darker companion of a role's colour, or grey where it has none."""
    return EDGES.get(name, "#5f6368")


def head_colour(head: int) -> str:
    """Return the colour of a head. The colours repeat after 16."""
    return HEADS[head % len(HEADS)]


def weight_map() -> Colormap:
    """Return a colour map for weights, from almost white to dark blue. Masked cells are dark grey."""
    return _map("npformer_weights", ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08408b"])


def signed_map() -> Colormap:
    """Return a colour map with orange for negative, white for 0 and blue for positive numbers."""
    return _map("npformer_signed", ["#a34700", "#f0974a", "#fdfdfd", "#5fa2d8", "#0b4a8f"])


def _map(name: str, colours: Sequence[str]) -> Colormap:
    return LinearSegmentedColormap.from_list(name, colours).with_extremes(bad=COLOURS["masked"])


def ink_on(background: Any) -> str:
    """Return the colour, black or white, that has more contrast to a background colour."""
    srgb = np.array(to_rgb(background))
    linear = np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)
    luminance = linear @ (0.2126729, 0.7151522, 0.0721750)
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"
