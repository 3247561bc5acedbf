"""npformer attention as a person uses it."""

import numpy as np
import pytest
from commands import said
from head_oracle import informativeness_row_by_row
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from trained_oracle import Oracle, drawn, line_weights, split

import npformer
from npformer.cli.main import main
from npformer.plots import text_problems
from npformer.plots.palette import head_colour
from npformer.pretrained import attention

ANIMAL = "the animal didn't cross the street because it was too tired"


@pytest.fixture(scope="module")
def run(studio):
    assert studio.checkpoint
    return str(studio.folder)


@pytest.fixture(scope="module")
def oracle(run, studio):
    return Oracle(studio.folder, "best")


FRENCH = "l' animal n' a pas traversé la rue parce qu' il était trop fatigué"


@pytest.fixture
def writes(monkeypatch, run):
    """Return a function that makes the untrained model translate with a given number of words."""
    encode = npformer.load(run).target_tokenizer.encode

    def set_words(count):
        ids = encode(" ".join((split(FRENCH) * 5)[:count])).ids[:-1]
        monkeypatch.setattr(attention, "translate_ids", lambda *_, **__: [ids])

    set_words(14)
    return set_words


KINDS = ("encoder", "decoder", "cross")


def test_all_kinds(capsys, figures, run, oracle, writes):
    out = said(capsys, "attention --model", run, ANIMAL)
    target = npformer.load(run).attention(ANIMAL).tokens("decoder")[0][1:]  # without the start symbol
    assert out.startswith(f"{ANIMAL} → l'animal n'a pas traversé la rue")
    assert set(figures) == {f"{kind}_{what}.png" for kind in KINDS for what in ("grid", "lines")}
    for name in figures:
        assert f"wrote attention/{name}" in out
        assert text_problems(figures[name]) == []
    for kind in KINDS:
        expected = np.stack([oracle.weights(split(ANIMAL), target, kind, layer) for layer in range(2)])
        layer, head = most_informative(expected, kind)
        check_grid(figures[f"{kind}_grid.png"], expected, (layer, head))
        check_lines(figures[f"{kind}_lines.png"], expected[layer], [head])
        for what in ("grid", "lines"):
            title = " ".join(t.get_text() for t in figures[f"{kind}_{what}.png"].texts).replace("\n", " ")
            assert f"layer {layer}, head {head}, the most informative head: its weights depend most" in title


def most_informative(weights, kind):
    """Compute the head whose rows are hardest to guess from its other rows."""
    n_queries, n_keys = weights.shape[2:]
    may = np.tri(n_queries, dtype=bool) if kind == "decoder" else np.ones((n_queries, n_keys), bool)
    values = informativeness_row_by_row(weights, may, by_distance=kind != "cross")
    return tuple(int(index) for index in np.unravel_index(values.argmax(), values.shape))


def check_grid(figure, weights, large):
    """Check that a figure has the map of every head in every layer, and one large map."""
    images = [np.ma.getdata(ax.images[0].get_array()) for ax in figure.axes if ax.images]
    same = [m for m in images if m.shape == weights.shape[2:]]
    assert len(same) == weights.shape[0] * weights.shape[1] + 1
    assert np.allclose(np.array(same[:-1]).reshape(weights.shape), weights, atol=2e-5)
    assert np.allclose(same[-1], weights[large], atol=2e-5)


def check_lines(figure, weights, heads):
    ax = figure.axes[0]
    assert np.allclose(line_weights(ax), drawn(weights[list(heads)]), atol=2e-5)
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    for collection, head in zip(lines, heads, strict=True):
        if len(collection.get_segments()):
            assert collection.get_colors()[0][:3] == pytest.approx(to_rgb(head_colour(head)))


def test_one_layer_and_head(capsys, figures, run, oracle):
    arguments = ["--kind", "encoder", "--layer", "0", "--head", "3", "--out", "deep/er"]
    assert main(["attention", ANIMAL, "--model", run, *arguments]) == 0
    assert set(figures) == {"encoder_grid.png", "encoder_lines.png"}
    expected = np.stack([oracle.weights(split(ANIMAL), [], "encoder", layer) for layer in range(2)])
    check_grid(figures["encoder_grid.png"], expected, (0, 3))
    check_lines(figures["encoder_lines.png"], expected[0], [3])
    assert "wrote deep/er/encoder_grid.png" in capsys.readouterr().out


def test_the_lines_of_one_word(figures, run, oracle):
    assert main(["attention", ANIMAL, "--model", run, "--kind", "encoder", "--word", "it"]) == 0
    every = np.stack([oracle.weights(split(ANIMAL), [], "encoder", layer) for layer in range(2)])
    expected = drawn(every[most_informative(every, "encoder")])
    row = split(ANIMAL).index("it")
    (lines,) = line_weights(figures["encoder_lines.png"].axes[0])
    assert np.allclose(lines[row], expected[row], atol=2e-5)
    assert not np.delete(lines, row, 0).any()
