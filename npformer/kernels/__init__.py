"""Kernels: fast versions of the pairs that take the most time, tested against the plain pairs.

The layers import their pairs from here. At each call, the arguments decide which version runs. The plain pair
of npformer.functional is the reference. It accepts complex numbers, which gradient checks need, and
arrays of NumPy and CuPy. A kernel accepts real arrays of one of the two modules. Each line below names the
plain function, the kernel for NumPy and the kernel for CuPy, if there is one. dropout.py has the lines for
dropout and the activations.
"""

from npformer import functional as plain
from npformer.kernels import cpu, gpu
from npformer.kernels.choice import choose, plain_pairs
from npformer.kernels.dropout import (
    activation_dropout,
    activation_dropout_backward,
    dropout,
    dropout_backward,
)

linear = choose(plain.linear, cpu.linear, gpu.linear)
linear_backward = choose(plain.linear_backward, cpu.linear_backward, gpu.linear_backward)

embedding = plain.embedding  # the forward pass has no kernel, since indexing cannot be made faster
embedding_backward = choose(plain.embedding_backward, cpu.embedding_backward, gpu.embedding_backward)

attention = choose(plain.attention, cpu.attention, gpu.attention)
attention_backward = choose(plain.attention_backward, cpu.attention_backward, gpu.attention_backward)

layer_norm = choose(plain.layer_norm, cpu.layer_norm, gpu.layer_norm)
layer_norm_backward = choose(plain.layer_norm_backward, cpu.layer_norm_backward, gpu.layer_norm_backward)

rms_norm = choose(plain.rms_norm, cpu.rms_norm, gpu.rms_norm)
rms_norm_backward = choose(plain.rms_norm_backward, cpu.rms_norm_backward, gpu.rms_norm_backward)

rotate = choose(plain.rotate, cpu.rotate, gpu.rotate)
rotate_backward = choose(plain.rotate_backward, cpu.rotate_backward, gpu.rotate_backward)

swiglu = choose(plain.swiglu, cpu.swiglu, gpu.swiglu)
swiglu_backward = choose(plain.swiglu_backward, cpu.swiglu_backward, gpu.swiglu_backward)

add_norm = choose(plain.add_norm, cpu.add_norm, gpu.add_norm)
add_norm_backward = choose(plain.add_norm_backward, cpu.add_norm_backward, gpu.add_norm_backward)

cross_entropy = choose(plain.cross_entropy, cpu.cross_entropy, gpu.cross_entropy)
cross_entropy_backward = choose(
    plain.cross_entropy_backward, cpu.cross_entropy_backward, gpu.cross_entropy_backward
)

# a kernel may overwrite the logits with their gradient, for callers that do not need the logits any more
cross_entropy_in_place = choose(plain.cross_entropy, cpu.cross_entropy_in_place, gpu.cross_entropy_in_place)

adam_update = choose(plain.adam_update, cpu.adam_update, gpu.adam_update)

__all__ = [
    "activation_dropout",
    "activation_dropout_backward",
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
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "plain_pairs",
    "rms_norm",
    "rms_norm_backward",
    "rotate",
    "rotate_backward",
    "swiglu",
    "swiglu_backward",
]
