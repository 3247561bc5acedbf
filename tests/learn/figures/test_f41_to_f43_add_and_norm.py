"""Tests of F41 to F43: residual connections and norms follow the configuration and the layers."""

import numpy as np
import pytest
from datawhale_oracle import encoder
from figure_boxes import arrows, column, loose_ends, shapes
from figure_cells import as_text, draw, grids, named, picture, row_words, shows, texts

from npformer.plots import text_problems

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


# F41


@pytest.mark.parametrize(
    ("changes", "expected", "sentence"),
    [({}, POST, "Thinking Machines"), ({"norm": "pre"}, PRE, "Je suis étudiant")],
)
def test_add_and_norm_follows_both_sublayers(changes, expected, sentence):
    figure = draw("F41", sentence=sentence, **changes).figure
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
    figure = draw("F41", **changes).figure
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
    assert texts(draw("F41", positions="learned").figure).count("$p$") == 2
    plain = draw("F41", positions="none").figure
    assert "+" not in texts(plain)
    assert not plain.axes[0].lines
    one = draw("F41", sentence="Machines", norm="pre").figure
    assert rows(one, skip=("",))[0] == "+"
    assert [s.label for s in shapes(one)].count("feed-forward") == 1
    assert text_problems(one) == []


# F42


def test_f42_add_and_norm():
    figure = picture("F42")
    x, z, normalised, _ = encoder(2)
    drawn = named(figure)
    assert len(drawn["X"]) == 2
    assert all(shows(cells, x) for cells in drawn["X"])
    assert shows(drawn["Z"][0], z)
    above = max(grids(figure), key=lambda cells: cells.top)
    assert shows(above, normalised)
    assert row_words(figure, above) == ["Thinking", "Machines"]
    assert np.allclose(above.values.mean(1), 0, atol=0.01)
    assert np.allclose(above.values.var(1), 1, atol=0.03)
    other = named(picture("F42", sentence="le chat dort"))
    assert shows(other["Z"][0], encoder(3)[1])
    caption = draw("F42").caption
    assert f"becomes {as_text(normalised[0, :1])[1:-1]}" in caption
    assert f"{as_text(x[0, :1])[1:-1]} + ({as_text(z[0, :1])[1:-1]})" in caption


# F43


@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_encoder_and_decoder_in_detail(n):
    figure = draw("F43", n_layers=n).figure
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


DECODER = ["self-attention", "add & normalize", "encoder-decoder attention", "add & normalize"]
PRE_DECODER = ["norm", "self-attention", "add", "norm", "encoder-decoder attention", "add"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, [*DECODER, "add & normalize"] * 2),  # beside the feed-forward boxes, which the words have
        ({"norm": "pre"}, [*[*PRE_DECODER, "norm", "add"] * 2, "norm"]),
    ],
)
def test_the_order_in_the_decoders(changes, expected):
    figure = draw("F43", **changes).figure
    (x,) = {s.x for s in shapes(figure) if s.label == "encoder-decoder attention"}
    found = [label for label in column(figure, x) if label != "feed-forward"]
    assert found == [*expected, "linear", "softmax"]


def test_words_of_both_sides():
    figure = draw("F43", sentence="le chat dort", target="<S> the cat", n_layers=1).figure
    for word in ("le", "chat", "dort", "<S>", "the", "cat"):
        assert word in texts(figure)
    assert [s.label for s in shapes(figure)].count("feed-forward") == 6
