"""A computation of arrays, drawn as rectangles of cells, with the flow of its gradients."""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.collections import PolyCollection
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike

from npformer.backend import to_numpy
from npformer.errors import UserError
from npformer.plots.board import Board, new_board
from npformer.plots.boxes import Point
from npformer.plots.heat_maps import refuse_not_finite
from npformer.plots.layout import array
from npformer.plots.palette import COLOURS, edge
from npformer.plots.style import FORMULA, line_height, widest

LETTERS = 11.0  # points, of axes and operations: 9 pixels where a telephone shows a picture of 5.5 inches
ENTRY, SHORTEST, LONGEST = 0.075, 0.24, 0.56  # inches: the length of an entry, and of the sides of an array
BETWEEN = 0.17  # inches, from the cells of an array to those of its gradient
LANE = 0.13  # inches, from the middle of a block to its forward and to its backward arrows
TURN = 0.07  # inches, from the middle of two columns to arrows that lead to another row
BESIDE = 0.15  # inches, for the letter of the rows
RADIUS = 0.17  # inches, of the circle of an operation
LEAST_GAP, COPY_GAP = 0.66, 0.36  # inches, between two columns, with an operation and with copies only
FORWARD, BACKWARD = edge("r"), edge("k")  # the colours of the largest number of an array and of a gradient


class Step(NamedTuple):
    """An operation of `gradient_flow`.

    Attributes:
        text: The operation in a few letters, such as "softmax". An empty text is a copy.
        inputs: The names of the arrays that it uses.
    """

    text: str
    inputs: Sequence[str]


def gradient_flow(
    layout: str,
    arrays: Mapping[str, ArrayLike],
    steps: Mapping[str, Step],
    gradients: Mapping[str, ArrayLike | None] | None = None,
    *,
    axes: Mapping[str, str],
    title: str | None = None,
) -> Figure:
    """Draw a computation of arrays. An array is a rectangle of cells.

    The larger the absolute value of a number, the stronger the colour of its cell. Minus infinity, as of
    masked scores, is dark grey.

        layout = '''x  h  y
                    w  .  .'''
        steps = {"h": Step("x w", ["x", "w"]), "y": Step("tanh", ["h"])}
        axes = {"x": "T D", "w": "D F", "h": "T F", "y": "T F"}
        gradient_flow(layout, arrays, steps, {"y": dy, "h": None, "w": None}, axes=axes)

    Args:
        layout: The names of the arrays in rows and columns, as they are drawn. A dot is an empty place. A
            result must stand to the right of the arrays that it is computed from.
        arrays: The numbers of each array, of one or two axes. An array of one axis is drawn as a row.
        steps: For each result, the operation that computes it. Circles have the numbers of the operations.
        gradients: The gradients of some arrays. They are drawn below the arrays, with dashed arrows from the
            gradient of each result to those of its inputs. None is a gradient that is not computed yet.
        axes: For each array, the letters of its axes, with spaces between them.
        title: A title above the picture.

    Raises:
        UserError: If a name is missing or stands in a wrong place, or if a shape is wrong.
    """
    gradients = gradients or {}
    rows = [line.split() for line in layout.strip().splitlines()]
    column = {name: index for row in rows for index, name in enumerate(row) if name != "."}
    if not column:
        raise UserError("the layout has no arrays: write their names in rows and columns")
    _check(rows, column, arrays, steps, gradients, axes)
    _check_ways(rows, column, steps)
    lane = LANE if gradients else 0.0
    texts = [*(f"d{name}" for name in column), *axes.values(), *(step.text for step in steps.values())]
    with new_board(texts, title=title, what="this graph") as board:
        blocks = {
            name: Block(name, arrays[name], axes[name].split(), name in gradients, gradients.get(name))
            for name in column
        }
        middles = _place(rows, column, blocks, steps, 2 if gradients else 1)
        for block in blocks.values():
            block.draw(board, lane)
        numbers = itertools.count(1)
        for result, step in steps.items():
            inputs, end = [blocks[name] for name in step.inputs], blocks[result]
            middle = middles[column[result]]
            if step.text:
                board.sign(middle, end.y, str(next(numbers)), radius=RADIUS)
                over = RADIUS if gradients else end.row_height + 0.16  # above the names of the arrays
                _write_operation(
                    board, step.text, (middle, end.y), [block.y for block in inputs], over + 0.16
                )
            _draw_arrows(board, inputs, end, middle, lane, has_circle=bool(step.text))
    return board.figure


