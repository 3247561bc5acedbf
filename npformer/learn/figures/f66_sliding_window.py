"""F66: a sliding window, and the shares of the tokens that it reaches through several layers."""

from functools import partial

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError, quantity
from npformer.functional import attention
from npformer.functional.masks import causal_mask
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import attention_map, mask_map
from npformer.plots.composition import beside


@figure("F66", "A sliding window", "course", "FW")
def sliding_window(*, length: int = 8, window: int = 3, n_layers: int = 2) -> Drawing:
    """Draw the mask of a window, and the share of each token in the outputs after several layers.

    Args:
        length: The number of tokens.
        window: The number of tokens to which a token attends, itself included.
        n_layers: The number of layers.
    Raises:
        UserError: If there are fewer than one layer or two tokens.
    """
    if n_layers < 1 or length < 2:
        raise UserError(f"n_layers is {n_layers} and length is {length}: give at least 1 layer and 2 tokens")
    x = np.zeros((length, 1))
    whole, mask = causal_mask(length, x), causal_mask(length, x, window=window)  # (T, T)
    shares = _shares(mask, n_layers)
    panels = [
        partial(mask_map, whole, None, None),
        partial(mask_map, mask, None, None),
        partial(attention_map, shares, None, None, mask=shares > 0),
    ]
    names = ["causal mask", f"window of {window}", f"shares after {quantity(n_layers, 'layer')}"]
    picture = beside(panels, names=names)
    return Drawing(
        picture,
        f"With a window of {window} a token attends to itself and {quantity(window - 1, 'token')} before it: "
        f"{mask.sum()} pairs of {length} tokens in place of {whole.sum()}. Information still moves further, "
        f"because each layer attends to the outputs of the layer before it: after "
        f"{quantity(n_layers, 'layer')} the last token depends on "
        f"{quantity(int((shares[-1] > 0).sum()), 'token')}. Right: the share of each token (column) in each "
        "output (row), if every layer gives all tokens of its window the same weight.",
    )


def _shares(mask: Array, n_layers: int) -> Array:
    """Return the share of each token in each output, (T, T), with attention weights from equal scores.

    Args:
        mask: Bool, (T, T), the mask of every layer.
        n_layers: The number of layers.
    """
    equal = np.zeros((len(mask), 1))
    weights = attention(equal, equal, equal, mask)[1].weights  # (T, T)
    return np.asarray(np.linalg.matrix_power(weights, n_layers))
