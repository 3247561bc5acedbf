"""F63: rotary positions: one vector at each position, and scores that depend on the distance only."""

from functools import partial

import numpy as np

from npformer.errors import UserError
from npformer.functional import rotary_table, rotate
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import score_map, value_map
from npformer.plots.composition import beside


@figure("F63", "Rotary positions", "course", "FW")
def rotary_positions(*, length: int = 10, width: int = 6, base: float = 30.0, seed: int = 3) -> Drawing:
    """Draw a query rotated by its position, and the scores of equal queries with equal keys.

    Args:
        length: The number of positions.
        width: The width of a head, which is even.
        base: The base of the angles.
        seed: The seed of the random query and key.
    Raises:
        UserError: If there are fewer than 2 positions, or the width is odd.
    """
    if length < 2:
        raise UserError(f"length is {length}: give at least 2 positions")
    q, k = np.random.default_rng(seed).standard_normal((2, width))  # (K,) each
    cos, sin = rotary_table(np.arange(length), width, base=base)  # (T, K / 2) each
    queries, keys = (rotate(np.tile(x, (length, 1)), cos, sin)[0] for x in (q, k))  # (T, K)
    scores = queries @ keys.T  # (T, T)
    picture = beside(
        [
            partial(value_map, queries, xlabel="number of the vector", ylabel="position"),
            partial(score_map, scores, None, None),
        ],
        names=["one query, rotated at each position", "scores with one key, rotated too"],
        down=True,
    )
    return Drawing(
        picture,
        f"Top: the same query at {length} positions. Numbers j and j + {width // 2} form a pair, which is "
        "rotated by an angle proportional to the position: the first pair by 1 radian for each position, "
        f"the last one by {base ** (2 / width - 1):.2g}. Bottom: the scores of the query at each position "
        "(row) with one key at each position (column). They are equal along each diagonal, because a score "
        "depends only on the distance between query and key. Numbers above 0 are blue, and those below 0 "
        "orange.",
    )
