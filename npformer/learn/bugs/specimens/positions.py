"""A specimen with a bug: sinusoidal position encodings."""

import numpy as np


def sinusoids(length, d_model):
    """PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos of the same.

    Shapes: -> (length, D), D even. Source: Vaswani et al. 2017, section 3.5.
    """
    position = np.arange(length)[:, None]  # (T, 1)
    i = np.arange(0, d_model, 2)  # (D/2,)
    angle = position / 10000 ** (2 * i / d_model)  # (T, D/2)
    table = np.empty((length, d_model))  # (T, D)
    table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    return table
