"""The trials that the specimens with rotary positions share."""

from typing import Any

import numpy as np

from npformer.functional import attention, rotary_table, rotate
from npformer.functional.masks import causal_mask
from npformer.learn.bugs.specimen import Names
from npformer.learn.bugs.trials import equal, gradients, no_leak, normal

LATER = 10  # the position of the first token of a sentence that does not begin the text


def compare_with_package(own: Names) -> dict[str, Any]:
    """Compare the output of forward with that of the package's functions."""
    layer, x = own.RotaryAttention(6), normal(2, 5, 6)
    q, k, v = np.split(layer.query_key_value.forward(x)[0], 3, -1)
    cos, sin = rotary_table(np.arange(5), 6, base=100.0)
    right, _ = attention(rotate(q, cos, sin)[0], rotate(k, cos, sin)[0], v, causal_mask(5, x))
    return {"y": (layer.forward(x)[0], right)}


def move_sentence(own: Names) -> dict[str, Any]:
    """Compare the output at the beginning of a text with that at a later position."""
    layer, x = own.RotaryAttention(6), normal(2, 5, 6)
    return {"y of a sentence that begins later": (layer.forward(x, LATER)[0], layer.forward(x)[0])}


def float32_results(own: Names) -> dict[str, Any]:
    """Return everything that forward and backward compute from float32."""
    layer, x = own.RotaryAttention(6, dtype=np.float32), normal(2, 4, 6).astype(np.float32)
    y, cache = layer.forward(x)
    return {"y": y, "dx": layer.backward(np.ones_like(y), cache)}


def _leak_arguments(own: Names) -> tuple[Any, Any]:
    """Return the layer and an input, for the search for leaks."""
    layer = own.RotaryAttention(6)
    return lambda x: layer.forward(x)[0], normal(1, 4, 6)


LAYER_GRADIENTS = gradients(
    "gradient check of the layer", lambda own: (own.RotaryAttention(6), normal(2, 5, 6))
)
NO_LEAK = no_leak("no output depends on a later token", _leak_arguments)
AS_IN_THE_PACKAGE = equal("forward gives the same as the functions of the package", compare_with_package)
