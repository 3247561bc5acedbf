"""Descriptions of figures in lines of text, which are recorded and compared with those of a later version."""

import re
from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from figure_cells import grids, number
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle

NUMBER = re.compile(r"-?\d*\.?\d+")
CLOSE = 1e-6  # inches
MOST = 60  # numbers of one array that a description has


@dataclass(frozen=True)
class Shape:
    """A box with its label, a frame without one, or a circle with its sign."""

    label: str
    left: float
    bottom: float
    right: float
    top: float
    edge_width: float
    alpha: float | None
    round: bool = False

    @property
    def x(self):
        return (self.left + self.right) / 2

    @property
    def y(self):
        return (self.bottom + self.top) / 2

    def on_edge(self, point):
        """Return whether a point lies on the outline."""
        x, y = point
        if self.round:
            return abs(np.hypot(x - self.x, y - self.y) - (self.right - self.left) / 2) < CLOSE
        inside = self.left - CLOSE <= x <= self.right + CLOSE and self.bottom - CLOSE <= y <= self.top + CLOSE
        sides = (x - self.left, self.right - x, y - self.bottom, self.top - y)
        return inside and min(map(abs, sides)) < CLOSE


@dataclass(frozen=True)
class Arrow:
    points: np.ndarray  # (N, 2)
    dashed: bool

    @property
    def ends(self):
        return self.points[0], self.points[-1]


def shapes(figure):
    """Return boxes and signs in the order of their centres, from the bottom up, without frames."""
    found = []
    labels = {tuple(np.round(t.get_position(), 6)): t.get_text() for t in figure.axes[0].texts}
    for patch in figure.axes[0].patches:
        if isinstance(patch, FancyBboxPatch):
            left, bottom, width, height = patch.get_x(), patch.get_y(), patch.get_width(), patch.get_height()
        elif isinstance(patch, Circle):
            (x, y), radius = patch.center, patch.radius
            left, bottom, width, height = x - radius, y - radius, 2 * radius, 2 * radius
        else:
            continue
        label = labels.get(tuple(np.round((left + width / 2, bottom + height / 2), 6)))
        if label is not None:
            style = (patch.get_linewidth(), patch.get_alpha())
            ends = (left, bottom, left + width, bottom + height)
            found.append(Shape(label, *ends, *style, isinstance(patch, Circle)))
    return sorted(found, key=lambda shape: (round(shape.y, 6), shape.x))


def arrows(figure):
    return [
        Arrow(
            np.array(patch._path_original.vertices),
            patch.get_linestyle() not in ("-", "solid"),
        )
        for patch in figure.axes[0].patches
        if isinstance(patch, FancyArrowPatch)
    ]


def describe(drawing):
    """Describe a figure and its caption: numbers in cells, bars and curves, boxes and arrows, and texts."""
    lines, boxes = [], shapes(drawing.figure)
    for ax in drawing.figure.axes:
        lines += numbers_of(ax)
    lines += boxes_and_arrows(drawing.figure, boxes)
    for cells in grids(drawing.figure):
        faces = [tuple(face) for face in cells.faces.reshape(-1, 3).round(3)]
        order = list(dict.fromkeys(faces))
        colours = "".join("abcde"[order.index(face)] for face in faces) if len(order) <= 5 else "shaded"
        lines.append(f"cells {'x'.join(map(str, cells.values.shape))}: {row_of(cells.values, 2)}; {colours}")
    labels = {shape.label for shape in boxes}
    written = [text.get_text() for part in (*drawing.figure.axes, drawing.figure) for text in part.texts]
    texts = [text for text in written if text not in labels and np.isnan(number(text))]
    lines += [f"texts: {' | '.join(sorted(texts))}", f"caption: {drawing.caption}"]
    return [line.replace("\n", " / ") for line in lines]


def numbers_of(ax):
    """Yield a line for the names of axes, for each heat map and curve, for all bars, and for arrows."""
    if ax.axison:
        named = [ax.get_title(), ax.get_title(loc="left"), ax.get_xlabel(), ax.get_ylabel()]
        named += [label.get_text() for label in (*ax.get_xticklabels(), *ax.get_yticklabels())]
        yield f"axes: {' | '.join(filter(None, named))}"
    if ax.get_legend():
        yield f"legend: {' | '.join(text.get_text() for text in ax.get_legend().get_texts())}"
    yield from (f"map: {row_of(image.get_array())}" for image in ax.images)
    yield from (f"line: {row_of(line.get_ydata())}" for line in ax.lines)
    bars = [(patch.get_width(), patch.get_height()) for patch in ax.patches if type(patch) is Rectangle]
    widths = [patch.get_linewidth() for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    yield from [f"bars: {row_of(bars)}"] if bars else ()
    yield from [f"widths: {row_of(widths, 1)}"] if len(set(widths)) > 1 else ()


def row_of(array, digits=3):
    """Write the numbers of an array, or some of them if they are many."""
    numbers = np.ma.filled(np.ma.asarray(array, float), np.nan).ravel()
    return " ".join(f"{number:.{digits}f}" for number in numbers[:: -(-len(numbers) // MOST) or 1])


def boxes_and_arrows(figure, boxes):
    """Yield the rows of boxes from the bottom up, and the ends of all arrows, the same ones together.

    A circle without a sign is (). An arrow that does not begin at a box begins "above" one, or at "·", as one
    that ends at no box.
    """
    rows, ends = defaultdict(list), Counter()
    for shape in boxes:
        rows[round(shape.y, 6)].append(shape.label or "()")
    yield from (f"boxes: {' | '.join(row)}" for row in rows.values())
    for arrow in arrows(figure) if boxes else ():
        start, end = (next((s.label or "()" for s in boxes if s.on_edge(at)), "") for at in arrow.ends)
        x, y = arrow.ends[0]
        below = [shape.label or "()" for shape in boxes if abs(shape.x - x) < CLOSE and shape.top < y]
        start = start or (f"above {below[-1]}" if below else "·")
        corners = f", corners: {len(arrow.points) - 2}" if len(arrow.points) > 2 else ""
        ends[f"{start} {'-->' if arrow.dashed else '->'} {end or '·'}{corners}"] += 1
    yield from (f"{number} x {line}" if number > 1 else line for line, number in sorted(ends.items()))


def differences(found, expected):
    """Return the lines that differ by more than the rounding of numbers, which depends on the processor."""
    different = [pair for pair in zip(found, expected, strict=False) if not is_close(*pair)]
    return [*different, *found[len(expected) :], *expected[len(found) :]]


def is_close(found, expected):
    """Return whether lines have the same words, and numbers that differ by one in the last digit at most."""
    found, expected = (line.replace("−", "-") for line in (found, expected))
    pairs = zip(NUMBER.findall(found), NUMBER.findall(expected), strict=False)
    same_words = NUMBER.sub("#", found) == NUMBER.sub("#", expected)
    return same_words and all(
        a == b or abs(float(a) - float(b)) <= 1.001 * last_digit(a, b) for a, b in pairs
    )


def last_digit(*numbers):
    """Return one of the last digit of the shorter number, or 0 for whole numbers, which must be equal."""
    places = [len(number.partition(".")[2]) for number in numbers]
    return 10.0 ** -min(places) if all(places) else 0.0
