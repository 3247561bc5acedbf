"""The palette of all pictures: a colour for every role, and a simulation of colour blindness."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb
from numpy.typing import ArrayLike

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
    luminance = _linear(np.asarray(to_rgb(background))) @ _TO_XYZ[1]
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"


# Colour blindness.

# linear RGB as seen with one type of cone missing: Machado et al. 2009, table 1, severity 1
SIGHTS = {
    "ordinary": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}

_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])


def simulate(colours: ArrayLike, sight: str) -> np.ndarray:
    """Return sRGB colours as a person with this kind of colour vision sees them.

    Shapes: colours (..., 3) in 0 .. 1 -> (..., 3).

    Raises:
        UserError: If `sight`, the kind of colour vision, is not in SIGHTS.

    Source: Machado et al. 2009.
    """
    if sight not in SIGHTS:
        raise UserError(f"sight is {sight!r}: choose one of {', '.join(SIGHTS)}")
    linear = np.clip(_linear(np.asarray(colours, np.float64)) @ SIGHTS[sight].T, 0, 1)
    simulated: np.ndarray = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return simulated


def difference(first: str, second: str, sight: str = "ordinary") -> float:
    """Return the distance of two colours in CIELAB, where 2 is just noticeable and 10 is easy to see.

    Args:
        first: A colour or a role of the palette.
        second: Another one.
        sight: The kind of colour vision, one of SIGHTS.
    """
    pair = simulate([to_rgb(colour(first)), to_rgb(colour(second))], sight)
    a, b = _lab(pair)
    return float(np.linalg.norm(a - b))


def _linear(colours: np.ndarray) -> np.ndarray:
    """Convert sRGB to linear RGB."""
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def _lab(colours: np.ndarray) -> np.ndarray:
    """Convert sRGB to CIELAB. Shapes: (..., 3) -> (..., 3)."""
    xyz = _linear(colours) @ _TO_XYZ.T / _WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    fx, fy, fz = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], -1)
