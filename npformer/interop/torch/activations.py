"""The activations of feed-forward networks: their names in npformer and their functions in PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "relu": nn.functional.relu,
    "gelu": nn.functional.gelu,
    # nn.GELU(approximate="tanh") would be taken for "gelu" by the fast path of nn.TransformerEncoderLayer
    "gelu_tanh": partial(nn.functional.gelu, approximate="tanh"),
    "swish": nn.functional.silu,
}
MODULES: dict[type, str] = {nn.ReLU: "relu", nn.GELU: "gelu", nn.SiLU: "swish"}


def name_of(activation: Any) -> str | None:
    """Return npformer's name of an activation of PyTorch, a function or a module, or None if it has none."""
    if getattr(activation, "approximate", None) == "tanh":  # of nn.GELU
        return "gelu_tanh"
    if isinstance(activation, partial):
        same = activation.func is nn.functional.gelu and activation.keywords == {"approximate": "tanh"}
        return "gelu_tanh" if same else None
    names = {function: name for name, function in FUNCTIONS.items()}
    return MODULES.get(type(activation), names.get(activation))
