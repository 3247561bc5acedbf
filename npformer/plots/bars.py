"""Probabilities as horizontal bars, with the target probabilities beside them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import ArrayLike

from npformer.errors import UserError, quantity
from npformer.plots.layout import PAD, array, axes_at, new_figure, put_title, root, size_of, title_room
from npformer.plots.layout import words as word_list
from npformer.plots.palette import COLOURS
from npformer.plots.style import LABEL, SMALL, TEXT, drawing, line_height, number, text_size, widest, wrapped

MODEL, BEST, TARGET = COLOURS["r"], "#1b5fa8", COLOURS["k"]
BORDER: dict[str, Any] = {"edgecolor": "#b85c00", "linewidth": 0.8}  # of the bars of the target
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
        probabilities: The probabilities, (V,).
        words: V labels.
        target: The target distribution, (V,), drawn as a second bar for each word.
        names: The names of the two distributions in the legend.
        decimals: The number of decimals.
        ax: Axes to draw on; by default those of a new figure.
        title: A title above the picture.

    Returns:
        The figure.

    Raises:
        UserError: If a shape is wrong, a number is outside 0 .. 1, or the labels do not fit.
    """
    with drawing(words, names, title):
        values = _probabilities(probabilities, "probabilities", 1)
        labels = word_list(words, len(values), "words")
        targets = _targets(target, values)
        if ax is None:
            ax = _own_axes(labels, targets is not None, decimals, title)
        else:
            _must_fit(ax, len(labels), targets is not None)
            if title:
                ax.set_title(wrapped(title, size_of(ax)[0]))
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
        probabilities: The probabilities, (T, V).
        words: V labels.
        positions: T panel titles; 0, 1, ... by default.
        target: The target distributions, (T, V), drawn as a second bar for each word.
        decimals: The number of decimals.
        title: A title above the picture.

    Returns:
        The figure.

    Raises:
        UserError: If a shape is wrong, or the panels do not fit.
    """
    with drawing(words, positions, title):
        values = _probabilities(probabilities, "probabilities", 2)
        names = word_list(words, values.shape[1], "words")
        heads = word_list(positions, len(values), "positions")
        targets = _targets(target, values)
        return _panels(values, names, heads, targets, decimals, title)


def _panels(
    values: np.ndarray,
    names: list[str],
    heads: list[str],
    targets: np.ndarray | None,
    decimals: int,
    title: str | None,
) -> Figure:
    with_target = targets is not None
    target_rows: Iterable[np.ndarray | None] = [None] * len(values) if targets is None else targets
    beside = 0.12 + text_size(number(0.5, decimals), SMALL)[0]
    length = max(1.0, widest(heads, LABEL))
    height = len(names) * _row(with_target)
    left, step = PAD + widest(names, TEXT) + 0.1, length + beside + 2 * PAD
    total = left + len(values) * step
    title = wrapped(title, total - 2 * PAD)
    _, up = title_room(title)
    below = 0.3 if with_target else 0
    figure = new_figure(
        total, height + 2 * PAD + 0.3 + up + below, f"a picture of {len(values)} × {len(names)} bars"
    )
    for index, (row, head, target) in enumerate(zip(values, heads, target_rows, strict=True)):
        ax = axes_at(figure, left + index * step, PAD + below, length, height)
        _draw(ax, row, names if index == 0 else [""] * len(names), target, decimals)
        if with_target and index == 0:
            _legend(ax, ("model", "target"))
        ax.set_title(head, size=LABEL, parse_math=False)
    if title:
        put_title(figure, title)
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


def _own_axes(names: Sequence[str], with_target: bool, decimals: int, title: str | None) -> Axes:
    left, right = widest(names, TEXT) + 0.1, 0.12 + text_size(number(0.5, decimals), SMALL)[0]
    title = wrapped(title, left + LENGTH + right)
    _, up = title_room(title)
    height, below = len(names) * _row(with_target), 0.3 if with_target else 0
    total = left + LENGTH + right + 2 * PAD
    figure = new_figure(total, height + below + 2 * PAD + up, f"a picture of {len(names)} words")
    if title:
        put_title(figure, title)
    return axes_at(figure, PAD + left, PAD + below, LENGTH, height)


def _must_fit(ax: Axes, count: int, with_target: bool) -> None:
    _, height = size_of(ax)
    least = line_height(SMALL) * (2 if with_target else 1)
    if count * least > height:
        raise UserError(
            f"{quantity(count, 'word')} cannot be written on axes {height:.1f} inches high at 8 points: "
            "draw only the most probable ones"
        )


def _draw(
    ax: Axes,
    values: np.ndarray,
    names: Sequence[str],
    targets: np.ndarray | None,
    decimals: int,
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
    ax.set_yticks(places, names, parse_math=False)
    ax.tick_params(axis="y", length=0, labelsize=TEXT)
    ax.set_xticks([])
    ax.set_xlim(0, 1)
    ax.set_ylim(len(values) - 0.5, -0.5)
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
