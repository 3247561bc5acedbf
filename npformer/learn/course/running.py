"""The example that runs through the lessons: one sentence in the translator that npformer ships.

Each chapter looks at its own part of this model, forward and backward. The names of the steps are those of
the explorer's addresses, such as "encoder.0.self_attention.attention.scores".
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from npformer.explorer.recorded import recorded_data
from npformer.pretrained import load

if TYPE_CHECKING:
    from npformer.plots import Figure, Step

SENTENCE = "Two dogs are playing in the snow."


class RunningExample(NamedTuple):
    """The numbers of the model for the sentence and its translation.

    Attributes:
        source: The tokens that the encoder reads, S of them.
        target: The tokens that the decoder reads, T of them.
        predicted: The tokens that the decoder predicts, T of them.
        values: The numbers of each step.
        gradients: The gradients of the loss, for all steps that have one.
    """

    source: list[str]
    target: list[str]
    predicted: list[str]
    values: dict[str, np.ndarray]
    gradients: dict[str, np.ndarray]

    def flow(
        self,
        layout: str,
        places: Mapping[str, str],
        steps: Mapping[str, "Step"],
        axes: Mapping[str, str],
    ) -> "Figure":
        """Draw some steps of the model with their gradients.

        Args:
            layout, steps, axes: As for `npformer.plots.gradient_flow`.
            places: The name of a step for each array. Of an array of several heads, the first is drawn.
        """
        from npformer.plots import gradient_flow  # matplotlib takes a second to load

        def drawn(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            found = {name: arrays[place] for name, place in places.items() if place in arrays}
            return {name: array[0] if array.ndim == 3 else array for name, array in found.items()}

        return gradient_flow(layout, drawn(self.values), steps, drawn(self.gradients), axes=axes)


def attention_places(layer: str) -> dict[str, str]:
    """Return the names of the steps of an attention layer such as "encoder.0.self_attention"."""
    steps = {name: name for name in ("q", "k", "v", "scores", "z")} | {"weights": "softmax"}
    return {name: f"{layer}.attention.{step}" for name, step in steps.items()}


@cache
def running_example() -> RunningExample:
    """Compute the shipped translator for the sentence, forward and backward, in less than a second."""
    data = recorded_data(load("en-de"), SENTENCE)
    arrays = iter(data.arrays)
    values: dict[str, np.ndarray] = {}
    gradients: dict[str, np.ndarray] = {}
    for step in data.head["steps"]:
        values[step["path"]] = next(arrays)
        if step["grad"]:
            gradients[step["path"]] = next(arrays)
    tokens = data.head["example"]
    return RunningExample(
        tokens["source_tokens"], tokens["target_tokens"], tokens["predicted_tokens"], values, gradients
    )
