"""npformer: the Transformer from scratch in NumPy, every backward pass by hand, every gradient checked.

    >>> import npformer
    >>> translator = npformer.load("en-de")
    >>> translator.translate("A man is riding a bicycle.")
    >>> translator.attention("A man is riding a bicycle.").plot()
    >>> npformer.gradcheck(npformer.nn.LayerNorm(8), x)

The public names are imported when they are first used, so that `import npformer` is fast.
"""

import importlib
from typing import TYPE_CHECKING, Any

from npformer.version import __version__ as __version__

if TYPE_CHECKING:  # for type checkers and editors; at run time __getattr__ imports the same names
    from npformer import (
        checking,
        data,
        explorer,
        functional,
        generation,
        interop,
        lenses,
        models,
        nn,
        plots,
        pretrained,
        training,
    )
    from npformer.checking import gradcheck
    from npformer.checking.leaks import assert_no_leak
    from npformer.errors import UserError
    from npformer.models.transformer import Transformer, TransformerConfig
    from npformer.nn.attention import MultiHeadAttention
    from npformer.nn.module import Module, Parameter
    from npformer.nn.show import show
    from npformer.pretrained.loading import load
    from npformer.pretrained.train_on_files import train

__all__ = [
    "Module",
    "MultiHeadAttention",
    "Parameter",
    "Transformer",
    "TransformerConfig",
    "UserError",
    "assert_no_leak",
    "checking",
    "data",
    "explorer",
    "functional",
    "generation",
    "gradcheck",
    "interop",
    "lenses",
    "load",
    "models",
    "nn",
    "plots",
    "pretrained",
    "show",
    "train",
    "training",
]

# the module that defines each public function and class; the other public names are packages
_DEFINED_IN = {
    "Module": "npformer.nn.module",
    "MultiHeadAttention": "npformer.nn.attention",
    "Parameter": "npformer.nn.module",
    "Transformer": "npformer.models.transformer",
    "TransformerConfig": "npformer.models.transformer",
    "UserError": "npformer.errors",
    "assert_no_leak": "npformer.checking.leaks",
    "gradcheck": "npformer.checking",
    "load": "npformer.pretrained.loading",
    "show": "npformer.nn.show",
    "train": "npformer.pretrained.train_on_files",
}


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name not in __all__:
        raise AttributeError(f"module 'npformer' has no attribute {name!r}")
    if name not in _DEFINED_IN:
        return importlib.import_module(f"npformer.{name}")  # which sets the attribute
    thing = getattr(importlib.import_module(_DEFINED_IN[name]), name)
    globals()[name] = thing
    return thing


def __dir__() -> list[str]:
    """Return the public names, whether or not they have been used."""
    return sorted([*__all__, "__version__"])
