"""Tests of F07, F29, F30, F51 and F52: the weights are those of the trained model's queries and keys."""

import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PathCollection
from trained_oracle import FAINTEST, WIDEST, Oracle, column, drawn, line_weights, split

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
CAT = split("the black cat drinks some milk")
CAT_FR = split("le chat noir boit du lait")


@pytest.fixture(scope="module")
def oracle(studio):
    return Oracle(trained(studio))


def trained(studio):
    """Return the folder of the first model, which is trained if it does not exist."""
    assert studio.checkpoint.step == studio.steps
    return studio.folder


def close(a, b):
    return np.allclose(a, b, atol=2e-5)


# F07


def shown_map(ax):
    return np.asarray(ax.images[0].get_array())


@pytest.mark.parametrize("layer", [0, 1])
def test_the_map_and_the_lines_of_a_sentence_pair(studio, oracle, layer):
    figure = draw("F07", studio, translation=" ".join(CAT_FR), layer=layer).figure
    weights = oracle.weights(CAT, CAT_FR, "cross", layer).mean(0)
    as_map, as_lines = figure.axes
    assert close(shown_map(as_map), weights)
    written = {(round(t.get_position()[1]), round(t.get_position()[0])): t.get_text() for t in as_map.texts}
    for place, weight in np.ndenumerate(weights):
        assert abs(float(written[place]) - weight) < 0.006
    assert close(line_weights(as_lines)[0], drawn(weights))
    assert column(as_lines, "right") == [*CAT_FR, "</S>"]
    assert [t.get_text() for t in as_map.get_xticklabels()] == [*CAT, "</S>"]
    assert [t.get_text() for t in as_map.get_yticklabels()] == [*CAT_FR, "</S>"]


def test_another_pair_is_another_map(studio, oracle):
    figure = draw("F07", studio, sentence=" ".join(ANIMAL), translation=" ".join(ANIMAL_FR)).figure
    assert close(shown_map(figure.axes[0]), oracle.weights(ANIMAL, ANIMAL_FR, "cross", 1).mean(0))


def test_the_frames_are_the_moments_of_training(studio):
    frames = draw("F07", studio, translation=" ".join(CAT_FR)).frames
    assert len(frames) == len(studio.snapshots()) == 2
    for frame, step in zip(frames, (0, studio.steps), strict=True):
        picture = frame()
        then = Oracle(studio.folder, f"step-{step:06}").weights(CAT, CAT_FR, "cross", 1).mean(0)
        assert close(shown_map(picture.axes[0]), then)
        assert any(f"after {step} steps" in t.get_text() for t in picture.texts)


# F29, F30, F52


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


# F51


def rows_of_dots(ax):
    """Return the rows of dots as lists of positions, in drawing order."""
    return [np.asarray(c.get_offsets()) for c in ax.collections if isinstance(c, PathCollection)]


def flows(ax):
    """Return the lines between rows by the rows at their ends: {(row, row): (T, S) weights}."""
    rows = rows_of_dots(ax)
    dots = {tuple(np.round(dot, 6)): (i, j) for i, row in enumerate(rows) for j, dot in enumerate(row)}
    found = {}
    for lines in ax.collections:
        if isinstance(lines, LineCollection):
            for (start, end), width in zip(lines.get_segments(), lines.get_linewidths(), strict=True):
                (below, s), (above, t) = dots[tuple(np.round(start, 6))], dots[tuple(np.round(end, 6))]
                weights = found.setdefault((below, above), np.zeros((len(rows[above]), len(rows[below]))))
                weights[t, s] = width / WIDEST
    return found


def check_moment(ax, oracle, source, target, encoder_layers, step):
    found = flows(ax)
    for layer in range(encoder_layers):
        weights = oracle.weights(source, target, "encoder", layer).mean(0)
        assert close(found.pop((layer, layer + 1)), drawn(weights))
    if step is not None:
        for layer in range(2):
            above = 4 + layer
            own = oracle.weights(source, target, "decoder", layer).mean(0)
            cross = oracle.weights(source, target, "cross", layer).mean(0)
            for key, weights in (((above - 1, above), own), ((2, above), cross)):
                shown = found.pop(key)
                assert close(shown[step], drawn(weights)[step])
                assert not np.delete(shown, step, 0).any()
    assert not found


def words_at(ax, row):
    return [t.get_text() for t in ax.texts if t.get_rotation() == 90 and abs(t.get_position()[1] - row) < 0.4]


def test_attention_flows(studio, oracle):
    drawing = draw("F51", studio)
    moments = [(1, None), (2, 0), (2, BANK_FR.index("rive"))]
    for ax, (layers, step) in zip(drawing.figure.axes, moments, strict=True):
        check_moment(ax, oracle, BANK, BANK_FR, layers, step)
    assert len(drawing.frames) == 3 + len(BANK_FR) + 1
    for index in (0, 2, 3, 9, len(drawing.frames) - 1):
        ax = drawing.frames[index]().axes[0]
        check_moment(ax, oracle, BANK, BANK_FR, min(index, 2), index - 3 if index >= 3 else None)
    ax = drawing.frames[-1]().axes[0]
    rows = rows_of_dots(ax)
    assert [len(row) for row in rows] == [len(BANK) + 1] * 3 + [len(BANK_FR) + 1] * 3
    assert words_at(ax, rows[0][0, 1]) == [*BANK, "</S>"]
    assert words_at(ax, rows[3][0, 1]) == ["<S>", *BANK_FR]
    assert words_at(ax, rows[5][0, 1]) == [*BANK_FR, "</S>"]


def test_words_appear_when_they_are_generated(studio):
    frames = draw("F51", studio).frames
    for step in (0, 4):
        ax = frames[3 + step]().axes[0]
        assert words_at(ax, rows_of_dots(ax)[5][0, 1]) == [*BANK_FR, "</S>"][: step + 1]


def test_another_sentence_has_another_flow(studio, oracle):
    ax = draw("F51", studio, sentence=" ".join(MONEY)).figure.axes[-1]
    check_moment(ax, oracle, MONEY, MONEY_FR, 2, MONEY_FR.index("banque"))


def test_a_word_that_is_not_generated(studio):
    with pytest.raises(UserError, match="does not write 'zèbre'"):
        draw("F51", studio, word="zèbre")


def test_small_weights_are_left_out(oracle):
    weights = oracle.weights(BANK, BANK_FR, "cross", 1)
    assert (drawn(weights)[weights < FAINTEST] == 0).all()
