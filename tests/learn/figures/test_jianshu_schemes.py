"""Tests of the formula cards (F06), of the two layers with their shapes (F20), and of all these figures."""

import re

import numpy as np
import pytest
from figures_jianshu_oracle import DATA, softmax
from figures_jianshu_reading import texts
from matplotlib.patches import FancyArrowPatch

from npformer.errors import UserError
from npformer.learn.figures import Studio, draw, find_entry
from npformer.plots import save, text_problems

IDS = [
    "F05",
    "F06",
    "F08",
    "F09",
    "F10",
    "F11",
    "F12",
    "F13",
    "F14",
    "F15",
    "F16",
    "F17",
    "F19",
    "F20",
    "F21",
]
CHANGED = {
    "F05": {"sentences": 3, "length": 12, "first": 50},
    "F06": {"position": 3, "d_positions": 6, "x": (0.5, 1.0, 2.0), "products": (8, 4, 0), "d_head": 16},
    "F08": {"sentence": "the old key", "word": 0},
    "F20": {"sentences": 3, "length": 6, "d_model": 24, "n_heads": 2, "d_ff": 48},
    "F21": {"translation": "merci", "d_model": 8},
}
SMALL = {"F20": {"sentences": 4, "d_model": 32, "d_ff": 64}}  # a model of the paper's size takes a second


@pytest.mark.parametrize("id", IDS)
def test_all_text_is_legible(id):
    assert text_problems(draw(id, **SMALL.get(id, {})).figure) == []
    other = CHANGED.get(id, {"sentence": "thinking machines", "length": 5})
    assert text_problems(draw(id, **other).figure) == []


@pytest.mark.parametrize("id", IDS)
def test_the_same_input_gives_the_same_bytes_and_another_input_others(id, tmp_path):
    made = []
    for index, changes in enumerate((SMALL.get(id, {}), SMALL.get(id, {}), CHANGED.get(id, {"seed": 11}))):
        drawing = draw(id, **changes)
        made.append((save(drawing.figure, tmp_path / f"{index}.png").read_bytes(), drawing.caption))
    assert made[0] == made[1]
    assert made[0][0] != made[2][0]
    assert made[0][1] != made[2][1] or id in ("F14", "F15", "F16")


@pytest.mark.parametrize("id", IDS)
def test_the_caption_is_prose_and_no_model_is_trained(id, tmp_path):
    studio = Studio(folder=tmp_path / "none")
    caption = draw(id, studio, **SMALL.get(id, {})).caption
    assert caption[0].isupper()
    assert caption.endswith((".", ".)"))
    assert 60 < len(caption) < 420
    assert "nan" not in caption.lower().split()
    assert not (tmp_path / "none").exists()
    assert find_entry(id).source == "jianshu"


# F06


def numbers_of(line):
    return [float(n.replace("−", "-")) for n in re.findall(r"[−\d][\d,]*\.?\d*", line)]


def line_with(figure, beginning):
    (line,) = [text for text in texts(figure) if text.startswith(beginning)]
    return line.removeprefix(beginning)


