"""Tests of F29, F30 and F52: the weights and the measurements of the trained model's heads."""

import re
from functools import cache

import numpy as np
import pytest
from figure_cells import draw
from matplotlib.collections import LineCollection
from trained_oracle import (
    ANIMAL,
    ANIMAL_FR,
    Oracle,
    close,
    column,
    drawn,
    legend,
    line_weights,
    split,
)

from npformer.data.corpus import builtin_corpus
from npformer.data.loader import make_batch
from npformer.generation.evaluation import strongest_head
from npformer.learn.figures import f29_f30_f52_it_and_bank as module
from npformer.learn.figures import find_entry
from npformer.learn.figures.trained_heads import PARTS
from npformer.models.registry import attention_layers
from npformer.plots import text_problems

WIDE = [*ANIMAL[:-1], "wide"]
WIDE_FR = split("l' animal n' a pas traversé la rue parce qu' elle était trop large")


@cache
def held_out(family):
    """Return the sentences of the first part in which heads are measured."""
    return [pair for pair in getattr(builtin_corpus(), next(iter(PARTS))) if pair.family == family]


@cache
def shares(oracle, family, where):
    """Return the shares of sentences in which each head attends most to the noun, and to a deciding word.

    Each is an array (L, H).
    """
    translator, pairs, nouns, deciders = oracle.translator, held_out(family), 0, 0
    encode = translator.codec.source.encode, translator.codec.target.encode
    for start in range(0, len(pairs), 50):
        some = pairs[start : start + 50]
        batch = make_batch([(encode[0](pair.english), encode[1](pair.french)) for pair in some])
        _, forward = oracle.model.forward(batch.source, batch.target_in)
        heads = np.stack(attention_layers(forward, where), 1)  # (B, L, H, T, S)
        for weights, pair in zip(heads, some, strict=True):
            reference = pair.reference
            best = weights[:, :, reference.word if where == "encoder" else reference.answer].argmax(-1)
            nouns = nouns + (best == reference.antecedent)
            deciders = deciders + np.isin(best, list(reference.deciders))
    return nouns / len(pairs), deciders / len(pairs)


def named_heads(drawing, panel=0):
    """Return the layer and the head of each line of a panel's legend."""
    return [tuple(map(int, re.findall(r"\d", name))) for name in legend(drawing.figure.axes[panel])]


def spread(found):
    return f"({np.mean(found):.1%}, {min(found):.1%} to {max(found):.1%})"


@pytest.mark.parametrize(
    ("where", "texts", "query"),
    [
        ("cross", (ANIMAL, ANIMAL_FR), "il"),
        ("cross", (WIDE, WIDE_FR), "elle"),
        ("encoder", (ANIMAL, ANIMAL_FR), "it"),
    ],
)
def test_one_head_for_it(studio, oracle, where, texts, query):
    source, target = texts
    drawing = draw("F29", studio, sentence=" ".join(source), where=where)
    ((layer, head),) = named_heads(drawing)
    weights = drawn(oracle.weights(source, target, where, layer)[head])
    rows = [*(target if where == "cross" else source), "</S>"]
    only = np.where(np.array(rows)[:, None] == query, weights, 0)
    ax = drawing.figure.axes[0]
    assert close(line_weights(ax)[0], only)
    assert column(ax, "right") == rows
    assert column(ax, "left") == [*source, "</S>"]
    assert [t.get_text() for t in ax.texts if t.get_fontweight() == "bold"] == [query]
    assert ax.collections[0].get_colors()[0][:3] == pytest.approx((1, 0x71 / 255, 0))  # orange
    nouns, _ = shares(oracle, "it", where)
    assert f"the noun that the pronoun stands for in {nouns[layer, head]:.1%} (" in drawing.caption


@pytest.mark.parametrize(("family", "id"), [("it", "F29"), ("bank", "F52")])
def test_the_head_is_the_one_that_the_evaluation_finds(studio, oracle, family, id):
    pairs = held_out(family)
    best = strongest_head(oracle.model, studio.translator, pairs)
    drawing = draw(id, studio)
    panels = range(len(drawing.figure.axes))
    assert [(best.layer, best.head)] in [named_heads(drawing, panel) for panel in panels]
    assert f"in {best.share:.1%} (" in drawing.caption
    assert f"In {len(pairs)} {next(iter(PARTS.values()))}" in drawing.caption


def test_the_captions_give_the_mean_and_the_range_of_three_trainings(studio):
    assert len(studio.translators) == 3
    folders = [studio.folder, *(studio.folder / f"training-{number}" for number in (1, 2))]
    oracles = [Oracle(folder) for folder in folders]
    assert len({each.checkpoint.training_settings["seed"] for each in oracles}) == 3
    nouns, adjectives, meanings = [], [], []
    for each in oracles:
        noun, decider = (of_heads.ravel().copy() for of_heads in shares(each, "it", "cross"))
        decider[noun.argmax()] = 0  # the second head is another one
        nouns.append(noun.max())
        adjectives.append(decider.max())
        meanings.append(shares(each, "bank", "cross")[1].max())
    two = draw("F30", studio, where="cross").caption
    assert spread(nouns) in draw("F29", studio, where="cross").caption
    assert spread(nouns) in two
    assert spread(adjectives) in two
    assert spread(meanings) in draw("F52", studio, where="cross").caption
    assert "best heads of 3 trainings" in two


@pytest.mark.parametrize("id", ["F29", "F30"])
def test_encoder_and_decoder_are_shown_if_both_find_the_noun(studio, oracle, monkeypatch, id):
    monkeypatch.setattr(module, "RESOLVES", 0.0)
    drawing = find_entry(id).draw(studio)
    assert [t.get_text() for t in drawing.figure.texts] == [
        "encoder self-attention, reading “it”",
        "encoder-decoder attention, writing “il”, for “it”",
    ]
    for panel, (where, words, query) in enumerate((("encoder", ANIMAL, "it"), ("cross", ANIMAL_FR, "il"))):
        row = words.index(query)
        found = line_weights(drawing.figure.axes[panel])
        for lines, (layer, head) in zip(found, named_heads(drawing, panel), strict=True):
            expected = drawn(oracle.weights(ANIMAL, ANIMAL_FR, where, layer)[head])
            assert close(lines[row], expected[row])
    assert "in the encoder and in" in drawing.caption
    assert text_problems(drawing.figure) == []
    monkeypatch.setattr(module, "RESOLVES", 1.01)
    assert len(find_entry("F29").draw(studio).figure.axes) == 1


def test_two_heads_for_it(studio, oracle):
    drawing = draw("F30", studio, where="cross")
    first, second = named_heads(drawing)
    assert first != second
    ax, row = drawing.figure.axes[0], ANIMAL_FR.index("il")
    for lines, (layer, head) in zip(line_weights(ax), (first, second), strict=True):
        assert close(lines[row], drawn(oracle.weights(ANIMAL, ANIMAL_FR, "cross", layer)[head])[row])
    colours = [c.get_colors()[0][:3] for c in ax.collections if isinstance(c, LineCollection)]
    assert colours[0] == pytest.approx((1, 0x71 / 255, 0))
    assert colours[1] == pytest.approx((0, 0xAB / 255, 0x2C / 255))
    assert {line.get_color() for line in ax.lines} == {"#ff7100", "#00ab2c"}  # beside the names of the heads
    nouns, deciders = shares(oracle, "it", "cross")
    assert f"the noun in {nouns[first]:.1%}" in drawing.caption
    assert f"that decides in {deciders[second]:.1%}" in drawing.caption
