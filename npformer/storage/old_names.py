"""Old names in files that were written before parameters and settings were renamed.

The weights that ship and the checkpoints of earlier versions contain the names on the left. They are renamed
when such a file is read.
"""

import re
from collections.abc import Mapping
from typing import Any

# parts of parameter names, old and new
PARAMETERS = (
    (r"(^|/)words\.(words|positions)\.", r"\1embedding.\2."),  # models of one language
    (r"(^|[./])words\.", r"\1tokens."),
    (r"(^|[./])read\.", r"\1input_projection."),  # recurrent layers
    (r"(^|[./])recall\.", r"\1hidden_projection."),
    # a norm belonged to the residual connection around a sublayer; now the norms of a layer are numbered
    (r"(^|\.)(self|attention)_residual\.", r"\g<1>residual1."),
    (r"(^|\.)cross_residual\.", r"\g<1>residual2."),
    (r"(^|\.)(decoder\..*)feed_forward_residual\.", r"\1\2residual3."),
    (r"(^|\.)feed_forward_residual\.", r"\g<1>residual2."),
    (r"(^|\.)residual(\d)\.norm\.", r"\1norm\2."),
    (r"(^|\.)residual(\d)\.norm_before\.", r"\1preprocess\2.norm."),
    (r"(^|\.)residual(\d)\.norm_after\.", r"\1postprocess\2.norm."),
    (r"^(layers\.\d+)\.attention\.", r"\1.self_attention."),  # of a GPT
)
# settings of a model's configuration, old and new
SETTINGS = {"both_ways": "bidirectional"}


def rename_parameter(name: str) -> str:
    """Return the current name of a parameter that has this name in a file."""
    for old, new in PARAMETERS:
        name = re.sub(old, new, name)
    return name


def rename_parameters(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state with the current name of every parameter."""
    return {rename_parameter(name): value for name, value in state.items()}


def rename_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration's settings with their current names."""
    return {SETTINGS.get(name, name): value for name, value in settings.items()}


def original_parameter(name: str) -> str:
    """Return the oldest name of a parameter, from which fingerprints of weights are computed."""
    name = re.sub(r"^embedding\.", "words.", name)
    name = re.sub(r"(^|\.)tokens\.", r"\1words.", name)
    name = re.sub(r"(^|\.)input_projection\.", r"\1read.", name)
    name = re.sub(r"(^|\.)hidden_projection\.", r"\1recall.", name)
    name = re.sub(r"(^|\.)(norm|preprocess|postprocess)(\d)\.(?:norm\.)?", _residual_norm, name)
    return re.sub(r"^(layers\.\d+)\.self_attention\.", r"\1.attention.", name)  # of a GPT


def _residual_norm(norm: re.Match[str]) -> str:
    """Return the oldest name of the norm of a sublayer, such as "self_residual.norm." for "norm1."."""
    dot, kind, number = norm.groups()
    sublayers = ["self", "cross", "feed_forward"] if "decoder." in norm.string else ["self", "feed_forward"]
    if norm.string.startswith("layers."):  # of a GPT
        sublayers[0] = "attention"
    old = {"norm": "norm", "preprocess": "norm_before", "postprocess": "norm_after"}[kind]
    return f"{dot}{sublayers[int(number) - 1]}_residual.{old}."
