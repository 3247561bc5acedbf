"""Lines between two columns of words: who attends to whom, a colour for each head."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from npformer.errors import UserError
from npformer.plots.layout import array, root, sheet, word_line, words
from npformer.plots.palette import head_colour
from npformer.plots.style import LABEL, SMALL, TEXT, drawing, line_height, text_size, widest

WIDEST = 5.0  # points, the line of a weight of 1
FAINTEST = 0.01  # weights under it are not drawn
BLOCK = 0.17  # width of a head's block, in inches
GAP = 0.08
BETWEEN = 1.9  # from the queries to the keys


def word_lines(
    weights,
    queries: Sequence[str],
    keys: Sequence[str],
    *,
    query: int | None = None,
    heads: Sequence[int] | None = None,
    ax: Axes | None = None,
    title: str | None = None,
) -> Figure:
    """Lines from the queries at the left to the keys at the right, wider and darker for a larger weight.

    query draws the lines of one query only, and marks its word. heads are the numbers of the heads given
    (0, 1 .. if left out): they choose the colours. Next to the keys stands a block for each head, coloured by
    the weight that the word has for the one query, or its mean over the queries.
    Weights under .01 are not drawn.
    Shapes: weights (T, S), or (H, T, S) for several heads.
    Errors: UserError for other shapes, or where the words do not fit with letters of 8 points.
    """
    with drawing(queries, keys, title):
        values = array(weights, "weights", 2 if np.ndim(weights) == 2 else 3).astype(np.float64)
        values = values.reshape(-1, *values.shape[-2:])  # (H, T, S)
        left = words(queries, values.shape[1], "queries")
        right = words(keys, values.shape[2], "keys")
        numbers = _heads(heads, len(values))
        if query is not None and not 0 <= query < len(left):
            raise UserError(f"query is {query}: there are queries 0 .. {len(left) - 1}")
        if not np.isfinite(values).all() or (values < 0).any():
            raise UserError("weights must be finite and not negative to be drawn as lines")
        return _draw(values, left, right, query, numbers, ax, title)


def _heads(heads, count) -> list[int]:
    numbers = list(range(count)) if heads is None else list(heads)
    if len(numbers) != count:
        raise UserError(f"heads names {len(numbers)} heads, and there are weights of {count}")
    return numbers


def _draw(values, left, right, query, numbers, ax, title):
    n = max(len(left), len(right))
    row = word_line(TEXT) * 1.25 if n <= 30 else word_line(SMALL)
    size = TEXT if n <= 30 else SMALL
    head = 2 * line_height(LABEL)  # "query", "key" and the heads' numbers
    left_width = max(widest(left, size), text_size("query", LABEL)[0])
    blocks = BLOCK * len(numbers) + (GAP if len(numbers) else 0)
    right_width = blocks + GAP + max(widest(right, size), text_size("key", LABEL)[0])
    width, height = left_width + GAP + BETWEEN + right_width, n * row + head
    ax = sheet(width, height, ax=ax, title=title, what=f"a picture of {n} words")
    x0, x1 = left_width + GAP, left_width + GAP + BETWEEN
    y_left = (n * row - (n - len(left)) * row / 2) - row * (np.arange(len(left)) + 0.5)
    y_right = (n * row - (n - len(right)) * row / 2) - row * (np.arange(len(right)) + 0.5)
    shown = np.zeros(len(left), bool)
    shown[slice(None) if query is None else query] = True
    _lines(ax, values, shown, numbers, (x0, y_left), (x1, y_right), row)
    _blocks(ax, values[:, shown].mean(1), numbers, x1, y_right, row)
    for y, word, chosen in zip(y_left, left, shown, strict=True):
        weight = "bold" if chosen and query is not None else "normal"
        colour = "#222222" if chosen else "#767676"
        ax.text(
            x0 - GAP,
            y,
            word,
            size=size,
            ha="right",
            va="center_baseline",
            color=colour,
            weight=weight,
            parse_math=False,
        )
    for y, word in zip(y_right, right, strict=True):
        ax.text(x1 + blocks + GAP, y, word, size=size, va="center_baseline", parse_math=False)
    _names(ax, n * row, numbers, x0, x1, blocks)
    return root(ax)


def _lines(ax, values, shown, numbers, start, end, row):
    """One collection of lines for each head; they end at slightly different heights, to hide none."""
    (x0, y_left), (x1, y_right) = start, end
    apart = np.linspace(0.28, -0.28, len(numbers)) * row if len(numbers) > 1 else np.zeros(1)
    for head, number, shift in zip(values, numbers, apart, strict=True):
        t, s = np.nonzero((head >= FAINTEST) & shown[:, None])
        starts = np.stack([np.full(len(t), x0), y_left[t]], -1)
        ends = np.stack([np.full(len(s), x1), y_right[s] + shift], -1)
        weights = head[t, s]  # (N,)
        colours = np.tile(to_rgba(head_colour(number)), (len(t), 1))
        colours[:, 3] = np.clip(0.15 + 0.85 * weights, 0, 1)
        lines = LineCollection(
            list(np.stack([starts, ends], 1)), linewidths=WIDEST * weights, colors=colours, clip_on=False
        )
        lines.set_label(f"head {number}")
        lines.set_capstyle("round")
        ax.add_collection(lines, autolim=False)


def _blocks(ax, weights, numbers, x, y_right, row):
    """A column of blocks for each head. Shapes: weights (H, S)."""
    for index, (head, number) in enumerate(zip(weights, numbers, strict=True)):
        left = x + GAP / 2 + index * BLOCK
        x0, x1, half = left, left + BLOCK - 0.02, 0.42 * row
        squares = [[(x0, y - half), (x1, y - half), (x1, y + half), (x0, y + half)] for y in y_right]
        colours = np.tile(to_rgba(head_colour(number)), (len(head), 1))
        colours[:, 3] = np.clip(head, 0, 1)
        ax.add_collection(PolyCollection(squares, facecolors=colours, edgecolors="none"), autolim=False)


def _names(ax, top, numbers, x0, x1, blocks):
    """ "query", "key", and over each column of blocks the head's number in its colour."""
    y = top + 0.3 * line_height(LABEL)
    ax.text(x0 - GAP, y, "query", size=LABEL, ha="right", va="bottom", style="italic")
    ax.text(x1 + blocks + GAP, y, "key", size=LABEL, va="bottom", style="italic")
    if len(numbers) > 1:
        ax.text(x1 - 0.02, y, "head", size=SMALL, ha="right", va="bottom")
    for index, number in enumerate(numbers):
        if len(numbers) > 1:
            x = x1 + GAP / 2 + (index + 0.5) * BLOCK - 0.01
            ax.text(
                x, y, str(number), size=SMALL, ha="center", va="bottom", color=_dark(number), weight="bold"
            )


def _dark(number):
    """The head's colour, darkened until it can be read on white."""
    red, green, blue, _ = to_rgba(head_colour(number))
    return 0.65 * red, 0.65 * green, 0.65 * blue
