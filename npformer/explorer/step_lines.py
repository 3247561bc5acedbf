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


# the lessons, by their numbers
LESSONS = {
    "0.2": "00_2_forward_and_backward.py",
    "2.1": "02_1_embeddings.py",
    "3.1": "03_1_positions.py",
    "4.1": "04_1_attention_without_parameters.py",
    "4.2": "04_2_the_gradient_of_self_attention.py",
    "5.1": "05_1_scaled_dot_product_attention.py",
    "5.2": "05_2_the_backward_pass_of_attention.py",
    "5.3": "05_3_what_the_scale_does.py",
    "6.1": "06_1_masks.py",
    "6.2": "06_2_minus_infinity_and_its_substitutes.py",
    "6.4": "06_4_query_masks_and_masks_from_vectors.py",
    "7.2": "07_2_all_heads_in_one_product.py",
    "7.3": "07_3_the_output_projection_and_the_backward_pass.py",
    "8.1": "08_1_layer_norm.py",
    "8.2": "08_2_the_backward_pass_of_layer_norm.py",
    "8.3": "08_3_the_residual_connection.py",
    "8.4": "08_4_norm_before_or_after.py",
    "9.2": "09_2_activations_and_dead_units.py",
    "12.1": "12_1_the_cross_entropy.py",
    "12.2": "12_2_the_gradient_of_the_cross_entropy.py",
    "12.3": "12_3_label_smoothing_and_tied_weights.py",
    "15.3": "15_3_head_ablation.py",
    "21.2": "21_2_relative_positions_by_distance.py",
    "23.1": "23_1_rms_norm.py",
    "23.2": "23_2_rotary_positions.py",
    "23.3": "23_3_gated_feed_forward_networks.py",
    "23.4": "23_4_grouped_query_attention.py",
}


def _lines(forward: str, gradient: str | None, *lessons: str) -> StepLines:
    """Return the lines of a step, in each pass: the function and the beginnings, divided by " | "."""
    backward = None if gradient is None else tuple(gradient.split(" | "))
    return StepLines(tuple(forward.split(" | ")), backward, *(LESSONS[each] for each in lessons))


def _pair(name: str, begin: str, gradient: str, *lessons: str) -> StepLines:
    """Return the lines of a pair of functional/, such as "softmax.log_softmax"."""
    file, _, function = name.rpartition(".")
    forward = f"functional/{file}.py::{function}"
    return _lines(f"{forward} | {begin}", f"{forward}_backward | {gradient}", *lessons)


def _layer(place: str, begin: str, gradient: str, *lessons: str) -> StepLines:
    """Return the lines of the two methods of a layer."""
    return _lines(f"{place}.forward | {begin}", f"{place}.backward | {gradient}", *lessons)


