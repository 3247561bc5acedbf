"""The source lines of each kind of step: the function that contains them, how they begin, and the lesson."""

from typing import NamedTuple

# lines of one function: its file and its name, then how each line begins, as far as it has to be told apart
Lines = tuple[str, ...]


class StepLines(NamedTuple):
    """The source lines of one kind of step, and the lessons that derive them."""

    forward: Lines
    backward: Lines | None  # None if a step passes no gradient on
    lesson: str  # the file name of the lesson that introduces the forward line
    gradient_lesson: str = ""  # of the lesson that derives the gradient, if it is another one

    @property
    def backward_lesson(self) -> str:
        """The file name of the lesson that derives the gradient."""
        return self.gradient_lesson or self.lesson


STEP_LINES: dict[str, StepLines] = {
    "embed": StepLines(
        ("functional/embedding.py::embedding", "y = table"),
        ("functional/embedding.py::embedding_backward", "xp.add.at"),
        "02_embeddings.py",
    ),
    "add_positions": StepLines(
        ("nn/embedding.py::InputEmbedding.forward", "x ="),
        ("nn/embedding.py::InputEmbedding.backward", "self.positions.backward", "self.tokens.backward"),
        "03_positions.py",
    ),
    "constant": StepLines(
        ("nn/positions.py::FixedPositions.__init__", "self.table"), None, "03_positions.py"
    ),
    "parameter": StepLines(
        ("nn/module.py::Parameter.__init__", "self.value"),
        ("nn/module.py::Parameter.accumulate", "grad[at]"),
        "00_2_forward_and_backward.py",
    ),
    "linear": StepLines(
        ("functional/linear.py::linear", "y = rows"),
        ("functional/linear.py::linear_backward", "dweight", "dx"),
        "00_2_forward_and_backward.py",
    ),
    "add_bias": StepLines(
        ("functional/linear.py::linear", "y = y"),
        ("functional/linear.py::linear_backward", "dbias"),
        "00_2_forward_and_backward.py",
    ),
    "logits": StepLines(
        ("nn/embedding.py::TiedProjection.forward", "return"),
        ("nn/embedding.py::TiedProjection.backward", "dx", "self.weight.accumulate"),
        "12_3_label_smoothing_and_tied_weights.py",
    ),
    "transpose": StepLines(
        ("nn/embedding.py::TiedProjection.forward", "return"),
        ("nn/embedding.py::TiedProjection.backward", "self.weight.accumulate"),
        "12_3_label_smoothing_and_tied_weights.py",
    ),
    "scores": StepLines(
        ("functional/attention.py::attention", "scores ="),
        ("functional/attention.py::attention_backward", "dscores = dscores", "dq =", "dk"),
        "05_1_scaled_dot_product_attention.py",
        "05_2_the_backward_pass_of_attention.py",
    ),
    "mask": StepLines(
        ("functional/masks.py::mask_scores", "return array_module"),
        ("functional/masks.py::mask_scores_backward", "return dscores"),
        "06_1_masks.py",
    ),
    "mask_queries": StepLines(
        ("functional/tutorial_masks.py::tutorial_attention", "rows =", "y, attended"),
        ("functional/attention.py::attention_backward", "dscores = softmax_backward"),
        "06_4_query_masks_and_masks_from_vectors.py",
    ),
    "softmax": StepLines(
        ("functional/softmax.py::softmax", "e", "total", "y ="),
        ("functional/softmax.py::softmax_backward", "return"),
        "04_1_attention_without_parameters.py",
        "04_2_the_gradient_of_self_attention.py",
    ),
    "weighted_sum": StepLines(
        ("functional/attention.py::attention", "y ="),
        ("functional/attention.py::attention_backward", "ddropped", "dv"),
        "05_1_scaled_dot_product_attention.py",
        "05_2_the_backward_pass_of_attention.py",
    ),
    "split_heads": StepLines(
        ("functional/heads.py::split_heads", "return"),
        ("nn/attention/projections.py::Projection.project_backward", "merged"),
        "07_2_all_heads_in_one_product.py",
    ),
    "rotary_table": StepLines(
        ("functional/rotary.py::rotary_table", "return"), None, "23_2_rotary_positions.py"
    ),
    "rotate": StepLines(
        ("functional/rotary.py::rotate", "y[..., first]", "y[..., second]"),
        ("functional/rotary.py::rotate_backward", "dx"),
        "23_2_rotary_positions.py",
    ),
    "repeat_heads": StepLines(
        ("functional/heads.py::repeat_heads", "return"),
        ("functional/heads.py::repeat_heads_backward", "return dy.reshape"),
        "23_4_grouped_query_attention.py",
    ),
    "head_switch": StepLines(
        ("learn/course/ambiguous.py::ablated", "blocks[list(heads)]"), None, "15_3_head_ablation.py"
    ),
    "merge_heads": StepLines(
        ("functional/heads.py::merge_heads", "return"),
        ("nn/attention/multi_head.py::MultiHeadAttention.backward", "dz"),
        "07_2_all_heads_in_one_product.py",
        "07_3_the_output_projection_and_the_backward_pass.py",
    ),
    "relative_products": StepLines(
        ("functional/relative.py::_scores", "products"),
        (
            "functional/relative.py::relative_attention_by_distance_backward",
            "dq_positions",
            "dq, dkey_positions",
        ),
        "21_2_relative_positions_by_distance.py",
    ),
    "spread_by_distance": StepLines(
        ("functional/relative.py::spread_by_distance", "return"),
        ("functional/relative.py::relative_attention_by_distance_backward", "dproducts = sum_to_shape"),
        "21_2_relative_positions_by_distance.py",
    ),
    "relative_scores": StepLines(
        ("functional/relative.py::_scores", "return scores +"),
        ("functional/relative.py::relative_attention_by_distance_backward", "dq =", "dk"),
        "21_2_relative_positions_by_distance.py",
    ),
    "scale_scores": StepLines(
        ("functional/relative.py::relative_attention_by_distance", "dropped"),
        ("functional/relative.py::relative_attention_by_distance_backward", "dscores"),
        "05_3_what_the_scale_does.py",
        "21_2_relative_positions_by_distance.py",
    ),
    "collect_by_distance": StepLines(
        ("functional/relative.py::relative_attention_by_distance", "share"),
        ("functional/relative.py::relative_attention_by_distance_backward", "ddropped = ddropped"),
        "21_2_relative_positions_by_distance.py",
    ),
    "relative_values": StepLines(
        ("functional/relative.py::relative_attention_by_distance", "y_positions"),
        ("functional/relative.py::relative_attention_by_distance_backward", "dshare"),
        "21_2_relative_positions_by_distance.py",
    ),
    "relative_sum": StepLines(
        ("functional/relative.py::relative_attention_by_distance", "y ="),
        ("functional/relative.py::relative_attention_by_distance_backward", "ddropped = dy", "dv"),
        "21_2_relative_positions_by_distance.py",
    ),
    "layer_norm_statistics": StepLines(
        ("functional/norm.py::layer_norm", "centered", "variance", "rstd"),
        ("functional/norm.py::layer_norm_backward", "along", "dx"),
        "08_1_layer_norm.py",
        "08_2_the_backward_pass_of_layer_norm.py",
    ),
    "layer_norm_normalize": StepLines(
        ("functional/norm.py::layer_norm", "xhat"),
        ("functional/norm.py::layer_norm_backward", "along", "dx"),
        "08_1_layer_norm.py",
        "08_2_the_backward_pass_of_layer_norm.py",
    ),
    "layer_norm_scale": StepLines(
        ("functional/norm.py::layer_norm", "return"),
        ("functional/norm.py::layer_norm_backward", "dbias", "dgain", "dxhat"),
        "08_1_layer_norm.py",
        "08_2_the_backward_pass_of_layer_norm.py",
    ),
    "layer_norm_gain": StepLines(
        ("functional/norm.py::layer_norm", "return"),
        ("functional/norm.py::layer_norm_backward", "dgain", "dxhat"),
        "08_1_layer_norm.py",
        "08_2_the_backward_pass_of_layer_norm.py",
    ),
    "rms_norm": StepLines(
        ("functional/rms_norm.py::rms_norm", "mean_square", "rrms", "xhat"),
        ("functional/rms_norm.py::rms_norm_backward", "along", "dx"),
        "23_1_rms_norm.py",
    ),
    "rms_norm_scale": StepLines(
        ("functional/rms_norm.py::rms_norm", "return"),
        ("functional/rms_norm.py::rms_norm_backward", "dgain", "dxhat"),
        "23_1_rms_norm.py",
    ),
    "residual": StepLines(
        ("models/transformer/pre_norm.py::PreNormEncoderLayer.forward", "x = x + h  #"),
        ("models/transformer/pre_norm.py::PreNormEncoderLayer.backward", "return"),
        "08_3_the_residual_connection.py",
    ),
    "dropout": StepLines(
        ("functional/dropout.py::dropout", "return x *"),
        ("functional/dropout.py::dropout_backward", "return"),
        "08_3_the_residual_connection.py",
    ),
    "relu": StepLines(
        ("functional/activations.py::relu", "y ="),
        ("functional/activations.py::relu_backward", "return"),
        "09_2_activations_and_dead_units.py",
    ),
    "gelu": StepLines(
        ("functional/activations.py::gelu", "return"),
        ("functional/activations.py::gelu_backward", "return"),
        "09_2_activations_and_dead_units.py",
    ),
    "gelu_tanh": StepLines(
        ("functional/activations.py::gelu_tanh", "return"),
        ("functional/activations.py::gelu_tanh_backward", "return"),
        "09_2_activations_and_dead_units.py",
    ),
    "silu": StepLines(
        ("functional/activations.py::swish", "return"),
        ("functional/activations.py::swish_backward", "return"),
        "23_3_gated_feed_forward_networks.py",
    ),
    "sigmoid": StepLines(
        ("functional/activations.py::sigmoid", "y ="),
        ("functional/activations.py::sigmoid_backward", "return"),
        "23_3_gated_feed_forward_networks.py",
    ),
    "normal_cdf": StepLines(
        ("functional/activations.py::_normal_cdf", "phi = (1"),
        ("functional/activations.py::gelu_backward", "density"),
        "09_2_activations_and_dead_units.py",
    ),
    "tanh": StepLines(
        ("functional/activations.py::gelu_tanh", "t"),
        ("functional/activations.py::gelu_tanh_backward", "dinner"),
        "09_2_activations_and_dead_units.py",
    ),
    "gated": StepLines(
        ("functional/gated.py::swiglu", "return"),
        ("functional/gated.py::swiglu_backward", "dactivated"),
        "23_3_gated_feed_forward_networks.py",
    ),
    "log_softmax": StepLines(
        ("functional/softmax.py::log_softmax", "y ="),
        ("functional/softmax.py::log_softmax_backward", "return"),
        "12_1_the_cross_entropy.py",
        "12_2_the_gradient_of_the_cross_entropy.py",
    ),
    "losses": StepLines(
        ("functional/losses.py::cross_entropy", "losses = -", "losses = losses"),
        ("functional/losses.py::cross_entropy_backward", "drows = xp", "drows[xp"),
        "12_1_the_cross_entropy.py",
        "12_2_the_gradient_of_the_cross_entropy.py",
    ),
    "cross_entropy": StepLines(
        ("functional/losses.py::cross_entropy", "return"),
        ("functional/losses.py::cross_entropy_backward", "drows = drows"),
        "12_1_the_cross_entropy.py",
        "12_2_the_gradient_of_the_cross_entropy.py",
    ),
}

