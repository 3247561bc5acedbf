"""Kernels: fast versions of the pairs where time goes, held to the plain ones by tests.

A layer takes its pairs from here and does not know which version it calls. The plain version, in
npformer.functional, is the definition: it takes complex numbers, as gradient checks do, and the arrays of
any module. Of the two beside it in this table, one takes real NumPy arrays and one real CuPy arrays.
"""

from npformer import functional as plain
from npformer.kernels import cpu, gpu
from npformer.kernels.choice import choose, plain_pairs

linear = choose(plain.linear, cpu.linear, gpu.linear)
linear_backward = choose(plain.linear_backward, cpu.linear_backward, gpu.linear_backward)

embedding = plain.embedding  # a look-up is as fast as it can be
embedding_backward = choose(plain.embedding_backward, cpu.embedding_backward, gpu.embedding_backward)

attention = choose(plain.attention, cpu.attention, gpu.attention)
attention_backward = choose(plain.attention_backward, cpu.attention_backward, gpu.attention_backward)

layer_norm = choose(plain.layer_norm, cpu.layer_norm, gpu.layer_norm)
layer_norm_backward = choose(plain.layer_norm_backward, cpu.layer_norm_backward, gpu.layer_norm_backward)

residual_norm = choose(plain.residual_norm, cpu.residual_norm, gpu.residual_norm)
residual_norm_backward = choose(
    plain.residual_norm_backward, cpu.residual_norm_backward, gpu.residual_norm_backward
)

dropout = choose(plain.dropout, cpu.dropout, gpu.dropout)
dropout_backward = choose(plain.dropout_backward, cpu.dropout_backward, gpu.dropout_backward)

relu_dropout = choose(plain.relu_dropout, cpu.relu_dropout, gpu.relu_dropout)
relu_dropout_backward = choose(
    plain.relu_dropout_backward, cpu.relu_dropout_backward, gpu.relu_dropout_backward
)

cross_entropy = choose(plain.cross_entropy, cpu.cross_entropy, gpu.cross_entropy)
cross_entropy_backward = choose(
    plain.cross_entropy_backward, cpu.cross_entropy_backward, gpu.cross_entropy_backward
)

adam_update = choose(plain.adam_update, cpu.adam_update, gpu.adam_update)

__all__ = [
    "adam_update",
    "attention",
    "attention_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "dropout",
    "dropout_backward",
    "embedding",
    "embedding_backward",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "plain_pairs",
    "relu_dropout",
    "relu_dropout_backward",
    "residual_norm",
    "residual_norm_backward",
]
