"""Tests of layers in detail, heads, residual blocks and retrieval: the pictures follow the configuration."""

import numpy as np
import pytest
from figure_boxes import arrows, column, loose_ends, shapes, texts, touching
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from npformer.errors import UserError
from npformer.functional import softmax
from npformer.learn.figures.f18_multi_head_graph import multi_head
from npformer.learn.figures.f41_to_f43_add_and_norm import add_and_normalize, full_detail
from npformer.learn.figures.f53_residual_block import residual_block
from npformer.learn.figures.f59_retrieval import TITLES, retrieval, retrieve
from npformer.plots import save, text_problems
from npformer.plots.style import number

FIGURES = [add_and_normalize, full_detail, multi_head, residual_block]


@pytest.mark.parametrize("draw", FIGURES)
@pytest.mark.parametrize(
    "changes", [{}, {"n_layers": 1, "n_heads": 1}, {"norm": "pre"}, {"architecture": "jianshu-demo"}]
)
def test_all_figures_are_legible(draw, changes):
    drawing = draw(None, **changes)
    assert text_problems(drawing.figure) == []
    assert len(drawing.caption.split()) > 10


@pytest.mark.parametrize("draw", [*FIGURES, retrieval])
def test_the_same_bytes_each_time(draw, tmp_path):
    first, second = (save(draw(None).figure, tmp_path / f"{i}.png").read_bytes() for i in range(2))
    assert first == second


# F41

POST = ["self-attention", "add & normalize", "feed-forward", "add & normalize"]
PRE = ["norm", "self-attention", "add", "norm", "feed-forward", "add", "norm"]


def rows(figure, skip=("+", "")):
    """Return the labels of the boxes row by row from the bottom up, without the words' vectors and signs."""
    found = []
    for shape in shapes(figure):
        if shape.label in skip or shape.label.startswith("$"):
            continue
        if not found or abs(found[-1][1] - shape.y) > 1e-6:
            found.append((shape.label, shape.y))
    return [label for label, _ in found]


@pytest.mark.parametrize(("changes", "expected"), [({}, POST), ({"norm": "pre"}, PRE)])
@pytest.mark.parametrize("sentence", ["Thinking Machines", "Je suis étudiant"])
def test_add_and_norm_follows_both_sublayers(changes, expected, sentence):
    figure = add_and_normalize(None, sentence=sentence, **changes).figure
    words = sentence.split()
    assert rows(figure) == expected
    names = [s.label for s in shapes(figure)]
    assert names.count("feed-forward") == len(words)
    assert names.count("self-attention") == 1
    assert [t for t in texts(figure) if t in words] == words
    assert [n for n in names if n.startswith("$x")] == [f"$x_{{{i + 1}}}$" for i in range(len(words))]
    assert text_problems(figure) == []
    assert len(loose_ends(figure)) == len(words)  # the outgoing line at the top


@pytest.mark.parametrize(("changes", "sums"), [({}, "add & normalize"), ({"norm": "pre"}, "add")])
def test_the_residual_connections_are_dashed_and_end_at_the_sums(changes, sums):
    figure = add_and_normalize(None, **changes).figure
    dashed = [a for a in arrows(figure) if a.dashed]
    assert len(dashed) == 2
    tower = [s for s in shapes(figure) if s.label in (*POST, *PRE)]
    for residual, sublayer in zip(
        sorted(dashed, key=lambda a: a.start[1]), ("self-attention", "feed-forward"), strict=True
    ):
        (end,) = [s for s in tower if s.on_edge(residual.end)]
        assert end.label == sums
        inside = [s.label for s in tower if residual.start[1] < s.bottom and s.top < residual.end[1]]
        assert set(inside) == ({sublayer, "norm"} if sums == "add" else {sublayer})
        assert residual.points[1][0] < min(s.left for s in tower)
        above = [a for a in arrows(figure) if a.start[0] == a.end[0] == residual.start[0]]
        assert any(a.start[1] < residual.start[1] < a.end[1] for a in above)  # it starts at an arrow


def test_other_positions_and_one_word():
    assert texts(add_and_normalize(None, positions="learned").figure).count("$p$") == 2
    plain = add_and_normalize(None, positions="none").figure
    assert "+" not in texts(plain)
    assert not plain.axes[0].lines
    one = add_and_normalize(None, sentence="Machines", norm="pre").figure
    assert rows(one, skip=("",))[0] == "+"
    assert [s.label for s in shapes(one)].count("feed-forward") == 1
    assert text_problems(one) == []


