"""Tables of sinusoids that encode the position of a token: Vaswani et al. 2017, section 3.5.

There are four layouts, since the introductions to the Transformer and its implementations disagree. All are
computed on the host in float64.
"""

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError, did_you_mean

LAYOUTS = ("interleaved", "halves", "jianshu", "marian")


def sinusoids(length: int, d_model: int, layout: str = "interleaved", *, zero_first: bool = False) -> Array:
    """Return the position vectors of one layout.

    "interleaved" (the paper): PE[pos, 2i] = sin(pos / 10000^(2i/D)), and PE[pos, 2i+1] = cos(...).
    "halves" (tensor2tensor): PE[pos, i] = sin(pos / 10000^(i / (D/2 - 1))), and PE[pos, D/2 + i] = cos(...).
    "jianshu" (the code of "Step by step through Attention is All You Need"): in column i,
    sin(pos / 10000^(2i/D)) if i is even, and cos(...) if i is odd.
    "marian" (the translators of Marian in transformers): PE[pos, i] = sin(pos / 10000^(2i/D)), and
    PE[pos, D/2 + i] = cos(...). The numbers are rounded to float32, as those models round them, so that a
    model that is computed in float64 adds the same numbers.

    Args:
        length: The number of positions T.
        d_model: The number of columns D.
        layout: One of LAYOUTS.
        zero_first: Set the vector of position 0 to zero. The code of "jianshu" does this if its option
            zero_pad is True, although that option was meant for padding.

    Returns:
        The table, of shape (T, D), float64.

    Raises:
        UserError: If there is no such layout, or if D is odd and the layout pairs sine and cosine.

    Source: Vaswani et al. 2017, section 3.5.
    """
    if layout not in LAYOUTS:
        raise UserError(f"unknown position layout {layout!r}: {did_you_mean(layout, LAYOUTS)}")
    if layout != "jianshu" and d_model % 2:
        raise UserError(f"sinusoids come in pairs, so d_model must be even, and it is {d_model}")
    position = np.arange(length)[:, None]  # (T, 1)
    table = np.empty((length, d_model))  # (T, D)
    if layout == "halves":
        half = d_model // 2
        angle = position / 10000 ** (np.arange(half) / max(1, half - 1))  # (T, D/2)
        table[:, :half], table[:, half:] = np.sin(angle), np.cos(angle)
    elif layout in ("interleaved", "marian"):
        angle = position / 10000 ** (np.arange(0, d_model, 2) / d_model)  # (T, D/2)
        if layout == "marian":
            table[:] = np.concatenate([np.sin(angle), np.cos(angle)], 1).astype(np.float32)
        else:
            table[:, 0::2], table[:, 1::2] = np.sin(angle), np.cos(angle)
    else:
        angle = position / 10000 ** (2 * np.arange(d_model) / d_model)  # (T, D)
        table[:, 0::2], table[:, 1::2] = np.sin(angle[:, 0::2]), np.cos(angle[:, 1::2])
    if zero_first:
        table[0] = 0
    return table
