"""A computation as a graph: its numbers from left to right, and the gradients from right to left."""

import math
from collections.abc import Mapping

from matplotlib.figure import Figure

from npformer.errors import UserError
from npformer.plots.board import Board, new_board
from npformer.plots.boxes import Box, Point
from npformer.plots.style import FORMULA, LABEL, TEXT, number, widest

HIGH = 0.62  # inches, the height of the box of a variable, with its name above its value
ROW = 1.05  # inches between two rows
BEFORE, AFTER = 0.72, 0.55  # inches between the boxes and the circle of an operation
RADIUS = 0.17  # inches, of the circle
APART = 0.09  # inches between an arrow of the forward pass and one of the backward pass
CLEAR = 0.13  # inches from a box to an arrow that passes it
UNDER = 0.2  # inches, the height of a gradient below its box


def computation_graph(
    operations: Mapping[str, str],
    values: Mapping[str, float],
    gradients: Mapping[str, float] | None = None,
    *,
    decimals: int = 2,
    title: str | None = None,
) -> Figure:
    """Draw a computation of numbers. An arrow leads from each number to the results that it is used for.

        operations = {"p": "w × x", "e": "p − t", "L": "e ²"}
        computation_graph(operations, {"w": 0.5, "x": 2, "t": 3, "p": 1, "e": -2, "L": 4})

    Args:
        operations: For each result, its operation: the names of one or two variables and a sign, with spaces
            between them. A result may only use results before it.
        values: The value of each variable.
        gradients: The derivative of the last result with respect to some of the variables. They are drawn
            below the boxes, with arrows from right to left.
        decimals: The number of decimals.
        title: A title above the picture.

    Raises:
        UserError: If a value is missing, or if an operation is not written like these.
    """
    if not operations:
        raise UserError("there are no operations: give at least one")
    gradients = gradients or {}
    inputs = {result: _inputs(result, text, operations) for result, text in operations.items()}
    names = list(dict.fromkeys(name for result in inputs for name in (*inputs[result], result)))
    missing = [name for name in names if name not in values]
    if missing:
        raise UserError(f"values has no number for {', '.join(missing)}: give one for each variable")
    for name in gradients:
        if name not in names:
            raise UserError(f"no operation has the variable {name}: remove it from gradients")
    texts = [number(values[name], decimals) for name in names]
    slopes = {name: f"d{name} = {number(slope, decimals)}" for name, slope in gradients.items()}
    with new_board(names, title=title, what="this graph") as board:
        width = max(HIGH, widest(texts, LABEL) + 0.2, widest(names, FORMULA) + 0.2)
        width = max(width, widest(slopes.values(), TEXT))
        places = _places(inputs, width + BEFORE + AFTER)
        boxes = {}
        for name, text in zip(names, texts, strict=True):
            x, y = places[name]
            boxes[name] = board.box("", x, y, width, HIGH, colour="v" if name in inputs else "x")
            board.text(x, y + 0.13, name, size=FORMULA, style="italic", room=False)
            board.text(x, y - 0.14, text, size=LABEL, room=False)
            if name in slopes:
                board.text(x, y - HIGH / 2 - 0.13, slopes[name], color="#b85c00", weight="bold")
        for result in inputs:
            sign = next(word for word in operations[result].split() if word not in inputs[result])
            x, y = boxes[result].left
            centre = (x - AFTER, y)
            board.sign(*centre, sign, radius=RADIUS)
            _arrows(board, [(x - AFTER + RADIUS, y), (x, y)], result in gradients)
            for name in inputs[result]:
                _arrows(board, _way(boxes[name].right, centre, list(boxes.values())), name in gradients)
    return board.figure


def _inputs(result: str, text: str, operations: Mapping[str, str]) -> list[str]:
    """Return the variables of an operation: one or two words of three at most are names."""
    words = text.split()
    found = [word for word in words if word.isidentifier()]
    if not (1 <= len(found) <= 2 and len(words) == len(found) + 1):
        raise UserError(
            f"the operation of {result} is {text!r}: write one or two variables and a sign, "
            "with spaces between them, such as 'w × x' or 'e ²'"
        )
    for name in found:
        if name in list(operations)[list(operations).index(result) :]:
            raise UserError(f"{result} uses {name}: a result may only use results before it")
    return found


def _places(inputs: Mapping[str, list[str]], column: float) -> dict[str, tuple[float, float]]:
    """Return the centre of each box. A result stands to the right of its inputs, beside the first result."""
    places: dict[str, tuple[float, float]] = {}
    for result, names in inputs.items():
        left = max([places[name][0] for name in names if name in places], default=0.0)
        for name in names:
            if name not in places:
                above = [y for x, y in places.values() if x == left]
                places[name] = (left, min(above) - ROW if above else 0.0)
        heights = [places[name][1] for name in names if name in inputs] or [places[n][1] for n in names]
        y = sum(heights) / len(heights)
        others = [height for x, height in places.values() if x == left + column]
        if any(abs(y - height) < ROW for height in others):
            y = min(others) - ROW
        places[result] = (left + column, y)
    return places


def _way(start: Point, centre: Point, boxes: list[Box]) -> list[Point]:
    """Return the points of an arrow to a circle, round the boxes that a straight arrow would cross."""
    slope = (centre[1] - start[1]) / (centre[0] - start[0])

    def above(box: Box) -> float:
        """Return by how much a straight arrow would be above the middle of a box."""
        return start[1] + slope * (box.x - start[0]) - box.y

    crossed = [
        box
        for box in sorted(boxes, key=lambda box: box.x)
        if start[0] < box.x < centre[0] and abs(above(box)) < HIGH / 2 + CLEAR + abs(slope) * box.width / 2
    ]
    if not crossed:
        return [start, _towards(centre, start)]
    if above(crossed[0]) >= 0:
        y = max(box.top[1] for box in crossed) + CLEAR
    else:
        y = min(box.bottom[1] for box in crossed) - CLEAR - UNDER
    end = (crossed[-1].right[0], y)
    return [start, (crossed[0].left[0], y), end, _towards(centre, end)]


def _arrows(board: Board, points: list[Point], has_gradient: bool) -> None:
    """Draw the arrow of the forward pass, and below it that of the backward pass if there is a gradient."""
    start, end, *_ = points
    slant = math.hypot(end[0] - start[0], end[1] - start[1]) / (end[0] - start[0])
    apart = APART * slant if has_gradient else 0.0  # upwards, so that all pairs of arrows look equally wide
    board.arrow(*((x, y + apart) for x, y in points))
    if has_gradient:
        backward = [(x, y - apart) for x, y in reversed(points)]
        board.arrow(*backward, colour="highlight", dashed=True)


def _towards(centre: Point, other: Point) -> Point:
    """Return the point of a circle that is nearest to another point."""
    distance = math.hypot(other[0] - centre[0], other[1] - centre[1])
    share = RADIUS / distance
    return centre[0] + share * (other[0] - centre[0]), centre[1] + share * (other[1] - centre[1])
