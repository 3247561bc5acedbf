"""The mathematics as pure pairs: f(x, ...) -> (y, cache) and f_backward(dy, cache) -> gradients.

A function is called pure here because it has no state: parameters are arguments. Each pair computes with the
module (NumPy or CuPy) and the dtype of its arguments: float32 for training, float64 for gradient checks,
complex128 for derivatives by complex step.

These pairs are the reference implementation. For a few of them `npformer/kernels/` contains faster versions.
Tests compare these with the pairs here. Training calls the faster versions. A gradient check calls the pairs,
so a debugger stops at a breakpoint in softmax_backward during a gradient check, but not during training.

dy must have the shape and the dtype of y. The pairs do not check it: most caches do not hold the shape of y,
and a check in every pair would be repeated in every step of a training. So a dy of another shape is
broadcast, or ends in an error of NumPy. Most layers of `npformer.nn` check it once for each call of backward
(nn/checks.py).
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
    tanh,
    tanh_backward,
)
from npformer.functional.adam import adam_update, decay_weights
from npformer.functional.attend import attend, attend_backward
from npformer.functional.attention import AttentionCache, attention, attention_backward
from npformer.functional.batch_norm import batch_norm, batch_norm_backward
from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.embedding import embedding, embedding_backward
from npformer.functional.experts import (
    combine,
    combine_backward,
    load_balancing,
    load_balancing_backward,
    route,
    route_backward,
)
from npformer.functional.gated import (
    GATED_ACTIVATIONS,
    geglu,
    geglu_backward,
    geglu_tanh,
    geglu_tanh_backward,
    swiglu,
    swiglu_backward,
)
from npformer.functional.halting import mix_states, mix_states_backward
from npformer.functional.hard import (
    entropy,
    entropy_backward,
    hard_attend,
    hard_attend_backward,
    log_probability,
    log_probability_backward,
    one_hot_argmax,
    one_hot_sample,
    score_function,
    straight_through_backward,
)
from npformer.functional.heads import (
    join_shared,
    join_shared_backward,
    merge_heads,
    merge_heads_on_batch,
    repeat_heads,
    repeat_heads_backward,
    split_heads,
    split_heads_on_batch,
)
from npformer.functional.latent import (
    latent_attend,
    latent_attend_backward,
    unit_weights,
    unit_weights_backward,
)
from npformer.functional.linear import linear, linear_backward
from npformer.functional.linear_attention import (
    delta_rule,
    delta_rule_backward,
    gated_delta_rule,
    gated_delta_rule_backward,
    linear_attention,
    linear_attention_backward,
)
from npformer.functional.lora import lora_linear, lora_linear_backward
from npformer.functional.losses import (
    cross_entropy,
    cross_entropy_backward,
    kl_divergence,
    kl_divergence_backward,
    l2_distance,
    l2_distance_backward,
    smooth_targets,
)
from npformer.functional.masks import mask_scores, mask_scores_backward
from npformer.functional.muon import orthogonalize
from npformer.functional.norm import layer_norm, layer_norm_backward
from npformer.functional.patches import patch_embedding, patch_embedding_backward
from npformer.functional.pooling import (
    cosine_similarity,
    cosine_similarity_backward,
    mean_pool,
    mean_pool_backward,
)
from npformer.functional.preferences import (
    dpo,
    dpo_backward,
    group_advantages,
    grpo,
    grpo_backward,
)
from npformer.functional.qk_norm import qk_norm, qk_norm_backward
from npformer.functional.quantize import Quantized, quantize
from npformer.functional.recurrent import (
    gru_cell,
    gru_cell_backward,
    lstm_cell,
    lstm_cell_backward,
    masked_update,
    masked_update_backward,
)
from npformer.functional.relative import (
    clipped_distance,
    collect_by_distance,
    relative_attention,
    relative_attention_backward,
    relative_attention_by_distance,
    relative_attention_by_distance_backward,
    spread_by_distance,
)
from npformer.functional.relative_bias import relative_bias, relative_bias_backward, relative_buckets
from npformer.functional.residual import (
    activation_dropout,
    activation_dropout_backward,
    add_norm,
    add_norm_backward,
)
from npformer.functional.rms_norm import rms_norm, rms_norm_backward
from npformer.functional.rollout import attention_rollout
from npformer.functional.rotary import rotary_table, rotate, rotate_backward
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
from npformer.functional.soft_cap import soft_cap, soft_cap_backward
from npformer.functional.softmax import (
    log_softmax,
    log_softmax_backward,
    softmax,
    softmax_backward,
)
from npformer.functional.tutorial_masks import (
    Masking,
    fill_scores,
    fill_scores_backward,
    tutorial_attention,
    tutorial_attention_backward,
)
from npformer.functional.window import (
    gaussian_window,
    gaussian_window_backward,
    inside_window,
    predict_position,
    predict_position_backward,
)

__all__ = [
    "ACTIVATIONS",
    "GATED_ACTIVATIONS",
    "AttentionCache",
    "Masking",
    "Quantized",
    "activation_dropout",
    "activation_dropout_backward",
    "adam_update",
    "add_norm",
    "add_norm_backward",
    "attend",
    "attend_backward",
    "attention",
    "attention_backward",
    "attention_rollout",
    "batch_norm",
    "batch_norm_backward",
    "clipped_distance",
    "collect_by_distance",
    "combine",
    "combine_backward",
    "concat_similarity",
    "concat_similarity_backward",
    "cosine_similarity",
    "cosine_similarity_backward",
    "cross_entropy",
    "cross_entropy_backward",
    "decay_weights",
    "delta_rule",
    "delta_rule_backward",
    "dot_similarity",
    "dot_similarity_backward",
    "dpo",
    "dpo_backward",
    "dropout",
    "dropout_backward",
    "embedding",
    "embedding_backward",
    "entropy",
    "entropy_backward",
    "fill_scores",
    "fill_scores_backward",
    "gated_delta_rule",
    "gated_delta_rule_backward",
    "gaussian_window",
    "gaussian_window_backward",
    "geglu",
    "geglu_backward",
    "geglu_tanh",
    "geglu_tanh_backward",
    "gelu",
    "gelu_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "general_similarity",
    "general_similarity_backward",
    "group_advantages",
    "grpo",
    "grpo_backward",
    "gru_cell",
    "gru_cell_backward",
    "hard_attend",
    "hard_attend_backward",
    "inside_window",
    "join_shared",
    "join_shared_backward",
    "kl_divergence",
    "kl_divergence_backward",
    "l2_distance",
    "l2_distance_backward",
    "latent_attend",
    "latent_attend_backward",
    "layer_norm",
    "layer_norm_backward",
    "linear",
    "linear_attention",
    "linear_attention_backward",
    "linear_backward",
    "load_balancing",
    "load_balancing_backward",
    "log_probability",
    "log_probability_backward",
    "log_softmax",
    "log_softmax_backward",
    "lora_linear",
    "lora_linear_backward",
    "lstm_cell",
    "lstm_cell_backward",
    "mask_scores",
    "mask_scores_backward",
    "masked_update",
    "masked_update_backward",
    "mean_pool",
    "mean_pool_backward",
    "merge_heads",
    "merge_heads_on_batch",
    "mix_states",
    "mix_states_backward",
    "one_hot_argmax",
    "one_hot_sample",
    "orthogonalize",
    "patch_embedding",
    "patch_embedding_backward",
    "perceptron_similarity",
    "perceptron_similarity_backward",
    "predict_position",
    "predict_position_backward",
    "qk_norm",
    "qk_norm_backward",
    "quantize",
    "relative_attention",
    "relative_attention_backward",
    "relative_attention_by_distance",
    "relative_attention_by_distance_backward",
    "relative_bias",
    "relative_bias_backward",
    "relative_buckets",
    "relu",
    "relu_backward",
    "repeat_heads",
    "repeat_heads_backward",
    "rms_norm",
    "rms_norm_backward",
    "rotary_table",
    "rotate",
    "rotate_backward",
    "route",
    "route_backward",
    "score_function",
    "sigmoid",
    "sigmoid_backward",
    "smooth_targets",
    "soft_cap",
    "soft_cap_backward",
    "softmax",
    "softmax_backward",
    "split_heads",
    "split_heads_on_batch",
    "spread_by_distance",
    "straight_through_backward",
    "swiglu",
    "swiglu_backward",
    "swish",
    "swish_backward",
    "tanh",
    "tanh_backward",
    "tutorial_attention",
    "tutorial_attention_backward",
    "unit_weights",
    "unit_weights_backward",
]
