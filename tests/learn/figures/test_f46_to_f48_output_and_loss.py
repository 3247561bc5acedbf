"""Tests of F46 to F48: the most probable word, and the distributions of a model and of the target."""

import math

import numpy as np
import pytest
from figure_cells import draw, grids

from npformer.plots import text_problems

WORDS = ["a", "am", "I", "thanks", "student", "<eos>"]
UNTRAINED = [0.2, 0.2, 0.1, 0.2, 0.2, 0.1]


@pytest.mark.parametrize(
    "changes", [{"target": "am"}, {"probabilities": (0.05, 0.05, 0.1, 0.6, 0.1, 0.1)}, {"smoothing": 0.1}]
)
def test_f47_losses(changes):
    caption = draw("F47", **changes).caption
    p = np.array(changes.get("probabilities", UNTRAINED))
    smoothing = changes.get("smoothing", 0)
    q = np.full(6, smoothing / 6)
    q[WORDS.index(changes.get("target", "thanks"))] += 1 - smoothing
    entropy = -(q * np.log(p)).sum()
    divergence = sum(b * math.log(b / a) for a, b in zip(p, q, strict=True) if b)
    assert f"L2 distance {math.sqrt(((p - q) ** 2).sum()):.4f}" in caption
    assert f"{entropy:.4f}" in caption
    assert f"KL divergence {divergence:.4f}" in caption


def test_f48_with_label_smoothing():
    drawing = draw("F48", smoothing=0.3)
    (cells,) = grids(drawing.figure)
    assert np.allclose(cells.values.sum(1), 1, atol=0.01)
    assert np.allclose(cells.values.max(1), 0.75)
    assert np.allclose(cells.values.min(1), 0.05)
    assert ".75 on the right word and .05" in drawing.caption
    assert text_problems(drawing.figure) == []