# the lines that replace others in models with other settings, by the name of the variant
VARIANTS: dict[str, dict[str, StepLines]] = {
    "post-norm": {
        "residual": StepLines(
            ("functional/residual.py::add_norm", "y, norm"),
            ("functional/residual.py::add_norm_backward", "return"),
            "08_3_the_residual_connection.py",
        ),
    },
    "sequence": {
        "residual": StepLines(
            ("models/transformer/sequences.py::Postprocess.forward", "h ="),
            ("models/transformer/sequences.py::Postprocess.backward", "dx ="),
            "08_4_norm_before_or_after.py",
        ),
    },
    "untied": {
        "logits": StepLines(
            ("nn/linear.py::Linear.forward", "return"),
            ("nn/linear.py::Linear.backward", "dx", "self.weight.accumulate"),
            "00_2_forward_and_backward.py",
        ),
    },
    "filled-mask": {
        "mask": StepLines(
            ("functional/tutorial_masks.py::fill_scores", "scores = xp.where(mask"),
            ("functional/tutorial_masks.py::fill_scores_backward", "dscores = xp.where(mask"),
            "06_2_minus_infinity_and_its_substitutes.py",
        ),
    },
    "added-mask": {
        "mask": StepLines(
            ("functional/tutorial_masks.py::fill_scores", "scores = scores"),
            ("functional/tutorial_masks.py::fill_scores_backward", "return"),
            "06_2_minus_infinity_and_its_substitutes.py",
        ),
    },
}
