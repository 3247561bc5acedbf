"""Tests of F51: the lines between rows of dots show the trained model's weights."""

import numpy as np
from figure_cells import draw
from matplotlib.collections import LineCollection, PathCollection
from trained_oracle import BANK, BANK_FR, WIDEST, close, drawn


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
