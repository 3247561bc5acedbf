"""Functions of PyTorch and JAX as layers: autograd.Function, nn.Module, custom_vjp, custom_jvp and others.

The adapters give such a function the two methods of a layer, on NumPy arrays. The checker then treats it as
any other layer. PyTorch and JAX are imported only when something of theirs is given.
"""

from npformer.checking.foreign.adapt import adapt, is_autograd_function, library_of, library_of_function
from npformer.checking.foreign.layer import ForeignLayer, WrongBackward

__all__ = [
    "ForeignLayer",
    "WrongBackward",
    "adapt",
    "is_autograd_function",
    "library_of",
    "library_of_function",
]
