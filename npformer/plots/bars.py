"""Horizontal bars of probabilities, with the target probabilities beside them, and of signed scores."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from npformer.errors import UserError, quantity
from npformer.plots.layout import PAD, array, axes_at, entitle, new_figure, root, size_of
from npformer.plots.layout import words as word_list
from npformer.plots.palette import COLOURS, EDGES
from npformer.plots.style import LABEL, SMALL, TEXT, drawing, line_height, number, text_size, widest, wrapped

MODEL, BEST, TARGET = COLOURS["r"], "#1b5fa8", COLOURS["k"]
BELOW = EDGES["k"]  # a number below 0
BORDER: dict[str, Any] = {"edgecolor": EDGES["k"], "linewidth": 0.8}  # of the bars of the target
LENGTH = 3.0  # inches, of a probability of 1


def probability_bars(
    probabilities: ArrayLike,
    words: Sequence[str],
    *,
    target: ArrayLike | None = None,
    names: tuple[str, str] = ("model", "target"),
    decimals: int = 2,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Draw a bar for each word, whose length is its probability. The bar of the largest one is darker.

    Args:
        probabilities, words: The probabilities, (V,), and V labels.
        target: The target distribution, (V,), drawn as a second bar for each word.
        names: The names of the two distributions in the legend.
        decimals: The number of decimals.
        ax, title: Axes to draw on, by default those of a new figure, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, a number is outside 0 .. 1, or the labels do not fit.
    """
    with drawing(words, names, title):
        values = _probabilities(probabilities, "probabilities", 1)
        labels = word_list(words, len(values), "words")
        targets = _targets(target, values)
        if ax is None:
            with_target = targets is not None
            left, right = widest(labels, TEXT) + 0.1, _beside(decimals)
            height, below = len(labels) * _row(with_target), 0.3 if with_target else 0
            total, what = left + LENGTH + right + 2 * PAD, f"a picture of {len(labels)} words"
            figure = new_figure(total, height + below + 2 * PAD, what, title=title)
            ax = axes_at(figure, PAD + left, PAD + below, LENGTH, height)
        else:
            height = size_of(ax)[1]
            if len(labels) * line_height(SMALL) * (1 if targets is None else 2) > height:
                raise UserError(
                    f"{quantity(len(labels), 'word')} cannot be written on axes {height:.1f} inches high at "
                    "8 points: draw only the most probable ones"
                )
            entitle(ax, title)
        _draw(ax, values, labels, targets, decimals)
        if targets is not None:
            _legend(ax, names)
        return root(ax)


def probability_panels(
    probabilities: ArrayLike,
    words: Sequence[str],
    positions: Sequence[str] | None = None,
    *,
    target: ArrayLike | None = None,
    decimals: int = 2,
    title: str | None = None,
) -> Figure:
    """Draw bars for each position of a sentence, one panel beside the other.

    Args:
        probabilities, words: The probabilities, (T, V), and V labels.
        positions: T panel titles; 0, 1, ... by default.
        target: The target distributions, (T, V), drawn as a second bar for each word.
        decimals, title: The number of decimals, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, or the panels do not fit.
    """
    with drawing(words, positions, title):
        values = _probabilities(probabilities, "probabilities", 2)
        names = word_list(words, values.shape[1], "words")
        heads = word_list(positions, len(values), "positions")
        targets = _targets(target, values)
        with_target = targets is not None
        target_rows: Iterable[np.ndarray | None] = [None] * len(values) if targets is None else targets
        length, height = max(1.0, widest(heads, LABEL)), len(names) * _row(with_target)
        left, step = PAD + widest(names, TEXT) + 0.1, length + _beside(decimals) + 2 * PAD
        below = 0.3 if with_target else 0
        what = f"a picture of {len(values)} × {len(names)} bars"
        figure = new_figure(left + len(values) * step, height + 2 * PAD + 0.3 + below, what, title=title)
        for index, (row, head, each) in enumerate(zip(values, heads, target_rows, strict=True)):
            ax = axes_at(figure, left + index * step, PAD + below, length, height)
            _draw(ax, row, names if index == 0 else [""] * len(names), each, decimals)
            if with_target and index == 0:
                _legend(ax, ("model", "target"))
            ax.set_title(head, size=LABEL, parse_math=False)
        return figure


def _probabilities(values: ArrayLike, name: str, ndim: int) -> np.ndarray:
    probabilities = array(values, name, ndim).astype(np.float64)
    if not ((probabilities >= 0) & (probabilities <= 1 + 1e-6)).all():  # False for NaN as well
        raise UserError(f"{name} must be between 0 and 1: apply the softmax first")
    return probabilities


def _targets(target: ArrayLike | None, values: np.ndarray) -> np.ndarray | None:
    """Return the target distribution in the shape of the values, or None where none was given."""
    if target is None:
        return None
    targets = _probabilities(target, "target", values.ndim)
    if targets.shape != values.shape:
        raise UserError(f"target has shape {targets.shape}: it must be that of probabilities, {values.shape}")
    return targets


