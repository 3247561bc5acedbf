"""npformer: the Transformer from scratch in NumPy, every backward pass by hand, every gradient checked."""

from npformer import gradcheck
from npformer.attention import MultiHeadAttention
from npformer.errors import UserError
from npformer.leaks import assert_no_leak
from npformer.module import Module, Parameter
from npformer.show import show
from npformer.transformer import Transformer, TransformerConfig

__version__ = "0.1.0"

__all__ = [
    "Module",
    "MultiHeadAttention",
    "Parameter",
    "Transformer",
    "TransformerConfig",
    "UserError",
    "assert_no_leak",
    "gradcheck",
    "show",
]