class Block:
    """An array of the picture, with its gradient below it.

    Args:
        name: The name of the array.
        numbers: Its numbers.
        letters: The letters of its axes.
        has_gradient: Whether its gradient has a rectangle.
        gradient: The numbers of its gradient, or None for an empty rectangle.
    """

    def __init__(
        self,
        name: str,
        numbers: ArrayLike,
        letters: Sequence[str],
        has_gradient: bool,
        gradient: ArrayLike | None,
    ) -> None:
        self.name, self.letters, self.has_gradient = name, letters, has_gradient
        self.numbers = np.atleast_2d(to_numpy(numbers))  # (N, M)
        self.gradient = None if gradient is None else np.atleast_2d(to_numpy(gradient))  # (N, M)
        self.height, self.width = np.clip(ENTRY * np.array(self.numbers.shape), SHORTEST, LONGEST).tolist()
        named = widest([f"d{name}" if has_gradient else name], FORMULA)
        beside = BESIDE if len(letters) > 1 else 0.0
        self.left = max(self.width / 2 + beside, named / 2)  # inches of room on each side of the middle
        self.right = max(self.width, named) / 2
        self.x = self.y = self.row_height = 0.0  # the place of its arrows, and the largest height in its row

    def draw(self, board: Board, lane: float) -> None:
        """Draw the array at its place.

        Args:
            board: The board.
            lane: The height of the forward arrows above the place: 0 in a picture without gradients.
        """
        x = self.x
        # the arrows end near the lower edge, below the letter of the rows
        bottom = self.y + lane - (LANE - BETWEEN / 2)
        self._draw_cells(board, x, bottom, self.numbers, FORWARD, "-")
        over = bottom + self.height + line_height(FORMULA) / 2
        board.text(x, over, self.name, size=FORMULA, style="italic")
        *rows, columns = self.letters
        board.text(x, bottom - BETWEEN / 2, columns, size=LETTERS, color=COLOURS["faint"])
        for letter in rows:
            left, height = x - self.width / 2 - 0.04, bottom + self.height / 2 + 0.03
            board.text(left, height, letter, size=LETTERS, ha="right", color=COLOURS["faint"])
        if self.has_gradient:
            bottom -= BETWEEN + self.height
            self._draw_cells(board, x, bottom, self.gradient, BACKWARD, (0, (3, 1.6)))
            below = bottom - line_height(FORMULA) / 2
            board.text(x, below, f"d{self.name}", size=FORMULA, style="italic", color=BACKWARD)

    def _draw_cells(
        self,
        board: Board,
        x: float,
        bottom: float,
        numbers: np.ndarray | None,
        colour: str,
        line: str | tuple[int, tuple[float, float]],
    ) -> None:
        """Draw a frame, and cells whose colour grows with the absolute value of their number."""
        left, top = x - self.width / 2, bottom + self.height
        frame = Rectangle((left, bottom), self.width, self.height, facecolor="none", edgecolor=colour)
        frame.set(linewidth=1.4, linestyle=line, zorder=5, clip_on=False)
        board.ax.add_patch(frame)
        board.take(left, bottom, left + self.width, top)
        if numbers is None:
            return
        high, wide = np.array([self.height, self.width]) / numbers.shape
        row, column = np.indices(numbers.shape).reshape(2, -1)
        starts = np.stack([left + wide * column, top - high * (row + 1)], -1)  # (N·M, 2)
        corners = np.array([[0, 0], [wide, 0], [wide, high], [0, high]])  # (4, 2)
        shown = numbers != -np.inf
        size = np.where(shown, np.abs(numbers.astype(np.float64)), 0)
        colours = LinearSegmentedColormap.from_list("size", ["#ffffff", colour])
        faces = colours.with_extremes(bad=COLOURS["masked"])(
            np.ma.masked_array(size / (size.max() or 1.0), ~shown).ravel()
        )
        cells = PolyCollection(starts[:, None] + corners, facecolors=faces, edgecolors=faces)
        cells.set(linewidth=0.3, zorder=4, clip_on=False)
        board.ax.add_collection(cells, autolim=False)


def _place(
    rows: Sequence[Sequence[str]],
    column: Mapping[str, int],
    blocks: Mapping[str, Block],
    steps: Mapping[str, Step],
    stories: int,
) -> list[float]:
    """Place the arrays, and return the middle of the space before each column."""
    middles, right = list[float](), 0.0
    for index in range(max(column.values()) + 1):
        here = [name for name, place in column.items() if place == index]
        texts = [steps[name].text for name in here if name in steps and steps[name].text]
        gap = max(LEAST_GAP, widest(texts, LETTERS) + 0.1) if texts else COPY_GAP
        middles.append(right + gap / 2)
        centre = right + gap + max((blocks[name].left for name in here), default=0.0)
        right = centre + max((blocks[name].right for name in here), default=0.0)
        for name in here:
            blocks[name].x = centre
    row_of = {name: index for index, row in enumerate(rows) for name in row}
    top = 0.0
    for index, row in enumerate(rows):
        from_above = [
            name for name in row if name in steps for each in steps[name].inputs if row_of[each] < index
        ]
        if stories == 1 and any(name in steps and steps[name].text for name in row if name not in from_above):
            top -= line_height(LETTERS) + 0.12  # for the operations above the names
        beside = [blocks[name] for name in row if name != "."]
        tallest = max((block.height for block in beside), default=0.0)
        high = stories * (tallest + line_height(FORMULA)) + BETWEEN
        for block in beside:
            block.y, block.row_height = top - high / 2, tallest
        top -= high + 0.1
    return middles