def _row(with_target: bool) -> float:
    """Return the height, in inches, of a word's bar, or of its two bars."""
    return 2.2 * line_height(SMALL) if with_target else 1.5 * line_height(TEXT)


def _beside(decimals: int) -> float:
    """Return the width of the number of a probability, in inches."""
    return 0.12 + text_size(number(0.5, decimals), SMALL)[0]


def _draw(
    ax: Axes, values: np.ndarray, names: Sequence[str], targets: np.ndarray | None, decimals: int
) -> None:
    places = np.arange(len(values))
    best = int(values.argmax())
    thick = 0.8 if targets is None else 0.38
    shift = 0.0 if targets is None else -0.22
    faces = [BEST if index == best else MODEL for index in places]
    ax.barh(places + shift, values, height=thick, color=faces, label="model")
    _write(ax, places + shift, values, decimals)
    if targets is not None:
        ax.barh(places - shift, targets, height=thick, color=TARGET, label="target", **BORDER)
        _write(ax, places - shift, targets, decimals)
    _name_bars(ax, names, (0, 1))


def _name_bars(ax: Axes, names: Sequence[str], limits: tuple[float, float]) -> None:
    """Write the names of the bars, the first at the top, on axes that are otherwise bare."""
    ax.set_yticks(np.arange(len(names)), names, parse_math=False)
    ax.tick_params(axis="y", length=0, labelsize=TEXT)
    ax.set_xticks([])
    ax.set_xlim(*limits)
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.spines[["top", "right", "bottom"]].set_visible(False)


def _legend(ax: Axes, names: tuple[str, str]) -> None:
    """Write the names of the two distributions below the axes."""
    _, height = size_of(ax)
    model, target = names
    handles = [Patch(facecolor=MODEL, label=model), Patch(facecolor=TARGET, label=target, **BORDER)]
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (0, -0.06 / height), "borderaxespad": 0}
    ax.legend(handles=handles, ncols=2, borderpad=0, handlelength=1, **place)


def _write(ax: Axes, places: np.ndarray, values: np.ndarray, decimals: int) -> None:
    width, _ = size_of(ax)
    for y, value in zip(places, values, strict=True):
        ax.text(value + 0.06 / width, y, number(value, decimals), size=SMALL, va="center_baseline")


def score_bars(
    scores: Sequence[ArrayLike],
    words: Sequence[Sequence[str]],
    names: Sequence[str] | None = None,
    *,
    decimals: int = 2,
    title: str | None = None,
) -> Figure:
    """Draw numbers as bars to the right of a zero line, and to the left of it for those below 0.

    Args:
        scores: The numbers of each panel, (T,). All panels have the same scale.
        words: T labels for each panel.
        names: The titles of the panels; none by default.
        decimals, title: The number of decimals, and a title above the picture.

    Raises:
        UserError: If a shape is wrong, a number is not finite, or the bars do not fit.
    """
    with drawing(words, names, title):
        values = [array(each, "scores", 1).astype(np.float64) for each in scores]
        if not values or len(words) != len(values):
            panels = quantity(len(values), "panel")
            raise UserError(f"words has {quantity(len(words), 'list')} for {panels}: give one for each panel")
        if not all(np.isfinite(each).all() for each in values):
            raise UserError("scores must be finite: use a model whose outputs are finite")
        labels = [word_list(each, len(row), "words") for each, row in zip(words, values, strict=True)]
        heads = [""] * len(values) if names is None else word_list(names, len(values), "names")
        every = np.concatenate(values)
        low, high = min(0.0, every.min()), max(0.0, every.max())
        unit = LENGTH / ((high - low) or 1)  # inches
        beside = 0.12 + widest([number(value, decimals) for value in every], SMALL)
        limits = low - beside / unit * (low < 0), high + beside / unit
        length = (limits[1] - limits[0]) * unit
        heads = [wrapped(head, length, LABEL) for head in heads]
        lefts = [widest(each, TEXT) + 0.1 for each in labels]
        total, row_high = sum(lefts) + len(values) * (length + 2 * PAD), _row(with_target=False)
        most, lines = max(map(len, values)) * row_high, max(head.count("\n") for head in heads)
        above = 0.3 + lines * line_height(LABEL) if any(heads) else 0
        figure = new_figure(total, most + 2 * PAD + above, f"a picture of {len(every)} bars", title=title)
        x = PAD
        for row, own, head, left in zip(values, labels, heads, lefts, strict=True):
            height = len(row) * row_high
            ax = axes_at(figure, x + left, PAD + most - height, length, height)
            ax.barh(np.arange(len(row)), row, height=0.8, color=[BEST if v > 0 else BELOW for v in row])
            for y, value in enumerate(row.tolist()):
                side, align = (1, "left") if value >= 0 else (-1, "right")
                style: dict[str, Any] = {"size": SMALL, "va": "center_baseline", "ha": align}
                ax.text(value + side * 0.06 / unit, y, number(value, decimals), **style)
            ax.axvline(0, color="black", linewidth=0.8)
            _name_bars(ax, own, limits)
            ax.spines["left"].set_visible(False)
            ax.set_title(head, size=LABEL, parse_math=False)
            x += left + length + 2 * PAD
        return figure
