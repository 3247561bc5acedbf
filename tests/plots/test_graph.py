"""A computation of numbers as a graph."""

import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
from matplotlib.path import Path

from npformer.errors import UserError
from npformer.plots import computation_graph, text_problems
from npformer.plots.palette import COLOURS

OPERATIONS = {"p": "w × x", "e": "p − t", "L": "e ²"}
VALUES = {"w": 0.5, "x": 2.0, "t": 5.0, "p": 1.0, "e": -4.0, "L": 16.0}


def arrows(figure):
    """Return the two ends of each arrow, those of the forward pass and those of the backward pass."""
    found = {"forward": [], "backward": []}
    for patch in figure.axes[0].patches:
        if isinstance(patch, FancyArrowPatch):
            back = to_hex(patch.get_edgecolor()) == COLOURS["highlight"]
            start, end = patch._path_original.vertices[[0, -1]]
            found["backward" if back else "forward"].append((start, end))
    return found


def texts(figure):
    return {text.get_text(): text.get_position() for text in figure.axes[0].texts if text.get_text()}


def test_the_forward_pass_shows_each_value_and_leads_to_the_right():
    figure = computation_graph(OPERATIONS, VALUES)
    assert text_problems(figure) == []
    shown = texts(figure)
    assert shown.keys() == {*VALUES, ".50", "2.00", "5.00", "1.00", "−4.00", "16.00", "×", "−", "²"}
    columns = [shown[name][0] for name in ("w", "p", "e", "L")]
    assert columns == sorted(columns)
    assert shown["p"][1] == shown["e"][1] == shown["L"][1]
    assert shown["x"][0] == shown["w"][0]
    assert shown["t"][0] == shown["p"][0]
    found = arrows(figure)
    assert len(found["forward"]) == 8  # one from each of five inputs, one to each of three results
    assert all(start[0] < end[0] for start, end in found["forward"])
    assert found["backward"] == []


def test_gradients_have_a_text_below_the_box_and_an_arrow_to_the_left():
    figure = computation_graph(OPERATIONS, VALUES, {"L": 1.0, "e": -8.0, "p": -8.0, "w": -16.0}, decimals=1)
    assert text_problems(figure) == []
    shown = texts(figure)
    assert shown["dw = −16.0"][0] == shown["w"][0]
    assert shown["dw = −16.0"][1] < shown["w"][1]
    assert "dx" not in "".join(shown)
    found = arrows(figure)["backward"]
    assert len(found) == 6  # to p, e and L's operations, and on to w, p and e
    assert all(start[0] > end[0] for start, end in found)


@pytest.mark.parametrize(
    "operations",
    [
        {"b": "a + x", "c": "a × b"},
        {"b": "x + a", "c": "a × b"},
        {"b": "a ²", "c": "b ²", "d": "a × c"},
        {"p": "w × x", "q": "w + y", "r": "p × q"},
    ],
)
@pytest.mark.parametrize("has_gradients", [False, True])
def test_boxes_do_not_hide_arrows_or_each_other(operations, has_gradients):
    values = dict.fromkeys("abcdpqrwxy", 1.0)
    slopes = {name: 1.0 for name in "abcdpqrwxy" if name in f"{operations}"} if has_gradients else None
    figure = computation_graph(operations, values, slopes)
    assert text_problems(figure) == []
    patches = figure.axes[0].patches
    boxes = [patch.get_bbox() for patch in patches if isinstance(patch, FancyBboxPatch)]
    assert sum(box.overlaps(other) for box in boxes for other in boxes) == len(boxes)
    for patch in patches:
        if isinstance(patch, FancyArrowPatch):
            line = Path(patch._path_original.vertices)
            assert not any(line.intersects_bbox(box.padded(-0.02), filled=False) for box in boxes)


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ({"p": "w x"}, "the operation of p is 'w x': write one or two variables and a sign"),
        ({"p": "w × x + b"}, "the operation of p is 'w × x + b': write one or two variables and a sign"),
        ({"p": "w × q"}, "values has no number for q: give one for each variable"),
        ({"p": "e ²", "e": "w − x"}, "p uses e: a result may only use results before it"),
        ({"p": "p + x"}, "p uses p: a result may only use results before it"),
        ({}, "there are no operations: give at least one"),
    ],
)
def test_a_wrong_operation_is_one_sentence(operations, message):
    with pytest.raises(UserError, match=message.replace("²", ".").replace("+", r"\+")):
        computation_graph(operations, VALUES)
    with pytest.raises(UserError, match="no operation has the variable q"):
        computation_graph({"p": "w × x"}, VALUES, {"q": 1.0})
