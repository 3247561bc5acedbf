"""Tables of sinusoids that tell a model where a word stands: Vaswani et al. 2017, section 3.5.

Three layouts, since the documents disagree on them; all are drawn on the host in float64.
"""

import numpy as np

from npformer.errors import UserError

LAYOUTS = ("interleaved", "halves", "jianshu")


def sinusoids(length, d_model, layout="interleaved", *, zero_first=False):
    """The position vectors of a layout: "interleaved", "halves" or "jianshu".

    interleaved (the paper): PE[pos, 2i] = sin(pos / 10000^(2i/D)), PE[pos, 2i+1] = cos of the same.
    halves (tensor2tensor): sines in the first half, cosines in the second, exponent i / (D/2 - 1).
    jianshu (the first document's code): exponent 2i/D with i the column itself, sine and cosine in turn.
    zero_first sets position 0 to zero, as that document's zero_pad does (it meant the padding).
    Shapes: -> (length, D), float64.
    Errors: UserError for an unknown layout, or an odd D where sine and cosine come in pairs.
    """
    if layout not in LAYOUTS:
        raise UserError(f"unknown position layout {layout!r}: choose one of {', '.join(LAYOUTS)}")
    if layout != "jianshu" and d_model % 2:
        raise UserError(f"sinusoids come in pairs, so d_model must be even, and it is {d_model}")
    position = np.arange(length)[:, None]  # (T, 1)
    table = np.empty((length, d_model))  # (T, D)
    if layout == "halves":
        half = d_model // 2
        angle = position / 10000 ** (np.arange(half) / max(1, half - 1))  # (T, D/2)
        table[:, :half], table[:, half:] = np.sin(angle), np.cos(angle)
    elif layout == "interleaved":
        angle = position / 10000 ** (np.arange(0, d_model, 2) / d_model)  # (T, D/2)
        table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    else:
        angle = position / 10000 ** (2 * np.arange(d_model) / d_model)  # (T, D)
        table[:, 0::2], table[:, 1::2] = np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2])
    if zero_first:
        table[0] = 0
    return table
