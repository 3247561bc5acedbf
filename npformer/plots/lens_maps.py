"""What happens between the layers of a model: the predictions of every layer, and the effects of patches."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from npformer.plots.heat_maps import HeatMap, Scale, heat_row, make_heat_map, signed_scale
from npformer.plots.layout import array
from npformer.plots.palette import weight_map
from npformer.plots.style import drawing

LONGEST = 12  # letters of a word in a cell


def prediction_grid(
    probabilities: ArrayLike,
    predictions: Sequence[Sequence[str]],
    rows: Sequence[str],
    tokens: Sequence[str],
    *,
    title: str | None = None,
) -> Figure:
    """Draw the most probable token after every layer, on the colour of its probability: the logit lens.

    The last layer is at the top, since a model is drawn from the bottom to the top.

    Args:
        probabilities: The probabilities, (L, T).
        predictions: L rows of T tokens.
        rows: L names, such as "layer 0".
        tokens: The T tokens that the model reads.
        title: A title above the picture.

    Raises:
        UserError: If a shape is wrong, or the words do not fit in a picture.
    """
    with drawing(*predictions, rows, tokens, title):
        heat = make_heat_map(
            array(probabilities, "probabilities", 2)[::-1], list(rows)[::-1], tokens, name="probabilities"
        )
        heat.written = [_cut(word) for row in reversed(predictions) for word in row]
        heat.numbers, heat.stretch = True, (0.5, 1.5)
        heat.scale = Scale(weight_map(), 0.0, 1.0, "probability")
        heat.axis_labels = ("after", "token read")
        return heat_row([heat], title)


def patch_grid(
    effects: Sequence[tuple[str, ArrayLike, Sequence[str], Sequence[str]]],
    *,
    title: str | None = None,
) -> Figure:
    """Draw the effects of patches as heat maps beside each other, with the same colours, last layer on top.

    Args:
        effects: For each map, its title, the effects (N, M), the names of its N rows and of its M columns.
        title: A title above the picture.

    Raises:
        UserError: If a shape is wrong, a number is not finite, or the maps do not fit in a picture.
    """
    with drawing(title, *(names for _, _, rows, columns in effects for names in (rows, columns))):
        heats: list[HeatMap] = []
        for name, values, rows, columns in effects:
            heat = make_heat_map(array(values, "effects", 2)[::-1], list(rows)[::-1], columns, name="scores")
            heat.title, heat.axis_labels = name, ("", "")
            heats.append(heat)
        every = np.concatenate([heat.values.ravel() for heat in heats])
        for heat in heats:
            heat.scale = signed_scale(every, "effect")
        return heat_row(heats, title)


def _cut(word: str) -> str:
    """Return a word that fits in a cell."""
    return word if len(word) <= LONGEST else word[: LONGEST - 1] + "…"
