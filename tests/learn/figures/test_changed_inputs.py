"""Tests of the jianshu figures drawn from other inputs: they are legible, and the picture is another one."""

import pytest

from npformer.learn.figures import draw
from npformer.plots import save, text_problems

IDS = [f"F{number:02}" for number in (5, 6, *range(8, 18), 19, 20, 21)]
CHANGED = {
    "F05": {"sentences": 3, "length": 12, "first": 50},
    "F06": {"position": 3, "d_positions": 6, "x": (0.5, 1.0, 2.0), "products": (8, 4, 0), "d_head": 16},
    "F08": {"sentence": "the old key", "word": 0},
    "F20": {"sentences": 3, "length": 6, "d_model": 24, "n_heads": 2, "d_ff": 48},
    "F21": {"translation": "merci", "d_model": 8},
}
SMALL = {"F20": {"sentences": 4, "d_model": 32, "d_ff": 64}}  # a model of the paper's size takes a second


@pytest.mark.parametrize("id", IDS)
def test_a_figure_of_another_input_is_legible(id):
    changes = CHANGED.get(id, {"sentence": "thinking machines", "length": 5})
    assert text_problems(draw(id, **changes).figure) == []


@pytest.mark.parametrize("id", IDS)
def test_another_input_gives_another_picture_and_caption(id, tmp_path):
    first, second = draw(id, **SMALL.get(id, {})), draw(id, **CHANGED.get(id, {"seed": 11}))
    pictures = [save(drawing.figure, tmp_path / f"{i}.png") for i, drawing in enumerate((first, second))]
    assert pictures[0].read_bytes() != pictures[1].read_bytes()
    if id not in ("F14", "F15", "F16"):  # their captions contain no numbers of the tensors
        assert first.caption != second.caption
