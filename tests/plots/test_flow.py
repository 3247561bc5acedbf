"""A computation of arrays as a graph, with the flow of its gradients."""

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch

from npformer.errors import UserError
from npformer.plots import Step, gradient_flow, text_problems
from npformer.plots.flow import BACKWARD, ENTRY, FORWARD, SHORTEST
from npformer.plots.palette import COLOURS

LAYOUT = """q scores weights y
            k .      v       ."""
STEPS = {
    "scores": Step("q kᵀ", ["q", "k"]),
    "weights": Step("softmax", ["scores"]),
    "y": Step("weights v", ["weights", "v"]),
}
AXES = {"q": "T K", "k": "S K", "v": "S K", "scores": "T S", "weights": "T S", "y": "T K"}
SIZES = {"T": 2, "S": 3, "K": 5}
ARRAYS = {
    name: np.random.default_rng(index).standard_normal([SIZES[letter] for letter in letters.split()])
    for index, (name, letters) in enumerate(AXES.items())
}


def arrows(figure):
    """Return the ends of each arrow: those of the forward pass, and those of the backward pass."""
    found = {"forward": [], "backward": []}
    for patch in figure.axes[0].patches:
        if isinstance(patch, FancyArrowPatch):
            back = to_hex(patch.get_edgecolor()) == COLOURS["highlight"]
            assert back == (patch.get_linestyle() != "-"), "colour is not the only difference"
            found["backward" if back else "forward"].append(patch._path_original.vertices[[0, -1]])
    return found


def cells(figure):
    """Return for each array and each gradient with numbers the colours, (N·M, 3), and the corners."""
    return [
        (cell.get_facecolor()[:, :3], np.array([path.vertices[:4] for path in cell.get_paths()]))
        for cell in figure.axes[0].collections
        if isinstance(cell, PolyCollection)
    ]


def places(figure, text):
    return [found.get_position() for found in figure.axes[0].texts if found.get_text() == text]


def test_the_forward_pass_shows_each_array_with_its_axes_and_leads_to_the_right():
    figure = gradient_flow(LAYOUT, ARRAYS, STEPS, axes=AXES)
    assert text_problems(figure) == []
    assert all(len(places(figure, text)) == 1 for text in (*ARRAYS, *"123", "softmax"))
    for letter in "TSK":  # an axis of four arrays
        assert len(places(figure, letter)) == 4
    found = arrows(figure)
    assert len(found["forward"]) == 8  # one from each of five inputs, one to each of three results
    assert all(start[0] < end[0] for start, end in found["forward"])
    assert found["backward"] == []


def test_a_cell_is_darker_where_the_number_is_larger_and_its_size_is_that_of_the_axes():
    faces, corners = cells(gradient_flow(LAYOUT, ARRAYS, STEPS, axes=AXES))[0]
    masked = ARRAYS | {"q": np.where(np.eye(2, 5, dtype=bool), -np.inf, ARRAYS["q"])}
    some, _ = cells(gradient_flow(LAYOUT, masked, STEPS, axes=AXES))[0]
    assert {to_hex(face) for face in some[[0, 6]]} == {COLOURS["masked"]}
    assert len(np.unique(some, axis=0)) == 9
    size = np.abs(ARRAYS["q"]).ravel()  # (10,)
    assert (np.argsort(faces.sum(1)) == np.argsort(-size)).all()
    assert to_hex(faces[size.argmax()]) == FORWARD
    width, height = np.ptp(corners.reshape(-1, 2), axis=0)
    assert width == pytest.approx(5 * ENTRY)  # K = 5
    assert height == pytest.approx(SHORTEST)  # T = 2
    assert corners[0].max(0) == pytest.approx([corners[..., 0].min() + ENTRY, corners[..., 1].max()])