# F43


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_encoder_and_decoder_in_detail(n):
    figure = full_detail(None, n_layers=n).figure
    assert text_problems(figure) == []
    names = [s.label for s in shapes(figure)]
    assert names.count("self-attention") == 2 * n
    assert names.count("encoder-decoder attention") == n
    assert names.count("add & normalize") == 5 * n
    assert names.count("feed-forward") == 2 * 2 * n  # two words on each side
    assert [t for t in texts(figure) if "coder #" in t] == [
        *(f"encoder #{i}" for i in range(n)),
        *(f"decoder #{i}" for i in range(n)),
    ]
    assert sum(a.dashed for a in arrows(figure)) == 5 * n
    assert len(loose_ends(figure)) == 2  # the probabilities at each position of the decoder


@pytest.mark.parametrize(
    ("changes", "layer"),
    [
        ({}, ["self-attention", "encoder-decoder attention", "feed-forward"]),
        ({"norm": "pre"}, ["self-attention", "encoder-decoder attention", "feed-forward"]),
    ],
)
def test_the_order_in_the_decoders(changes, layer):
    figure = full_detail(None, **changes).figure
    (x,) = {s.x for s in shapes(figure) if s.label == "encoder-decoder attention"}
    found = [label for label in column(figure, x) if label != "feed-forward"]
    one = [
        step
        for name in layer
        for step in (["norm", name, "add"] if changes else [name, "add & normalize"])
        if step != "feed-forward"
    ]
    assert found == one * 2 + (["norm"] if changes else []) + ["linear", "softmax"]


@pytest.mark.parametrize("changes", [{}, {"norm": "pre"}])
def test_every_decoder_is_connected_to_the_top_encoder(changes):
    figure = full_detail(None, **changes).figure
    crosses = [s for s in shapes(figure) if s.label == "encoder-decoder attention"]
    sideways = [a for cross in crosses for a in touching(figure, cross, end=True) if a.end[0] == cross.left]
    assert len(sideways) == len(crosses) == 2
    encoder = min(s.x for s in shapes(figure) if s.label == "self-attention")
    top = max((s for s in shapes(figure) if abs(s.x - encoder) < 1e-6), key=lambda s: s.y)
    (trunk,) = [a for a in sideways if len(a.points) == 4]
    lines = [a for a in arrows(figure) if not a.head]
    leaving = [a.end for a in lines if top.on_edge(a.start)]
    assert len(leaving) == 2  # one from each word
    leaving += [a.end for a in lines if any(np.allclose(a.start, end) for end in leaving)]  # further up
    assert any(np.allclose(end, trunk.start) for end in leaving)
    bus = trunk.points[1][0]
    rising = [a for a in arrows(figure) if not a.head and np.allclose(a.start, trunk.points[1])]
    for other in sideways:
        if other is not trunk:
            heights = [trunk.points[2][1], *(a.end[1] for a in rising), trunk.points[1][1]]
            assert other.start[0] == bus
            assert min(heights) <= other.start[1] <= max(heights)


def test_words_of_both_sides():
    figure = full_detail(None, sentence="le chat dort", target="<S> the cat", n_layers=1).figure
    for word in ("le", "chat", "dort", "<S>", "the", "cat"):
        assert word in texts(figure)
    assert [s.label for s in shapes(figure)].count("feed-forward") == 6


@pytest.mark.parametrize(
    ("draw", "changes", "words"),
    [
        (add_and_normalize, {"sentence": " "}, "has 0 words"),
        (full_detail, {"target": "a b c d e f g"}, "has 7 words"),
        (full_detail, {"n_layers": 6}, "a picture of 6 encoders and 6 decoders does not fit"),
        (full_detail, {"n_heads": 7}, "not divisible"),
    ],
)
def test_invalid_arguments_of_the_details(draw, changes, words):
    with pytest.raises(UserError, match=words):
        draw(None, **changes)


# F18


def piles(figure):
    """Return the number of rectangles behind each box."""
    return sum(type(patch) is Rectangle for patch in figure.axes[0].patches)


@pytest.mark.parametrize(("heads", "behind"), [(1, 0), (2, 1), (8, 2)])
def test_heads_are_drawn_as_piles(heads, behind):
    figure = multi_head(None, n_heads=heads).figure
    assert f"h = {heads}" in texts(figure)
    assert piles(figure) == 4 * behind  # three linear maps and the attention
    width = 512 // heads
    names = [s.label for s in shapes(figure)]
    assert names.count(f"linear\n512 → {width}") == 3 + (heads == 1)
    joined = [f"concat\n{heads} × {width} = 512"] if heads > 1 else []
    assert names[-1 - len(joined) - 1 :] == ["scaled dot-product attention", *joined, "linear\n512 → 512"]
    assert names[:3] == ["V", "K", "Q"]
    assert len(loose_ends(figure)) == 1


