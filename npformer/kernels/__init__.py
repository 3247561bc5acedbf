"""Kernels: fast versions of the pairs that take the most time, tested against the plain pairs.

The layers import their pairs from here. At each call, the arguments decide which version computes. The plain
pair of npformer.functional is the definition. It accepts complex numbers, which gradient checks need, and
arrays of NumPy and CuPy. A kernel accepts real arrays of one of the two modules. Each line below names the
plain function, the kernel for NumPy and the kernel for CuPy. The lines of dropout are in dropout.py.
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

embedding = plain.embedding  # it has no kernel, since indexing cannot be made faster
embedding_backward = choose(plain.embedding_backward, cpu.embedding_backward, gpu.embedding_backward)

attention = choose(plain.attention, cpu.attention, gpu.attention)
attention_backward = choose(plain.attention_backward, cpu.attention_backward, gpu.attention_backward)

layer_norm = choose(plain.layer_norm, cpu.layer_norm, gpu.layer_norm)
layer_norm_backward = choose(plain.layer_norm_backward, cpu.layer_norm_backward, gpu.layer_norm_backward)

add_norm = choose(plain.add_norm, cpu.add_norm, gpu.add_norm)
add_norm_backward = choose(plain.add_norm_backward, cpu.add_norm_backward, gpu.add_norm_backward)

cross_entropy = choose(plain.cross_entropy, cpu.cross_entropy, gpu.cross_entropy)
cross_entropy_backward = choose(
    plain.cross_entropy_backward, cpu.cross_entropy_backward, gpu.cross_entropy_backward
)

# for callers that do not need the logits any more: a kernel may overwrite them with the gradient
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
]
