"""The predictions of every layer and the parts of their logits, which a recorded page has of the lenses.

A live page computes both. A recorded page cannot, so it has the most probable token after each layer at each
position, and what each part of the model adds to the logit of the token that is predicted there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.explorer.call_tree import Call, calls_in
from npformer.explorer.steps.recording import RecordedStep, Recording, path_of
from npformer.lenses.attribution import Attributions, LogitAttribution, Part
from npformer.lenses.logit_lens import lens_of
from npformer.lenses.taps import Output, last_stack
from npformer.models.bert import Bert


def predictions_data(
    recording: Recording, root: Call, ids: Sequence[Array], piece: Callable[[int], str]
) -> dict[str, Any]:
    """Return the predictions of a model as JSON values, or no entry if the lenses do not know its layers.

    The entry "predictions" has the `tokens` that are predicted; `best`, the index of one of them after the
    embedding and each layer at each position, and its probability `p`, both of shape (L + 1, T). If the
    logits are sums of what the parts add, it also has pairs of a name and a path for the P `parts`, and the
    `values` that they add to the logit of the last prediction of each position, of shape (T, P). A Bert has
    the `logits` too, since its parts add up to another number.

    Args:
        recording: The steps of the pass.
        root: The calls of the pass, as `watched` yields them.
        ids: The ids of each input of the model, of shape (1, T).
        piece: A function that returns the label of a token of the logits.
    """
    model = recording.model
    try:
        lens = lens_of(model, ids, [""] * ids[-1].shape[1], piece, k=1)
    except UserError:  # a model of another kind, or one that diverged
        return {}
    best, p = lens.ids[:, :, 0], lens.probabilities[:, :, 0]  # (L + 1, T)
    tokens = np.unique(best)
    data = {
        "tokens": [piece(token) for token in tokens.tolist()],
        "best": np.searchsorted(tokens, best).tolist(),
        "p": p.tolist(),
    }
    try:
        attributions = Attributions(model, ids)
    except UserError:  # its logits are capped
        return {"predictions": data}
    found = [attributions.of(Output(*output), "") for output in enumerate(best[-1].tolist())]
    return {"predictions": data | _parts_data(found, recording, root)}


def _parts_data(found: list[LogitAttribution], recording: Recording, root: Call) -> dict[str, Any]:
    """Return the parts of T logits, without those that add nothing anywhere, as those of absent biases."""
    values = np.array([[part.value for part in each.parts] for each in found])  # (T, P)
    kept = np.flatnonzero(values.any(0))
    calls = {id(call.module): call for call in calls_in(root)}
    layers = [calls[id(layer)] for layer in last_stack(recording.model).layers]
    parts = [_name_and_path(found[0].parts[index], recording, layers) for index in kept.tolist()]
    data: dict[str, Any] = {"parts": parts, "values": values[:, kept].tolist()}
    has_head = isinstance(recording.model, Bert)
    return data | ({"logits": [each.logit for each in found]} if has_head else {})


def _name_and_path(part: Part, recording: Recording, layers: list[Call]) -> tuple[str, str]:
    """Return the name of a part as the page computes it, and the path of the array that it puts out."""
    if part.layer is None:
        if part.name != "embedding":
            return "bias", recording.named("logits").path
        return part.name, _path_of_array(recording, layers[0].inputs[0])
    layer = layers[part.layer]
    if part.name == "biases":
        return part.name, _path_of_array(recording, layer.output)
    block = {"feed-forward": "feed_forward", "cross": "cross"}.get(part.name.split()[0], "self_attention")
    steps = [s for s in recording.steps if s.path.startswith(f"{path_of(layer.path)}.{block}.")]
    heads = [step for step in steps if step.line == "merge_heads"]
    without_bias = [step for step in steps if step.op not in ("parameter", "add_bias")]
    return part.name.split()[-1], (heads or without_bias)[-1].path


def _path_of_array(recording: Recording, array: Array) -> str:
    step = recording.step_of(array)
    assert isinstance(step, RecordedStep)
    return step.path
