"""The mathematics without parameters: pure pairs f(x, ...) -> (y, cache) and f_backward(dy, cache).

Each pair asks the arrays for their module and keeps their dtype: float32 for training, float64 for
checking, complex128 for derivatives by complex step.
"""

from npformer.functional.activations import (
    ACTIVATIONS,
    gelu,
    gelu_backward,
    gelu_tanh,
    gelu_tanh_backward,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    swish,
    swish_backward,
)
from npformer.functional.attention import AttentionCache, attention, attention_backward
from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.embedding import embedding, embedding_backward
from npformer.functional.heads import (
    merge_heads,
    merge_heads_on_batch,
    split_heads,
    split_heads_on_batch,
)
from npformer.functional.linear import linear, linear_backward
from npformer.functional.losses import (
    cross_entropy,
    cross_entropy_backward,
    kl_divergence,
    kl_divergence_backward,
    l2_distance,
    l2_distance_backward,
    smooth_targets,
)
from npformer.functional.masking import EXACT, Masking, mask_scores, mask_scores_backward
from npformer.functional.norm import layer_norm, layer_norm_backward
from npformer.functional.recurrent import (
    gru_cell,
    gru_cell_backward,
    hold,
    hold_backward,
    lstm_cell,
    lstm_cell_backward,
)
from npformer.functional.similarity import (
    concat_similarity,
    concat_similarity_backward,
    dot_similarity,
    dot_similarity_backward,
    general_similarity,
    general_similarity_backward,
    perceptron_similarity,
    perceptron_similarity_backward,
)
from npformer.functional.softmax import (
    log_softmax,
    log_softmax_backward,
    softmax,
    softmax_backward,
)

__all__ = [
    "ACTIVATIONS",
    "EXACT",
    "AttentionCache",
    "Masking",
    "attention",
    "attention_backward",
    "concat_similarity",
    "concat_similarity_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "dot_similarity",
    "dot_similarity_backward",
    "dropout",
    "dropout_backward",
    "embedding",
    "embedding_backward",
    "gelu",
    "gelu_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "general_similarity",
    "general_similarity_backward",
    "gru_cell",
    "gru_cell_backward",
    "hold",
    "hold_backward",
    "kl_divergence",
    "kl_divergence_backward",
    "l2_distance",
    "l2_distance_backward",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_backward",
    "log_softmax",
    "log_softmax_backward",
    "lstm_cell",
    "lstm_cell_backward",
    "mask_scores",
    "mask_scores_backward",
    "merge_heads",
    "merge_heads_on_batch",
    "perceptron_similarity",
    "perceptron_similarity_backward",
    "relu",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "smooth_targets",
    "softmax",
    "softmax_backward",
    "split_heads",
    "split_heads_on_batch",
    "swish",
    "swish_backward",
]