STEP_LINES: dict[str, StepLines] = {
    "embed": _pair("embedding.embedding", "y = table", "xp.add.at", "2.1"),
    "add_positions": _layer(
        "nn/embedding.py::InputEmbedding", "x =", "self.positions.backward | self.tokens.backward", "3.1"
    ),
    "constant": _lines("nn/positions.py::FixedPositions.__init__ | self.table", None, "3.1"),
    "parameter": _lines(
        "nn/module.py::Parameter.__init__ | self.value",
        "nn/module.py::Parameter.accumulate | grad[at]",
        "0.2",
    ),
    "linear": _pair("linear.linear", "y = rows", "dweight | dx", "0.2"),
    "add_bias": _pair("linear.linear", "y = y", "dbias", "0.2"),
    "logits": _layer("nn/embedding.py::TiedProjection", "return", "dx | self.weight.accumulate", "12.3"),
    "transpose": _layer("nn/embedding.py::TiedProjection", "return", "self.weight.accumulate", "12.3"),
    "scores": _pair("attention.attention", "scores =", "dscores = dscores | dq = | dk", "5.1", "5.2"),
    "mask": _pair("masks.mask_scores", "return array_module", "return dscores", "6.1"),
    "mask_queries": _lines(
        "functional/tutorial_masks.py::tutorial_attention | rows = | y, attended",
        "functional/attention.py::attention_backward | dscores = softmax_backward",
        "6.4",
    ),
    "softmax": _pair("softmax.softmax", "e | total | y =", "return", "4.1", "4.2"),
    "weighted_sum": _pair("attention.attention", "y =", "ddropped | dv", "5.1", "5.2"),
    "split_heads": _lines(
        "functional/heads.py::split_heads | return",
        "nn/attention/projections.py::Projection.project_backward | merged",
        "7.2",
    ),
    "rotary_table": _lines("functional/rotary.py::rotary_table | return", None, "23.2"),
    "rotate": _pair("rotary.rotate", "y[..., first] | y[..., second]", "dx", "23.2"),
    "repeat_heads": _pair("heads.repeat_heads", "return", "return dy.reshape", "23.4"),
    "head_switch": _lines("learn/course/ambiguous.py::ablated | blocks[list(heads)]", None, "15.3"),
    "merge_heads": _lines(
        "functional/heads.py::merge_heads | return",
        "nn/attention/multi_head.py::MultiHeadAttention.backward | dz",
        "7.2",
        "7.3",
    ),
    "relative_products": _lines(
        "functional/relative.py::_scores | products",
        "functional/relative.py::relative_attention_by_distance_backward | dq_positions | dq, dkey_positions",
        "21.2",
    ),
    "spread_by_distance": _lines(
        "functional/relative.py::spread_by_distance | return",
        "functional/relative.py::relative_attention_by_distance_backward | dproducts = sum_to_shape",
        "21.2",
    ),
    "relative_scores": _lines(
        "functional/relative.py::_scores | return scores +",
        "functional/relative.py::relative_attention_by_distance_backward | dq = | dk",
        "21.2",
    ),
    "scale_scores": _pair("relative.relative_attention_by_distance", "dropped", "dscores", "5.3", "21.2"),
    "collect_by_distance": _pair(
        "relative.relative_attention_by_distance", "share", "ddropped = ddropped", "21.2"
    ),
    "relative_values": _pair("relative.relative_attention_by_distance", "y_positions", "dshare", "21.2"),
    "relative_sum": _pair("relative.relative_attention_by_distance", "y =", "ddropped = dy | dv", "21.2"),
    "layer_norm_statistics": _pair(
        "norm.layer_norm", "centered | variance | rstd", "along | dx", "8.1", "8.2"
    ),
    "layer_norm_normalize": _pair("norm.layer_norm", "xhat", "along | dx", "8.1", "8.2"),
    "layer_norm_scale": _pair("norm.layer_norm", "return", "dbias | dgain | dxhat", "8.1", "8.2"),
    "layer_norm_gain": _pair("norm.layer_norm", "return", "dgain | dxhat", "8.1", "8.2"),
    "rms_norm": _pair("rms_norm.rms_norm", "mean_square | rrms | xhat", "along | dx", "23.1"),
    "rms_norm_scale": _pair("rms_norm.rms_norm", "return", "dgain | dxhat", "23.1"),
    "residual": _layer(
        "models/transformer/pre_norm.py::PreNormEncoderLayer", "x = x + h  #", "return", "8.3"
    ),
    "dropout": _pair("dropout.dropout", "return x *", "return", "8.3"),
    "relu": _pair("activations.relu", "y =", "return", "9.2"),
    "gelu": _pair("activations.gelu", "return", "return", "9.2"),
    "gelu_tanh": _pair("activations.gelu_tanh", "return", "return", "9.2"),
    "silu": _pair("activations.swish", "return", "return", "23.3"),
    "sigmoid": _pair("activations.sigmoid", "y =", "return", "23.3"),
    "normal_cdf": _lines(
        "functional/activations.py::_normal_cdf | phi = (1",
        "functional/activations.py::gelu_backward | density",
        "9.2",
    ),
    "tanh": _pair("activations.gelu_tanh", "t", "inner_slope", "9.2"),
    "gated": _pair("gated.swiglu", "return", "dactivated", "23.3"),
    "log_softmax": _pair("softmax.log_softmax", "y =", "return", "12.1", "12.2"),
    "losses": _pair(
        "losses.cross_entropy", "losses = - | losses = losses", "drows = xp | drows[xp", "12.1", "12.2"
    ),
    "cross_entropy": _pair("losses.cross_entropy", "return", "drows = drows", "12.1", "12.2"),
}

# the lines that replace others in models with other settings, by the name of the variant
VARIANTS: dict[str, dict[str, StepLines]] = {
    "post-norm": {"residual": _pair("residual.add_norm", "y, norm", "return", "8.3")},
    "sequence": {"residual": _layer("models/transformer/sequences.py::Postprocess", "h =", "dx =", "8.4")},
    "untied": {"logits": _layer("nn/linear.py::Linear", "return", "dx | self.weight.accumulate", "0.2")},
    "filled-mask": {
        "mask": _pair(
            "tutorial_masks.fill_scores", "scores = xp.where(mask", "dscores = xp.where(mask", "6.2"
        )
    },
    "added-mask": {"mask": _pair("tutorial_masks.fill_scores", "scores = scores", "return", "6.2")},
}
