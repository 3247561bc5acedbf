"""Tests of F49 and F50: distributions at each step, greedy search and beam search."""

import numpy as np
import pytest
from figure_cells import draw
from matplotlib.collections import PolyCollection
from trained_oracle import split

from npformer.generation import beam_search
from npformer.plots import text_problems

STUDENT = split("je suis étudiant")
ENGLISH = split("i am a student")
PRINTED = [
    [".01", ".02", ".93", ".01", ".03", ".01"],
    [".01", ".8", ".1", ".05", ".01", ".03"],
    [".99", ".001", ".001", ".001", ".002", ".001"],
    [".001", ".002", ".001", ".02", ".94", ".01"],
    [".01", ".01", ".001", ".001", ".001", ".98"],
]


# F49


def tables(figure):
    """Return the texts in the cells of both tables and the strengths of the cells' colours, left to right."""
    ax = figure.axes[0]
    cells = [c for c in ax.collections if isinstance(c, PolyCollection)]
    found = []
    for table in sorted(cells, key=lambda c: c.get_paths()[0].vertices[0, 0]):
        centres = np.array([path.vertices[:4].mean(0) for path in table.get_paths()])
        texts = []
        for centre in centres:
            gaps = [np.abs(np.subtract(t.get_position(), centre)).max() for t in ax.texts]
            texts.append(ax.texts[int(np.argmin(gaps))].get_text())
            assert min(gaps) < 0.02
        found.append((texts, 1 - table.get_facecolor()[:, 1]))
    return found


def test_printed_and_trained_distributions(studio, french_oracle):
    drawing = draw("F49", studio)
    (printed, _), (ours, faces) = tables(drawing.figure)
    assert printed == [text for row in PRINTED for text in row]
    probabilities = french_oracle.probabilities(STUDENT, ENGLISH)
    ids = [*(french_oracle.target.index(word) for word in ("a", "am", "i", "thanks", "student")), 3]
    expected = probabilities[:, ids].reshape(-1)
    for text, value in zip(ours, expected, strict=True):
        assert value < 0.00051 if text == "<.001" else abs(float(text) - value) < 0.00051
    assert np.allclose(np.argsort(faces)[-3:], np.argsort(expected)[-3:])
    right = [french_oracle.target.index(word) for word in ENGLISH] + [3]
    loss = -np.log(probabilities[np.arange(5), right]).mean()
    assert ".0776" in drawing.caption
    assert f"{loss:.4f}" in drawing.caption


# F50


@pytest.mark.parametrize(
    ("sentence", "beam", "first"),
    [("je suis étudiant", 2, ("i", "a")), ("merci pour les fleurs", 3, ()), ("merci pour les fleurs", 2, ())],
)
def test_greedy_and_beam(studio, french_oracle, sentence, beam, first):
    drawing = draw("F50", studio, sentence=sentence, beam=beam, first=first)
    ids = np.array([[*map(french_oracle.english.index, split(sentence)), 3]])
    for ax, width in zip(drawing.figure.axes, (1, beam), strict=True):
        trace = []
        given = [french_oracle.target.index(word) for word in first] if width > 1 and first else None
        beam_search(french_oracle.model, ids, beam=width, length_penalty=0.0, first=given, trace=trace)
        nodes = [(french_oracle.target[b.token], b.log_prob) for step in trace[0] for b in step]
        assert drawn_nodes(ax) == sorted((word, f"{p:.2f}") for word, p in nodes)
        assert len(ax.lines) == len(nodes)  # one branch to each
    first = [french_oracle.target[branch.token] for branch in trace[0][0]]
    assert all(f"“{word}”" in drawing.caption for word in first)
    assert text_problems(drawing.figure) == []


def test_the_tree_of_the_document_keeps_i_and_a(studio, french_oracle):
    """Check the first words with a model that is hardly trained, so that other words are more probable."""
    ids = np.array([[*map(french_oracle.english.index, STUDENT), 3]])
    trace = []
    beam_search(french_oracle.model, ids, beam=2, trace=trace)
    assert {french_oracle.target[branch.token] for branch in trace[0][0]} != {"i", "a"}
    drawing = draw("F50", studio)
    ax = drawing.figure.axes[1]
    nodes = {word for word, _ in drawn_nodes(ax)}
    assert {"i", "a"} <= nodes
    log_p = np.log(french_oracle.probabilities(STUDENT, ENGLISH)[0])
    for word in ("i", "a"):
        assert f"“{word}” ({log_p[french_oracle.target.index(word)]:.2f})" in drawing.caption
    assert "are given, as the document assumes" in drawing.caption
    (name,) = [t.get_text() for t in drawing.figure.texts if t.get_text().startswith("beam search")]
    assert "“i”" in name
    assert "“a”" in name
    assert "(given)" in name
    free = draw("F50", studio, first=()).figure
    assert not any("(given)" in t.get_text() for t in free.texts)


def drawn_nodes(ax):
    """Return the words of the nodes and the numbers below them."""
    found = []
    for text in ax.texts:
        x, y = text.get_position()
        under = [
            t
            for t in ax.texts
            if t is not text and t.get_position()[0] == x and 0 < y - t.get_position()[1] < 0.2
        ]
        if under and text.get_text() != "<S>":
            number = float(under[0].get_text().replace("−", "-"))
            found.append((text.get_text(), f"{number:.2f}"))
    return sorted(found)
