"""Kernels: fast versions of the pairs that take the most time, tested against the plain pairs.

The layers import their pairs from here. The plain pair of npformer.functional is the reference. It accepts
complex numbers, which gradient checks need, and arrays of NumPy and CuPy. A kernel accepts real arrays of one
of the two modules. At each call, the first array decides which forward pass runs, and the class of the cache
leads to the backward pass of the same version (see choice.py). Each line below names the plain function, the
kernel for NumPy and the kernel for CuPy. dropout.py has the lines for dropout and the activations.
"""

from npformer import functional as plain
from npformer.kernels import cpu, gpu
from npformer.kernels.choice import choose, choose_by_cache, plain_pairs
from npformer.kernels.dropout import (
    activation_dropout,
    activation_dropout_backward,
    dropout,
    dropout_backward,
)

linear = choose(plain.linear, cpu.linear, gpu.linear, beside=1)
linear_backward = choose_by_cache(plain.linear_backward)

embedding = choose(plain.embedding, cpu.embedding, gpu.embedding, by=1)  # the table decides, not the ids
embedding_backward = choose_by_cache(plain.embedding_backward)

attention = choose(plain.attention, cpu.attention, gpu.attention, beside=1)
attention_backward = choose_by_cache(plain.attention_backward)

layer_norm = choose(plain.layer_norm, cpu.layer_norm, gpu.layer_norm, beside=1)
layer_norm_backward = choose_by_cache(plain.layer_norm_backward)

rms_norm = choose(plain.rms_norm, cpu.rms_norm, gpu.rms_norm, beside=1)
rms_norm_backward = choose_by_cache(plain.rms_norm_backward)

rotate = choose(plain.rotate, cpu.rotate, gpu.rotate, beside=1)
rotate_backward = choose_by_cache(plain.rotate_backward)

swiglu = choose(plain.swiglu, cpu.swiglu, gpu.swiglu, beside=1)
swiglu_backward = choose_by_cache(plain.swiglu_backward)

add_norm = choose(plain.add_norm, cpu.add_norm, gpu.add_norm, beside=1)
add_norm_backward = choose_by_cache(plain.add_norm_backward)

cross_entropy = choose(plain.cross_entropy, cpu.cross_entropy, gpu.cross_entropy)
cross_entropy_backward = choose_by_cache(plain.cross_entropy_backward)

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