def test_each_input_goes_through_its_linear_map():
    figure = multi_head(None).figure
    by_name = {s.label: s for s in shapes(figure)}
    attention = by_name["scaled dot-product attention"]
    for letter in "VKQ":
        (first,) = touching(figure, by_name[letter], end=False)
        (linear,) = [s for s in shapes(figure) if s.on_edge(first.end)]
        assert linear.label.startswith("linear")
        (second,) = touching(figure, linear, end=False)
        assert attention.on_edge(second.end)
        assert second.end[1] == attention.bottom


def test_widths_and_missing_parts_follow_the_configuration():
    figure = multi_head(None, d_model=96, n_heads=4, d_head=16, d_value=10).figure
    names = [s.label for s in shapes(figure)]
    assert names[3:6] == ["linear\n96 → 10", "linear\n96 → 16", "linear\n96 → 16"]  # V, K, Q
    assert names[-2:] == ["concat\n4 × 10 = 40", "linear\n40 → 96"]
    first_document = multi_head(None, architecture="jianshu-demo")
    names = [s.label for s in shapes(first_document.figure)]
    assert names[3:6] == ["linear, relu\n512 → 64"] * 3
    assert names[-1] == "concat\n8 × 64 = 512"
    assert "last linear" not in first_document.caption


# F53


@pytest.mark.parametrize(
    ("changes", "order"),
    [
        ({}, ["feed-forward\n512 → 2048 → 512", "+", "norm"]),
        ({"norm": "pre"}, ["norm", "feed-forward\n512 → 2048 → 512", "+"]),
        ({"d_model": 96, "d_ff": 7}, ["feed-forward\n96 → 7 → 96", "+", "norm"]),
    ],
)
def test_the_norm_of_the_residual_block_is_in_its_place(changes, order):
    figure = residual_block(None, **changes).figure
    left, right = sorted({s.x for s in shapes(figure)})
    assert column(figure, left) == ["weights", "relu", "weights", "+", "relu"]
    assert column(figure, right) == order
    assert text_problems(figure) == []
    sums = [s for s in shapes(figure) if s.label == "+"]
    for plus in sums:
        straight, residual = sorted(touching(figure, plus, end=True), key=lambda a: len(a.points))
        assert straight.end[1] == plus.bottom
        assert len(residual.points) == 4
        lowest = next(s for s in shapes(figure) if s.x == plus.x)
        assert residual.start[1] < lowest.bottom
    assert len(loose_ends(figure)) == 2


# F59


def test_a_query_and_titles_are_no_formulas():
    figure = retrieval(None, query="$x$ or $y", titles=["$\\nonsense$", "x $x$"]).figure
    assert text_problems(figure) == []
    drawn = {text.get_text() for text in figure.findobj(Text)}
    assert {r"\$x\$ or \$y", r"\$\nonsense\$", r"x \$x\$"} <= drawn


def test_scores_count_shared_words_and_weights_are_their_softmax():
    scores, weights = retrieve("how does attention work", TITLES)
    assert scores.tolist() == [1, 3, 0, 0]
    np.testing.assert_allclose(weights, np.exp(scores) / np.exp(scores).sum(), atol=1e-15)


@pytest.mark.parametrize(
    ("query", "titles"),
    [
        ("how does attention work", TITLES),
        ("cats", ["funny cats", "dogs", "cats and more cats", "soup"]),
        ("soup", ["soup", "winter"]),
    ],
)
def test_retrieval_draws_these_weights(query, titles):
    drawing = retrieval(None, query=query, titles=titles)
    figure = drawing.figure
    scores = np.array([sum(query.split().count(w) for w in title.split()) for title in titles], float)
    weights, _ = softmax(scores)
    names = [s.label for s in shapes(figure)]
    assert query in names
    assert set(titles) <= set(names)
    for title, score, weight in zip(titles, scores, weights, strict=True):
        assert f"{score:.0f} → {number(weight)}" in texts(figure)
        key = next(s for s in shapes(figure) if s.label == title and s.x > 0)
        (into,), (out,) = touching(figure, key, end=True), touching(figure, key, end=False)
        assert into.width == pytest.approx(0.8 + 5 * weight)
        assert out.width == pytest.approx(0.8 + 5 * weight)
        value = next(s for s in shapes(figure) if s.on_edge(out.end))
        assert value.label == f"video {list(titles).index(title) + 1}"
        assert value.y == pytest.approx(key.y)
    answer = "\n+ ".join(f"{number(w)} video {i + 1}" for i, w in enumerate(weights))
    assert answer in names
    assert titles[int(np.argmax(scores))] in drawing.caption
    assert text_problems(figure) == []


@pytest.mark.parametrize(
    "changes", [{"query": " "}, {"titles": ["one"]}, {"titles": "cats"}, {"titles": ["a"] * 9}]
)
def test_invalid_arguments_of_retrieval(changes):
    with pytest.raises(UserError, match="2 to 8 titles"):
        retrieval(None, **changes)
