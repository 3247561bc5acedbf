"""F37 to F40: the heads' own weights, their outputs, W^O, and all of multi-head attention on one sheet."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError
from npformer.learn.figures.datawhale_example import Example, Head, make_example
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Grid
from npformer.plots.board import Board, new_board, numbered, paler
from npformer.plots.palette import COLOURS
from npformer.plots.style import number as number_text
from npformer.plots.style import widest, wrapped

HIGH = 0.27  # of a cell, in inches
PALE = 0.45  # the share of its colour in the second head, mixed with white
IN_A_ROW = 4  # heads


@figure("F37", "Two heads, each with its own weights", "datawhale", "FW", "7.1", make_example)
def two_heads(example: Example, *, heads: tuple[int, int] = (0, 1)) -> Drawing:
    """Draw X and two heads with their weights, queries, keys and values."""
    if len(heads) != 2:
        raise UserError(f"heads is {heads!r}: name two heads")
    pair = [example.head(head) for head in heads]
    with new_board(
        example.words, matrices=[example.x, *(array for one in pair for array in one[:6])]
    ) as board:
        step = board.size(Grid(pair[0].q))[0] + 0.3
        x = 3 * step + 0.15  # between the two
        top = board.grid_at(numbered(example.x, "$X$", "x", rows=example.words), x, 0)
        for index, (number, one) in enumerate(zip(heads, pair, strict=True)):
            left = index * (3 * step + 0.3)
            _head(board, one, number, (left, top.bottom - 0.5), step, 1.0 if index == 0 else PALE)
            middle = left + 1.5 * step
            bend = top.bottom - 0.22
            board.arrow((x, top.bottom), (x, bend), (middle, bend), (middle, bend - 0.28))
    first, second = (board.row(one.q[0]) for one in pair)
    caption = (
        "Both heads read the same X, but they have their own weights, so their queries differ: the query of "
        f"“{example.words[0]}” is {first} in head #{heads[0]} and {second} in head #{heads[1]}."
    )
    return Drawing(board.figure, caption)


def _head(
    board: Board, one: Head, number: int, corner: tuple[float, float], step: float, share: float
) -> None:
    """Draw three weight matrices and their products in a frame with its upper left corner at a place."""
    left, top = corner
    rows, columns = one.wq.shape
    bottom = top - HIGH * (rows + len(one.q)) - 1.55
    board.frame(left + 0.02, bottom, left + 3 * step - 0.02, top)
    board.text(left + 1.5 * step, top - 0.2, f"attention head #{number}", size=11, weight="bold")
    for i, (letter, weight, vectors) in enumerate(zip("qkv", one[:3], one[3:6], strict=True)):
        x = left + (i + 0.5) * step
        name = f"${letter.upper()}_{{{number}}}$"
        grey = numbered(weight, f"$W_{{{number}}}^{letter.upper()}$", paler("weight", share), edge=letter)
        upper = board.grid(grey, x - columns * board.cell / 2, top - 0.68)
        cells = numbered(vectors, name, paler(letter, share), edge=letter)
        lower = board.grid(cells, x - columns * board.cell / 2, upper.bottom - 0.5, label="below")
        board.arrow((x, upper.bottom), (x, lower.top))


@figure("F38", "Eight heads give eight matrices Z", "datawhale", "FW", "7.2", make_example)
def eight_outputs(example: Example) -> Drawing:
    """Draw X into every head, and the output of each."""
    heads = [example.head(number) for number in range(example.n_heads)]
    with new_board(example.words, matrices=[example.x, example.joined]) as board:
        step = board.size(Grid(heads[0].z))[0] + 0.35
        row = HIGH * len(example.words) + 1.0
        inputs = numbered(example.x, "$X$", "x", rows=example.words)
        last = (len(heads) - 1) // IN_A_ROW
        x = board.grid(inputs, 0, -last * row / 2)
        start, y = x.right + 0.9, x.centre[1]
        for number, one in enumerate(heads):
            r, c = divmod(number, IN_A_ROW)
            cells = numbered(one.z, f"$Z_{{{number}}}$", "z")
            placed = board.grid(cells, start + c * step, -r * row, label="below")
            board.text(placed.centre[0], placed.top + 0.08, f"head #{number}", va="bottom")
            if c == 0:
                corners = [(x.right + 0.35, y), (x.right + 0.35, placed.centre[1])] if last else []
                board.arrow((x.right, y), *corners, (start - 0.1, placed.centre[1]))
    first, last_row = (board.row(one.z[0]) for one in (heads[0], heads[-1]))
    caption = (
        f"Each of the {len(heads)} heads computes its own matrix Z. Row 1, for “{example.words[0]}”, is "
        f"{first} in head #0 and {last_row} in head #{len(heads) - 1}. The feed-forward network expects one "
        "matrix, so the outputs must be combined."
    )
    return Drawing(board.figure, caption)


@figure("F39", "The heads combined by W^O", "datawhale", "FW", "7.3", make_example)
def joined_heads(example: Example) -> Drawing:
    """Draw Concat(Z0 .. Z7) times W^O = Z."""
    rows, wide = example.joined.shape
    with new_board(example.words, matrices=[example.joined, example.output_weight, example.z]) as board:
        end = wide * board.cell
        right = max(end, 5.4)  # wide enough for the sentences below it
        _note(board, 0, 0, "1   Concatenate the heads' outputs.")
        left = 0.0
        for number in range(example.n_heads):
            z, shade = example.head(number).z, _shade("z", number)
            left = board.grid(numbered(z, f"$Z_{{{number}}}$", shade, edge="z"), left, -0.65).right
        board.text(end / 2, -0.72 - HIGH * rows, f"{rows} × {wide}", va="top", color=COLOURS["faint"])
        board.text(end + 0.32, -0.65 - HIGH * rows / 2, "×", size=15)
        _note(board, right + 0.62, 0, "2   Multiply by $W^O$\n     (learned).")
        _output_weight(board, example, right + 0.62, -0.65)
        low = -0.65 - HIGH * rows - 0.95
        _note(board, 0, low, "3   The result is one matrix from all heads.")
        board.text(0.3, low - 0.65 - HIGH * rows / 2, "=", size=15)
        result = numbered(example.z, "$Z$", "z", rows=example.words, show_shape=True)
        board.grid(result, 1.4, low - 0.65)
        # the same product as a sum over heads, the first two written out
        y = low - 0.65 - HIGH * rows - 0.95
        _note(board, 0, y, "The same head by head: each head has its own rows of $W^O$.")
        parts: list[Grid | str] = []
        for number in range(min(2, example.n_heads)):
            one, block = example.head(number), _block(example, number)
            grey, pink = _shade("weight", number), _shade("z", number)
            parts += ["+"] if parts else []
            parts += [numbered(one.z, f"$Z_{{{number}}}$", pink, edge="z"), "×"]
            parts += [numbered(block, f"$W^O_{{{number}}}$", grey, edge="z")]
        dots = ["+ …"] if example.n_heads > 2 else []
        board.product([*parts, *dots, "=  $Z$"], 0, y - 0.7 - HIGH * max(len(example.words), len(block)) / 2)
    caption = (
        f"The {example.n_heads} concatenated outputs are {rows} × {wide}. W^O, {wide} × "
        f"{example.x.shape[1]}, projects them to the width of X: row 1, “{example.words[0]}”, becomes "
        f"{board.row(example.z[0])}. Every head has its own rows of W^O, so Z is a sum over heads."
    )
    return Drawing(board.figure, caption)


def _block(example: Example, number: int) -> Array:
    """Return the rows of W^O that belong to a head."""
    width = example.head(number).z.shape[1]
    rows: Array = example.output_weight[number * width : (number + 1) * width]
    return rows


def _output_weight(board: Board, example: Example, left: float, top: float) -> None:
    """Draw W^O with its shape, the rows of every second head in a paler colour."""
    for number in range(example.n_heads):
        shade = _shade("weight", number)
        placed = board.grid(numbered(_block(example, number), "", shade, edge="z"), left, top)
        top = placed.bottom
    rows, columns = example.output_weight.shape
    board.text(placed.centre[0], top - 0.07, f"{rows} × {columns}", va="top", color=COLOURS["faint"])


def _shade(role: str, number: int) -> str:
    """Return the colour of a head: that of the role, and a paler one for every second head."""
    return paler(role, PALE if number % 2 else 1.0)


def _note(board: Board, x: float, y: float, text: str) -> None:
    board.text(x, y, text, size=12, ha="left", va="center")


# Everything on one sheet.

GAP = 0.5  # between columns, in inches, for the arrows
NAME = 0.32  # for a name at the left of a matrix
APART = 0.12  # between the weights of a head


@figure("F40", "Multi-head attention on one sheet", "datawhale", "FW", "7.3", make_example)
def recap(example: Example) -> Drawing:
    """Draw sentence → X → weights of each head → Q, K, V → Z of each head → W^O → Z."""
    n_heads, d_model = example.n_heads, example.x.shape[1]
    shown = sorted({0, 1, n_heads - 1} & set(range(n_heads)))
    arrays = [array for number in shown for array in example.head(number)]
    arrays += [example.x, example.r, example.z, example.output_weight]
    write = partial(number_text, decimals=1)
    with new_board(example.words, matrices=arrays, write=write, margin=0.06) as board:
        width = example.head(0).q.shape[1] * board.cell
        x_width = d_model * board.cell
        steps = [x_width + GAP, 3 * width + 2 * APART + GAP + NAME, width + GAP, width + GAP, x_width + GAP]
        lefts = np.cumsum([0, *steps])  # of X, W, Q K V, the head's Z, W^O, Z
        row = max(d_model * HIGH + 1.0, (3 * len(example.words) + 1) * HIGH + 0.68)
        heights = [-row * (i + 0.5) for i in range(len(shown))]
        middle = (heights[0] + heights[-1]) / 2
        _inputs(board, example, middle)
        high = HIGH * len(example.words)
        for number, y in zip(shown, heights, strict=True):
            # one head: its weights, its Q, K and V below each other, its Z
            one = example.head(number)
            for i, (letter, weight, vectors) in enumerate(zip("qkv", one[:3], one[3:6], strict=True)):
                name = letter.upper()
                grey = numbered(weight, f"$W^{name}_{{{number}}}$", "weight", letter)
                board.grid(grey, lefts[1] + i * (width + APART), y + HIGH * d_model / 2)
                cells = numbered(vectors, f"${name}_{{{number}}}$", letter)
                board.grid(cells, lefts[2], y + 1.5 * high + HIGH / 2 - i * (high + HIGH / 2), label="left")
            board.grid(numbered(one.z, f"$Z_{{{number}}}$", "z"), lefts[3], y + high / 2)
        if n_heads > 3:
            board.text(lefts[1] + 1.5 * width, (heights[1] + heights[2]) / 2 + 0.1, "…", size=20, rotation=90)
        _wires(board, lefts, heights, middle, width, x_width)
        tall = example.output_weight.shape[0] * HIGH
        board.text(lefts[4] + 2 * board.cell, middle + tall / 2 + 0.08, "$W^O$", size=12, va="bottom")
        _output_weight(board, example, lefts[4], middle + tall / 2)
        result = numbered(example.z, "$Z$", "z", show_shape=True)
        board.grid(result, lefts[5], middle + len(example.words) * HIGH / 2)
        _headings(board, example, lefts, width, max(0.15, middle + tall / 2 + 0.5))
    caption = (
        "All of multi-head attention, with the numbers of the previous figures, rounded: the input of "
        f"“{example.words[0]}” is {board.row(example.x[0])} and its output is "
        f"{board.row(example.z[0])}. Only the first layer reads the embeddings X; "
        "every other layer reads R, the output of the layer below."
    )
    return Drawing(board.figure, caption)


def _inputs(board: Board, example: Example, middle: float) -> None:
    """Draw X, or R where a layer stands below."""
    x = numbered(example.x, "$X$", "x", rows=example.words)
    r = numbered(example.r, "$R$", "r", rows=example.words)
    high = HIGH * len(example.words)
    board.grid(x, 0, middle + high / 2)
    placed = board.grid(r, 0, middle - high / 2 - 1.05)
    end = placed.right - 0.02
    board.text(end, placed.top + 0.62, "or, above the first layer,", ha="right", va="bottom")
    board.text(end, placed.top + 0.45, "the output of the layer below", ha="right", va="bottom")
    y = middle + high / 2
    board.arrow((placed.centre[0], y + 0.75), (placed.centre[0], y + 0.36))
    board.text(end, y + 0.82, " ".join(example.words), size=12, ha="right", va="bottom", parse_math=False)


def _wires(
    board: Board, lefts: np.ndarray, heights: Sequence[float], middle: float, width: float, x_width: float
) -> None:
    """Draw arrows from column to column: X to every head, every head's Z to W^O."""
    for y in heights:
        bend, start, end = x_width + 0.16, (x_width + 0.04, middle), (lefts[1] - 0.06, y)
        board.arrow(start, *([] if y == middle else [(bend, middle), (bend, y)]), end)
        board.arrow((lefts[2] - NAME - GAP + 0.06, y), (lefts[2] - NAME - 0.04, y))
        board.arrow((lefts[2] + width + 0.06, y), (lefts[3] - 0.06, y))
        bend, start = lefts[3] + width + 0.25, (lefts[3] + width + 0.06, y)
        end = (lefts[4] - 0.04, middle)
        board.arrow(start, *([] if y == middle else [(bend, y), (bend, middle)]), end)
    board.text((lefts[4] + x_width + lefts[5]) / 2, middle, "=", size=15)


def _headings(board: Board, example: Example, lefts: np.ndarray, width: float, over: float) -> None:
    """Write the five steps above the columns."""
    ends = [lefts[1] - 0.2, lefts[2] - NAME - 0.2, lefts[4] - 0.3, lefts[5] + width + board.cell]
    steps = [
        (-widest(example.words, 9) - 0.07, "1  The sentence,\n2  a vector for each word"),
        (lefts[1], f"3  X (or R) times the weights of each of the {example.n_heads} heads"),
        (lefts[2] - NAME, "4  Attention with each head's Q, K and V gives its Z"),
        (lefts[4], f"5  The {example.n_heads} concatenated Z\ntimes $W^O$ give one Z"),
    ]
    for (left, text), right in zip(steps, ends, strict=True):
        board.text(left, over, wrapped(text, right - left, 12), size=12, ha="left", va="bottom")
