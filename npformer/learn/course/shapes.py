"""Pictures of the shapes in a computation: its arrays as rectangles, and its operations as circles."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from npformer.plots import Figure

LENGTHS = {"1": 1, "D": 6, "F": 8, "N": 6, "P": 8, "S": 4, "T": 5, "V": 8}  # of other axes: 3


def shape_flow(layout: str, steps: Mapping[str, str], axes: Mapping[str, str]) -> "Figure":
    """Draw the arrays of a computation. The numbers are random: only shapes and steps mean something.

        shape_flow("x y \\n w .", {"y": "x w: x w"}, {"x": "T D", "w": "D F", "y": "T F"})

    Args:
        layout: The names of the arrays in rows and columns, as for `npformer.plots.gradient_flow`.
        steps: For each result, its operation and, behind a colon, the names of its inputs.
        axes: The letters of one or two axes of each array. Of more axes, the lesson names the last two.
    """
    from npformer.plots import Step, gradient_flow  # matplotlib takes a second to load

    rng = np.random.default_rng(0)
    arrays = {
        name: rng.uniform(0.2, 1, [LENGTHS.get(letter, 3) for letter in letters.split()])
        for name, letters in axes.items()
    }
    parsed = {result: step.rsplit(":", 1) for result, step in steps.items()}
    operations = {result: Step(text.strip(), names.split()) for result, (text, names) in parsed.items()}
    return gradient_flow(layout, arrays, operations, axes=axes)