def test_gradients_have_arrows_to_the_left_and_are_empty_until_they_are_computed():
    dy, dv = np.eye(2, 5), np.eye(3, 5)
    gradients = {"y": dy, "v": dv, "weights": None, "scores": None}
    figure = gradient_flow(LAYOUT, ARRAYS, STEPS, gradients, axes=AXES)
    assert text_problems(figure) == []
    for name in gradients:
        (x, y), (below_x, below_y) = places(figure, name)[0], places(figure, f"d{name}")[0]
        assert below_x == x
        assert below_y < y
    assert places(figure, "dq") == places(figure, "dk") == []
    assert len(cells(figure)) == 6 + 2, "an empty gradient has no cells"
    filled = [faces for faces, _ in cells(figure) if to_hex(faces[0]) == BACKWARD]
    assert [len(faces) for faces in filled] == [10, 15], "y and v"
    back = arrows(figure)["backward"]
    # from y to its operation, from there to weights and v, and so on to scores and to its operation
    assert len(back) == 1 + 2 + 1 + 1 + 1
    assert all(start[0] > end[0] for start, end in back)


@pytest.mark.parametrize(
    ("layout", "side"),
    [("a . y\n b . .", "above"), ("a . .\n b y .", "below"), ("a . .\n . y .\n b . .", "left")],
)
def test_an_operation_is_written_where_none_of_its_arrows_comes_from(layout, side):
    arrays = dict.fromkeys("aby", np.ones((2, 3)))
    figure = gradient_flow(layout, arrays, {"y": Step("add", ["a", "b"])}, axes=dict.fromkeys("aby", "T D"))
    assert text_problems(figure) == []
    (x, y), (circle_x, circle_y) = places(figure, "add")[0], places(figure, "1")[0]
    assert (y > circle_y, y < circle_y, x < circle_x) == tuple(
        side == each for each in ("above", "below", "left")
    )


def test_an_arrow_through_another_circle_is_refused():
    arrays = {name: np.ones(2) for name in "pab"}
    steps = {"a": Step("first", ["p"]), "b": Step("second", ["p"])}
    with pytest.raises(
        UserError, match="the arrow from p to b would lead through a or its circle: place them"
    ):
        gradient_flow("p a\n . b", arrays, steps, axes=dict.fromkeys("pab", "D"))
    gradient_flow(". a\n p .\n . b", arrays, steps, axes=dict.fromkeys("pab", "D"))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"layout": "q scores weights y"},
            "the layout has no k: add it, or remove it from steps and gradients",
        ),
        (
            {"layout": LAYOUT + " z"},
            "z of the layout is missing in arrays or axes: give its numbers and letters",
        ),
        (
            {"layout": "scores q weights y\nk . v ."},
            "scores uses q: place it to the right of q in the layout",
        ),
        ({"layout": "q scores k weights y\n. . . v ."}, "scores uses k: place it to the right of k"),
        (
            {"layout": "q . scores weights y\nk v . . ."},
            "the arrow from k to scores would lead through v or its",
        ),
        ({"gradients": {"x": None}}, "the layout has no x"),
        (
            {"gradients": {"y": np.ones((5, 2))}},
            r"y has shape \(2, 5\), and its gradient \(5, 2\)",
        ),
        ({"axes": AXES | {"y": "T"}}, r"y has shape \(2, 5\), and its axes are 'T': give one or two axes"),
        ({"arrays": ARRAYS | {"y": np.ones((1, 2, 5))}}, r"y has shape \(1, 2, 5\): give 1 or 2 axes"),
        ({"arrays": ARRAYS | {"y": np.full((2, 5), np.nan)}}, r"y\[0, 0\] is nan"),
        ({"layout": ". ."}, "the layout has no arrays"),
        ({"layout": LAYOUT + " y"}, "y stands 2 times in the layout"),
        ({"steps": STEPS | {"y": Step("f", [])}}, "the operation of y has no inputs"),
    ],
)
def test_a_wrong_name_or_shape_is_one_sentence(change, message):
    settings = {"layout": LAYOUT, "arrays": ARRAYS, "steps": STEPS, "gradients": None, "axes": AXES} | change
    layout, arrays, steps, gradients = (settings[name] for name in ("layout", "arrays", "steps", "gradients"))
    with pytest.raises(UserError, match=message):
        gradient_flow(layout, arrays, steps, gradients, axes=settings["axes"])
