"""Tests of F29, F30 and F52: the weights and the measurements of the trained model's heads."""

import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from trained_oracle import Oracle, column, drawn, line_weights, split

from npformer.data.corpus import builtin_corpus
from npformer.errors import UserError
from npformer.generation.evaluation import strongest_head
from npformer.learn.figures import draw
from npformer.plots import text_problems

ANIMAL = split("the animal didn't cross the street because it was too tired")
ANIMAL_FR = split("l' animal n' a pas traversé la rue parce qu' il était trop fatigué")
WIDE = [*ANIMAL[:-1], "wide"]
WIDE_FR = split("l' animal n' a pas traversé la rue parce qu' elle était trop large")
BANK = split("i arrived at the bank after crossing the river")
BANK_FR = split("je suis arrivé à la rive après avoir traversé la rivière")
MONEY = split("i arrived at the bank after crossing the road to get some money")
MONEY_FR = split("je suis arrivé à la banque après avoir traversé la route pour retirer de l' argent")


@pytest.fixture(scope="module")
def oracle(studio):
    return Oracle(trained(studio))


def trained(studio):
    """Return the folder of the first model, which is trained if it does not exist."""
    assert studio.checkpoint.step == studio.steps
    return studio.folder


def close(a, b):
    return np.allclose(a, b, atol=2e-5)


def measured(oracle, pairs, family, where, layer, head):
    """Compute directly how often a head's largest weight is on the noun, and how often on a deciding word."""
    noun = decider = 0
    for pair in pairs:
        reference = pair.reference
        french = oracle.translator.target_codec.words(pair.french)
        weights = oracle.weights(pair.english.split(), french, where, layer)[head]
        best = int(weights[reference.word if where == "encoder" else reference.answer].argmax())
        noun += best == reference.antecedent
        decider += best in reference.deciders
    return noun / len(pairs), decider / len(pairs)


def named_heads(caption):
    return [tuple(map(int, pair)) for pair in re.findall(r"layer (\d), head (\d)", caption)]


def share(text):
    return f"{text:.1%}"


@pytest.mark.parametrize(
    ("where", "source", "target", "query"),
    [
        ("cross", ANIMAL, ANIMAL_FR, "il"),
        ("cross", WIDE, WIDE_FR, "elle"),
        ("encoder", ANIMAL, ANIMAL_FR, "it"),
    ],
)
def test_one_head_for_it(studio, oracle, where, source, target, query):
    drawing = draw("F29", studio, sentence=" ".join(source), where=where)
    layer, head = named_heads(drawing.caption)[0]
    weights = oracle.weights(source, target, where, layer)[head]
    rows = [*(target if where == "cross" else source), "</S>"]
    only = np.zeros_like(weights)
    only[rows.index(query)] = drawn(weights)[rows.index(query)]
    ax = drawing.figure.axes[0]
    assert close(line_weights(ax)[0], only)
    assert column(ax, "right") == rows
    assert column(ax, "left") == [*source, "</S>"]
    (bold,) = [t.get_text() for t in ax.texts if t.get_fontweight() == "bold"]
    assert bold == query
    assert ax.collections[0].get_colors()[0][:3] == pytest.approx((1, 0x71 / 255, 0))  # orange
    pairs = [pair for pair in builtin_corpus().test if pair.family == "it"]
    noun, _ = measured(oracle, pairs, "it", where, layer, head)
    assert f"refers to in {share(noun)}" in drawing.caption


def test_the_head_is_the_one_that_the_evaluation_finds(studio, oracle):
    for family, id in (("it", "F29"), ("bank", "F52")):
        pairs = [pair for pair in builtin_corpus().test if pair.family == family]
        best = strongest_head(oracle.model, studio.translator, pairs)
        caption = draw(id, studio).caption
        assert named_heads(caption)[0] == (best.layer, best.head)
        assert f"{share(best.share)}" in caption
        assert f"all {len(pairs)} held-out" in caption


def test_two_heads_for_it(studio, oracle):
    drawing = draw("F30", studio, where="cross")
    first, second = named_heads(drawing.caption)
    assert first != second
    ax = drawing.figure.axes[0]
    rows = [*ANIMAL_FR, "</S>"]
    shown = line_weights(ax)
    for lines, (layer, head) in zip(shown, (first, second), strict=True):
        row = drawn(oracle.weights(ANIMAL, ANIMAL_FR, "cross", layer)[head])[rows.index("il")]
        assert close(lines[rows.index("il")], row)
    colours = [c.get_colors()[0][:3] for c in ax.collections if isinstance(c, LineCollection)]
    assert colours[0] == pytest.approx((1, 0x71 / 255, 0))
    assert colours[1] == pytest.approx((0, 0xAB / 255, 0x2C / 255))
    numbers = [t.get_text() for t in ax.texts if t.get_text().isdigit()]
    assert numbers == [str(first[1]), str(second[1])]
    pairs = [pair for pair in builtin_corpus().test if pair.family == "it"]
    shares = [measured(oracle, pairs, "it", "cross", *place)[i] for i, place in enumerate((first, second))]
    assert f"the noun in {share(shares[0])}" in drawing.caption
    assert f"that decides in {share(shares[1])}" in drawing.caption


@pytest.mark.parametrize(
    ("source", "target", "query"), [(BANK, BANK_FR, "rive"), (MONEY, MONEY_FR, "banque")]
)
def test_bank_and_river(studio, oracle, source, target, query):
    drawing = draw("F52", studio, sentence=" ".join(source), where="cross", layer=1, head=2)
    row = [*target, "</S>"].index(query)
    weights = drawn(oracle.weights(source, target, "cross", 1)[2])
    assert close(line_weights(drawing.figure.axes[0])[0][row], weights[row])
    pairs = [pair for pair in builtin_corpus().test if pair.family == "bank"]
    assert share(measured(oracle, pairs, "bank", "cross", 1, 2)[1]) in drawing.caption
    assert text_problems(drawing.figure) == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layer": 7}, "layer is 7: there are layers 0 .. 1"),
        ({"head": -1}, "head is -1: there are heads 0 .. 3"),
        ({"where": "decoder"}, "choose encoder or cross"),
        ({"sentence": "the cat sleeps", "where": "encoder"}, "there is no it in"),
        ({"sentence": ""}, "empty"),
        ({"sentence": "it " * 80}, "the model's limit is 64"),
        ({"word": "zebra"}, "there is no zebra"),
    ],
)
def test_invalid_inputs_are_refused(studio, changes, words):
    with pytest.raises(UserError, match=re.escape(words)):
        draw("F29", studio, **changes)


def test_unknown_words_are_reported(studio):
    caption = draw("F29", studio, sentence="the zebra sleeps because it was tired", where="encoder").caption
    assert "does not know 'zebra'" in caption