@pytest.mark.parametrize(("position", "d"), [(1, 4), (3, 6)])
def test_f06_a_position_vector(position, d):
    line = line_with(
        draw("F06", position=position, d_positions=d).figure, f"pos = {position}, d_model = {d}:"
    )
    angles = [position / 10000 ** (2 * i / d) for i in range(d // 2)]
    expected = [f(angle) for angle in angles for f in (np.sin, np.cos)]
    assert numbers_of(line) == pytest.approx(expected, abs=6e-6)


def test_f06_has_the_position_and_weights_of_the_inventory():
    caption = draw("F06").caption
    assert "0.84147, 0.54030, 0.01000, 0.99995" in caption
    assert "0.88, 0.12" in caption


@pytest.mark.parametrize(("products", "d_head"), [((112, 96), 64), ((8, 4, 0), 16)])
def test_f06_scores_scaled_and_their_softmax(products, d_head):
    figure = draw("F06", products=products, d_head=d_head).figure
    scaled = np.array(products) / np.sqrt(d_head)
    shown = numbers_of(line_with(figure, "scaled:"))
    assert shown == pytest.approx([*scaled, *softmax(scaled)], abs=0.00501)


@pytest.mark.parametrize("x", [(1.0, -2.0), (0.5, 1.0, 2.0)])
def test_f06_a_feed_forward_network(x):
    from npformer.nn import FeedForward

    state = FeedForward(len(x), 4, rng=np.random.default_rng(2), dtype=np.float64).state_dict()
    hidden = np.maximum(0, np.array(x) @ state["inner.weight"])
    figure = draw("F06", x=x).figure
    assert numbers_of(line_with(figure, "max(0, xW₁ + b₁) =")) == pytest.approx(hidden, abs=0.00501)
    assert numbers_of(line_with(figure, "FFN(x) =")) == pytest.approx(
        hidden @ state["outer.weight"], abs=0.00501
    )


@pytest.mark.parametrize(("d_model", "heads"), [(512, 8), (30, 5)])
def test_f06_a_heads_width_and_the_parameters(d_model, heads):
    line = line_with(draw("F06", d_model=d_model, n_heads=heads).figure, f"d_model = {d_model}, h = {heads}:")
    learned = 4 * (d_model * d_model + d_model)
    assert f"each head is {d_model // heads} wide" in line
    assert f"{learned:,} parameters" in line
    with pytest.raises(UserError, match="not divisible"):
        draw("F06", d_model=30, n_heads=4)


def test_f06_has_the_four_formulas():
    written = " ".join(texts(draw("F06").figure))
    for part in (
        r"\sin",
        r"\cos",
        r"\max(0,\; xW_1 + b_1)\,W_2 + b_2",
        r"\sqrt{d_k}",
        "Concat",
        "W^O",
        "W_i^Q",
    ):
        assert part in written


# F20


def shapes_beside(figure):
    """Return every shape as text with its nearest arrow, as pairs (text, (x, y))."""
    return [(t.get_text(), t.get_position()) for t in figure.axes[0].texts if "×" in t.get_text()]


@pytest.mark.parametrize("changes", [{"sentences": 4, "d_model": 32, "d_ff": 64}, CHANGED["F20"]])
def test_f20_the_shapes_are_those_of_the_batch(changes):
    heads, d, d_ff = changes.get("n_heads", 8), changes["d_model"], changes["d_ff"]
    examples = DATA.train[: changes["sentences"]]
    most = changes.get("length") or 99
    b = len(examples)
    s = min(most, 1 + max(len(x) for x, _ in examples))
    t = min(most, 1 + max(len(y) for _, y in examples))
    figure = draw("F20", **changes).figure
    columns = {"encoder": (s, s), "first": (t, t), "second": (t, s)}
    found = sorted(shapes_beside(figure), key=lambda shape: shape[1][0])
    edges = [t.get_position()[0] for t in figure.axes[0].texts if t.get_weight() == "bold"]
    for index, (queries, keys) in enumerate(columns.values()):
        right = edges[index + 1] if index < 2 else np.inf
        mine = [text.split()[-1] for text, (x, _) in found if edges[index] <= x < right]
        model, head = f"{b}×{queries}×{d}", f"{b}×{heads}×{queries}×{d // heads}"
        expected = [f"{b}×{heads}×{queries}×{keys}"] * 2  # scores and weights
        expected += [head] * 2 + [f"{b}×{heads}×{keys}×{d // heads}"] * 2  # q and z, k and v
        if index == 1:
            expected += [model] * 4  # in, concat, W^O, add & norm
        else:
            expected += [model] * 6 + [f"{b}×{queries}×{d_ff}"]  # and three of the feed-forward network
        if index == 2:
            expected += [f"{b}×{keys}×{d}"]  # the encoder's output
        assert sorted(mine) == sorted(expected)


def test_f20_every_arrow_upwards_has_a_shape():
    """Check that a shape is beside the middle of every short upward arrow between two boxes."""
    figure = draw("F20", sentences=2, d_model=16).figure
    places = [place for _, place in shapes_beside(figure)]
    arrows = [
        p for p in figure.axes[0].patches if isinstance(p, FancyArrowPatch) and p.get_linestyle() == "-"
    ]
    upright = 0
    for arrow in arrows:
        points = arrow._path_original.vertices  # the given path, without the arrow head
        (x0, y0), (x1, y1) = points[0], points[-1]
        if len(points) > 2 or x0 != x1:
            continue
        upright += 1
        near = [abs(x - x0) < 0.2 and y0 - 0.15 <= y <= y1 + 0.15 for x, y in places]
        assert any(near), f"no shape beside the arrow at {x0:.2f}, {y0:.2f} .. {y1:.2f}"
    assert upright == 2 + 3 * 8 + 2 * 3 + 2  # in; attention; feed-forward; to V of the second half, and out


@pytest.mark.parametrize(
    ("id", "changes", "match"),
    [
        ("F10", {"positions": "sines"}, "positions is 'sines': choose one of"),
        ("F11", {"activation": "tanh"}, "activation is 'tanh': choose one of"),
        ("F12", {"d_model": 0}, "d_model is 0: it must be a whole number, 1 or more"),
        ("F13", {"seed": -1}, "seed is -1"),
        ("F15", {"length": 2.5}, "length is 2.5"),
        ("F19", {"n_heads": 4}, "d_model 6 is not divisible by 4 heads"),
        ("F16", {"length": 40}, "does not fit"),
        ("F06", {"position": -1}, "position is -1"),
        ("F06", {"products": []}, "products is .*: give 1 to 6 numbers"),
        ("F06", {"d_positions": 3}, "d_model must be even"),
        ("F05", {"length": 0}, "length is 0"),
        ("F20", {"length": 0}, "max_length is 0"),
    ],
)
def test_invalid_inputs_are_refused_with_one_sentence(id, changes, match):
    with pytest.raises(UserError, match=match):
        draw(id, **changes)


def test_f20_refuses_parts_that_do_not_exist():
    with pytest.raises(UserError, match="sentences is 0"):
        draw("F20", sentences=0)
    with pytest.raises(UserError, match="not divisible"):
        draw("F20", d_model=30, n_heads=4)
    with pytest.raises(
        UserError, match=r"first is 5 and sentences 99999999: the corpus has .* of up to 10 tokens"
    ):
        draw("F05", first=5, sentences=99999999)
    with pytest.raises(UserError, match="translation '' is empty"):
        draw("F21", translation="")
