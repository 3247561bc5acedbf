"""The one palette of all pictures: a colour for every role, and how the colour-blind see it."""

import numpy as np
from matplotlib.colors import Colormap, LinearSegmentedColormap, to_rgb

from npformer.errors import UserError

COLOURS = {
    # what flows: the colours of the illustrated documents
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
    # what does not count
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

# Darker companions, for edges and for the grid of a weight matrix. Several of the light colours above look
# alike to the colour-blind (q and v, x and k): these differ in lightness too.
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

# The first two are those of the documents. To the protanope they are close: heads are therefore always
# numbered or side by side as well. The others were chosen far apart for every kind of sight.
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
    """The colour of a role ("q", "padding", ...); a colour such as "#ff7100" or "white" stands for itself.

    Errors: UserError for anything else.
    """
    if name in COLOURS:
        return COLOURS[name]
    try:
        to_rgb(name)
    except ValueError:
        raise UserError(
            f"{name!r} is no colour: choose one of {', '.join(COLOURS)}, or give #rrggbb"
        ) from None
    return name


def edge(name: str) -> str:
    """The darker companion of a role's colour, grey where it has none."""
    return EDGES.get(name, "#5f6368")


def head_colour(head: int) -> str:
    """The colour of a head; they repeat after 16."""
    return HEADS[head % len(HEADS)]


def weight_map() -> Colormap:
    """From almost white to dark blue, ever darker, for weights; masked cells are dark grey."""
    return _map("npformer_weights", ["#f7fbff", "#c6dbef", "#6baed6", "#2171b5", "#08408b"])


def signed_map() -> Colormap:
    """Orange for negative, white for 0, blue for positive; masked cells are dark grey."""
    return _map("npformer_signed", ["#a34700", "#f0974a", "#fdfdfd", "#5fa2d8", "#0b4a8f"])


def _map(name, colours):
    return LinearSegmentedColormap.from_list(name, colours).with_extremes(bad=COLOURS["masked"])


def ink_on(background) -> str:
    """Black or white, whichever stands out more from a background colour."""
    luminance = _linear(np.asarray(to_rgb(background))) @ _TO_XYZ[1]
    return "#000000" if (luminance + 0.05) / 0.05 >= 1.05 / (luminance + 0.05) else "#ffffff"


# Colour blindness.

# linear RGB as seen with a cone missing: Machado et al. 2009, table 1, severity 1
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


def simulate(colours, sight: str) -> np.ndarray:
    """sRGB colours as one kind of sight sees them.

    Shapes: colours (..., 3) in 0 .. 1 -> (..., 3). Errors: UserError for a sight not in SIGHTS.
    Source: Machado et al. 2009.
    """
    if sight not in SIGHTS:
        raise UserError(f"sight is {sight!r}: choose one of {', '.join(SIGHTS)}")
    linear = np.clip(_linear(np.asarray(colours, np.float64)) @ SIGHTS[sight].T, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def difference(first, second, sight: str = "ordinary") -> float:
    """How far apart two colours look: the distance in CIELAB, where 2 is just noticeable and 10 is plain."""
    pair = simulate([to_rgb(colour(first)), to_rgb(colour(second))], sight)
    a, b = _lab(pair)
    return float(np.linalg.norm(a - b))


def _linear(colours):
    """sRGB to linear RGB."""
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def _lab(colours):
    """sRGB to CIELAB. Shapes: (..., 3) -> (..., 3)."""
    xyz = _linear(colours) @ _TO_XYZ.T / _WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    fx, fy, fz = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], -1)
