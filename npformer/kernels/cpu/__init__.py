"""The kernels for NumPy arrays."""

from npformer.kernels.cpu.activations import (
    gelu,
    gelu_backward,
    gelu_tanh,
    gelu_tanh_backward,
    swiglu,
    swiglu_backward,
)
from npformer.kernels.cpu.adam import adam_update
from npformer.kernels.cpu.attention import attention, attention_backward
from npformer.kernels.cpu.dropout import (
    dropout,
    dropout_backward,
    relu_dropout,
    relu_dropout_backward,
)
from npformer.kernels.cpu.embedding import embedding, embedding_backward
from npformer.kernels.cpu.linear import linear, linear_backward
from npformer.kernels.cpu.losses import cross_entropy, cross_entropy_backward, cross_entropy_in_place
from npformer.kernels.cpu.norm import (
    add_norm,
    add_norm_backward,
    layer_norm,
    layer_norm_backward,
)
from npformer.kernels.cpu.rms_norm import rms_norm, rms_norm_backward
from npformer.kernels.cpu.rotary import rotate, rotate_backward

__all__ = [
    "adam_update",
    "add_norm",
    "add_norm_backward",
    "attention",
    "attention_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "cross_entropy_in_place",
    "dropout",
    "dropout_backward",
    "embedding",
    "embedding_backward",
    "gelu",
    "gelu_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "relu_dropout",
    "relu_dropout_backward",
    "rms_norm",
    "rms_norm_backward",
    "rotate",
    "rotate_backward",
    "swiglu",
    "swiglu_backward",
]
