"""Tests of F29, F30 and F52: the weights and the measurements of the trained model's heads."""

import re

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from trained_oracle import (
    ANIMAL,
    ANIMAL_FR,
    BANK,
    BANK_FR,
    MONEY,
    MONEY_FR,
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
from npformer.learn.figures import draw
from npformer.learn.figures import f29_f30_f52_it_and_bank as module
from npformer.learn.figures.trained_heads import PARTS
from npformer.models.registry import attention_layers
from npformer.plots import text_problems

WIDE = [*ANIMAL[:-1], "wide"]
WIDE_FR = split("l' animal n' a pas traversé la rue parce qu' elle était trop large")


def held_out(family):
    """Return the sentences of the first part in which heads are measured."""
    return [pair for pair in getattr(builtin_corpus(), next(iter(PARTS))) if pair.family == family]


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


def named_heads(drawing, panel=0):
    """Return the layer and the head of each line of a panel's legend."""
    return [tuple(map(int, re.findall(r"\d", name))) for name in legend(drawing.figure.axes[panel])]


def best_share(oracle, pairs, where, targets, taken=lambda reference: ()):
    """Compute the largest share of sentences in which a head of this attention attends to a target.

    The head that is the best for the targets of `taken` is left out.
    """
    translator, hits = oracle.translator, {"taken": 0, "targets": 0}
    for start in range(0, len(pairs), 50):
        some = pairs[start : start + 50]
        rows = [
            (translator.source_codec.encode(p.english), translator.target_codec.encode(p.french))
            for p in some
        ]
        batch = make_batch(rows)
        _, cache = oracle.model.forward(batch.source, batch.target_in)
        heads = np.concatenate(attention_layers(cache, where), 1)  # (B, L·H, T, S)
        for weights, pair in zip(heads, some, strict=True):
            reference = pair.reference
            best = weights[:, reference.word if where == "encoder" else reference.answer].argmax(-1)
            hits["targets"] = hits["targets"] + np.isin(best, targets(reference))
            hits["taken"] = hits["taken"] + np.isin(best, taken(reference))
    found = hits["targets"] / len(pairs)
    if hits["taken"].any():
        found[hits["taken"].argmax()] = -1
    return found.max()


def spread(shares):
    return f"({np.mean(shares):.1%}, {min(shares):.1%} to {max(shares):.1%})"


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
    ((layer, head),) = named_heads(drawing)
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
    pairs = held_out("it")
    noun, _ = measured(oracle, pairs, "it", where, layer, head)
    assert f"the noun that the pronoun stands for in {share(noun)} (" in drawing.caption


def test_the_head_is_the_one_that_the_evaluation_finds(studio, oracle):
    for family, id in (("it", "F29"), ("bank", "F52")):
        pairs = held_out(family)
        best = strongest_head(oracle.model, studio.translator, pairs)
        drawing = draw(id, studio)
        panels = range(len(drawing.figure.axes))
        assert [(best.layer, best.head)] in [named_heads(drawing, panel) for panel in panels]
        assert f"in {share(best.share)} (" in drawing.caption
        assert f"In {len(pairs)} {next(iter(PARTS.values()))}" in drawing.caption


def test_the_captions_give_the_mean_and_the_range_of_three_trainings(studio):
    assert len(studio.translators) == 3
    folders = [studio.folder, *(studio.folder / f"training-{number}" for number in (1, 2))]
    oracles = [Oracle(folder) for folder in folders]
    seeds = [oracle.checkpoint.training_settings["seed"] for oracle in oracles]
    assert len(set(seeds)) == 3
    its, banks = held_out("it"), held_out("bank")

    def noun(reference):
        return [reference.antecedent]

    def decider(reference):
        return list(reference.deciders)

    nouns = spread([best_share(oracle, its, "cross", noun) for oracle in oracles])
    adjectives = spread([best_share(oracle, its, "cross", decider, noun) for oracle in oracles])
    meanings = spread([best_share(oracle, banks, "cross", decider) for oracle in oracles])
    assert nouns in draw("F29", studio, where="cross").caption
    two = draw("F30", studio, where="cross").caption
    assert nouns in two
    assert adjectives in two
    assert meanings in draw("F52", studio, where="cross").caption
    assert "best heads of 3 trainings" in two


def test_encoder_and_decoder_are_shown_if_both_find_the_noun(studio, oracle, monkeypatch):
    monkeypatch.setattr(module, "RESOLVES", 0.0)
    for id in ("F29", "F30"):
        drawing = draw(id, studio)
        names = [t.get_text() for t in drawing.figure.texts]
        assert names == [
            "encoder self-attention, reading “it”",
            "encoder-decoder attention, writing “il”, for “it”",
        ]
        for panel, (where, query) in enumerate((("encoder", "it"), ("cross", "il"))):
            ax = drawing.figure.axes[panel]
            rows = [*(ANIMAL if where == "encoder" else ANIMAL_FR), "</S>"]
            row = rows.index(query)
            for lines, (layer, head) in zip(line_weights(ax), named_heads(drawing, panel), strict=True):
                expected = drawn(oracle.weights(ANIMAL, ANIMAL_FR, where, layer)[head])
                assert close(lines[row], expected[row])
        assert "in the encoder and in" in drawing.caption
        assert text_problems(drawing.figure) == []
    monkeypatch.setattr(module, "RESOLVES", 1.01)
    assert len(draw("F29", studio).figure.axes) == 1


def test_two_heads_for_it(studio, oracle):
    drawing = draw("F30", studio, where="cross")
    first, second = named_heads(drawing)
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
    keys = {line.get_color() for line in ax.lines}
    assert keys == {"#ff7100", "#00ab2c"}  # beside the names of the heads
    pairs = held_out("it")
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
    pairs = held_out("bank")
    assert share(measured(oracle, pairs, "bank", "cross", 1, 2)[1]) in drawing.caption
    assert text_problems(drawing.figure) == []


def test_unknown_words_are_reported(studio):
    caption = draw("F29", studio, sentence="the zebra sleeps because it was tired", where="encoder").caption
    assert "does not know 'zebra'" in caption
