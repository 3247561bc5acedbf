"""A simulation of colour blindness, and the distance of two colours as a person sees them."""

import numpy as np
from matplotlib.colors import to_rgb

from npformer.plots.palette import colour

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


def simulate(colours, sight):
    """Return sRGB colours as a person with this kind of colour vision sees them.

    Shapes: colours (..., 3) in 0 .. 1 -> (..., 3).

    Source: Machado et al. 2009.
    """
    linear = np.clip(_linear(np.asarray(colours, np.float64)) @ SIGHTS[sight].T, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def difference(first, second, sight="ordinary"):
    """Return the distance of two colours in CIELAB, where 2 is just noticeable and 10 is easy to see.

    Args:
        first: A colour or a role of the palette.
        second: Another one.
        sight: The kind of colour vision, one of SIGHTS.
    """
    pair = simulate([to_rgb(colour(first)), to_rgb(colour(second))], sight)
    a, b = lab(pair)
    return float(np.linalg.norm(a - b))


def luminance(background):
    """Return the luminance of a colour, from 0 for black to 1 for white."""
    return _linear(np.asarray(to_rgb(background))) @ _TO_XYZ[1]


def _linear(colours):
    """Convert sRGB to linear RGB."""
    return np.where(colours <= 0.04045, colours / 12.92, ((colours + 0.055) / 1.055) ** 2.4)


def lab(colours):
    """Convert sRGB to CIELAB. Shapes: (..., 3) -> (..., 3)."""
    xyz = _linear(colours) @ _TO_XYZ.T / _WHITE
    f = np.where(xyz > 216 / 24389, np.cbrt(xyz), (24389 / 27 * xyz + 16) / 116)
    fx, fy, fz = f[..., 0], f[..., 1], f[..., 2]
    return np.stack([116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)], -1)