def _write_operation(board: Board, text: str, centre: Point, heights: Sequence[float], over: float) -> None:
    """Write an operation at a height over the centre of its circle, or where none of its arrows comes from.

    Args:
        board, text, centre: The board, the text, and the centre of the circle.
        heights: The heights from which the arrows come.
        over: The height of the text over the centre.
    """
    x, y = centre
    if max(heights) <= y:
        board.text(x, y + over, text, size=LETTERS)
    elif min(heights) >= y:
        board.text(x, y - RADIUS - 0.16, text, size=LETTERS)
    else:
        board.text(x - RADIUS - 0.06, y, text, size=LETTERS, ha="right")


def _draw_arrows(
    board: Board, inputs: Sequence[Block], result: Block, middle: float, lane: float, *, has_circle: bool
) -> None:
    """Draw the arrows from the inputs of an operation to its result, through its circle if it has one."""
    goal = result.x - result.width / 2, result.y
    if has_circle:
        edge = middle + math.sqrt(RADIUS**2 - lane**2), result.y
        _arrow(board, edge, goal, middle, lane, backward=result.has_gradient)
    for block in inputs:
        start = block.x + block.width / 2, block.y
        backward = block.has_gradient and result.has_gradient
        _arrow(board, start, (middle, result.y) if has_circle else goal, middle, lane, backward=backward)


def _arrow(board: Board, start: Point, end: Point, middle: float, lane: float, *, backward: bool) -> None:
    """Draw the forward arrow from start to end, and a dashed arrow back. They turn at `middle`.

    If `middle` is the x of the end, then the end is the centre of a circle, and the arrows end at its edge.
    """
    (x0, y0), (x1, y1) = start, end
    up = math.copysign(1.0, y1 - y0)
    for sign, is_back in ((1, False), (-1, True))[: 1 + backward]:
        height, turn = sign * lane, middle - sign * up * (TURN if lane else 0.0)
        if y0 == y1:
            edge = math.sqrt(RADIUS**2 - lane**2) if x1 == middle else 0.0
            points = [(x0, y0 + height), (x1 - edge, y1 + height)]
        elif x1 == middle:
            edge = math.sqrt(RADIUS**2 - (turn - middle) ** 2)
            points = [(x0, y0 + height), (turn, y0 + height), (turn, y1 - up * edge)]
        else:
            points = [(x0, y0 + height), (turn, y0 + height), (turn, y1 + height), (x1, y1 + height)]
        if is_back:
            board.arrow(*points[::-1], colour="highlight", dashed=True)
        else:
            board.arrow(*points)


def _check(
    rows: Sequence[Sequence[str]],
    column: Mapping[str, int],
    arrays: Mapping[str, ArrayLike],
    steps: Mapping[str, Step],
    gradients: Mapping[str, ArrayLike | None],
    axes: Mapping[str, str],
) -> None:
    """Raise UserError if a name is missing or stands in a wrong place, or if a shape is wrong."""
    for name in column:
        places = sum(row.count(name) for row in rows)
        if places > 1:
            raise UserError(f"{name} stands {places} times in the layout: give it one place")
        if name not in arrays or name not in axes:
            raise UserError(
                f"{name} of the layout is missing in arrays or axes: give its numbers and letters"
            )
        shape = _numbers(arrays[name], name).shape
        if len(shape) != len(axes[name].split()):
            raise UserError(
                f"{name} has shape {shape}, and its axes are {axes[name]!r}: give one or two axes, and a "
                "letter for each"
            )
        gradient = gradients.get(name)
        other = shape if gradient is None else _numbers(gradient, f"d{name}").shape
        if other != shape:
            raise UserError(f"{name} has shape {shape}, and its gradient {other}: give equal shapes")
    for name in (*gradients, *steps, *(name for step in steps.values() for name in step.inputs)):
        if name not in column:
            raise UserError(f"the layout has no {name}: add it, or remove it from steps and gradients")
    for result, step in steps.items():
        if not step.inputs:
            raise UserError(f"the operation of {result} has no inputs: give one at least")
        for name in step.inputs:
            if column[name] >= column[result]:
                raise UserError(f"{result} uses {name}: place it to the right of {name} in the layout")


def _numbers(values: ArrayLike, name: str) -> np.ndarray:
    """Return an array of one or two axes, in which minus infinity counts as masked, or raise UserError."""
    numbers = array(values, name, 1, 2)
    refuse_not_finite(numbers, name, numbers != -np.inf)
    return numbers


def _check_ways(rows: Sequence[Sequence[str]], column: Mapping[str, int], steps: Mapping[str, Step]) -> None:
    """Raise UserError if an arrow would lead through another array, or the circle of another result."""
    row = {name: index for index, names in enumerate(rows) for name in names if name != "."}
    for result, step in steps.items():
        for name in step.inputs:
            passed = [each for each in rows[row[name]][column[name] + 1 : column[result]] if each != "."]
            low, high = sorted((row[name], row[result]))
            passed += [
                other
                for other, its in steps.items()
                if its.text
                and other != result
                and column[other] == column[result]
                and low <= row[other] <= high
            ]
            if passed:
                raise UserError(
                    f"the arrow from {name} to {result} would lead through {passed[0]} or its circle: place "
                    "them in other rows or columns"
                )
