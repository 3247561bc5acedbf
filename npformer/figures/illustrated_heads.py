"""Many heads: weights of their own for each, their outputs side by side, and W^O that joins them."""

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import MACHINES, SEED, Example, Head, example
from npformer.plots import Grid
from npformer.plots.board import Board, paler
from npformer.plots.style import drawing

HIGH = 0.27  # of a cell, in inches
PALE = 0.45  # how much of its colour the second head keeps
IN_A_ROW = 4  # heads
FAINT = "#767676"


@figure("F37", "Two heads, each with weights of its own", source="S2", data="FW")
def two_heads(
    studio, *, sentence: str = MACHINES, heads: tuple[int, int] = (0, 1), d_model: int = 4, seed: int = SEED
) -> Drawing:
    """X into head #0 and head #1: other weights, other queries, keys and values."""
    seen = example(sentence, d_model=d_model, seed=seed)
    if len(heads) != 2:
        raise UserError(f"heads is {heads!r}: name two heads")
    pair = [seen.head(head) for head in heads]
    with drawing(seen.words):
        board = Board([seen.x, *(array for one in pair for array in one[:6])])
        step = board.size(Grid(pair[0].q))[0] + 0.3
        x = 3 * step + 0.15  # between the two
        top = board.grid_at(Grid(seen.x, "$X$", "x", rows=seen.words, numbers=True), x, 0)
        for index, (number, one) in enumerate(zip(heads, pair, strict=True)):
            left = index * (3 * step + 0.3)
            _head(board, one, number, (left, top.bottom - 0.5), step, 1.0 if index == 0 else PALE)
            middle = left + 1.5 * step
            bend = top.bottom - 0.22
            board.arrow((x, top.bottom), (x, bend), (middle, bend), (middle, bend - 0.28))
        picture = board.cut()
    first, second = (board.row(one.q[0]) for one in pair)
    caption = (
        "Both heads read the same X, and with weights of their own they ask different questions: the query "
        f"of “{seen.words[0]}” is {first} in head #{heads[0]} and {second} in head #{heads[1]}."
    )
    return Drawing(picture, caption)


def _head(board, one: Head, number: int, corner, step: float, share: float):
    """Three weights and what they make, in a frame with its upper left corner at a place."""
    left, top = corner
    rows, columns = one.wq.shape
    bottom = top - HIGH * (rows + len(one.q)) - 1.55
    board.frame(left + 0.02, bottom, left + 3 * step - 0.02, top)
    board.text(left + 1.5 * step, top - 0.2, f"attention head #{number}", size=11, weight="bold")
    for i, (letter, weight, made) in enumerate(zip("qkv", one[:3], one[3:6], strict=True)):
        x = left + (i + 0.5) * step
        name = f"${letter.upper()}_{{{number}}}$"
        grey = Grid(
            weight, f"$W_{{{number}}}^{letter.upper()}$", paler("weight", share), edge=letter, numbers=True
        )
        upper = board.grid(grey, x - columns * board.cell / 2, top - 0.68)
        cells = Grid(made, name, paler(letter, share), edge=letter, numbers=True)
        lower = board.grid(cells, x - columns * board.cell / 2, upper.bottom - 0.5, label="below")
        board.arrow((x, upper.bottom), (x, lower.top))


@figure("F38", "Eight heads make eight matrices Z", source="S2", data="FW")
def eight_outputs(
    studio, *, sentence: str = MACHINES, n_heads: int = 8, d_model: int = 4, seed: int = SEED
) -> Drawing:
    """X into every head, and the output of each."""
    seen = example(sentence, n_heads=n_heads, d_model=d_model, seed=seed)
    heads = [seen.head(number) for number in range(n_heads)]
    with drawing(seen.words):
        board = Board([seen.x, seen.joined])
        step = board.size(Grid(heads[0].z))[0] + 0.35
        row = HIGH * len(seen.words) + 1.0
        given = Grid(seen.x, "$X$", "x", rows=seen.words, numbers=True)
        last = (n_heads - 1) // IN_A_ROW
        x = board.grid(given, 0, -last * row / 2)
        start, y = x.right + 0.9, x.centre[1]
        for number, one in enumerate(heads):
            r, c = divmod(number, IN_A_ROW)
            cells = Grid(one.z, f"$Z_{{{number}}}$", "z", numbers=True)
            placed = board.grid(cells, start + c * step, -r * row, label="below")
            board.text(placed.centre[0], placed.top + 0.08, f"head #{number}", va="bottom")
            if c == 0:
                corners = [(x.right + 0.35, y), (x.right + 0.35, placed.centre[1])] if last else []
                board.arrow((x.right, y), *corners, (start - 0.1, placed.centre[1]))
        picture = board.cut()
    first, last_row = (board.row(one.z[0]) for one in (heads[0], heads[-1]))
    caption = (
        f"Each of the {n_heads} heads makes a matrix of its own: of “{seen.words[0]}”, row 1, head #0 makes "
        f"{first} and head #{n_heads - 1} {last_row}. The feed-forward network expects one matrix, so they "
        "must be joined."
    )
    return Drawing(picture, caption)


@figure("F39", "The heads joined by W^O", source="S2", data="FW")
def joined_heads(
    studio, *, sentence: str = MACHINES, n_heads: int = 8, d_model: int = 4, seed: int = SEED
) -> Drawing:
    """Concat(Z0 .. Z7) times W^O is Z."""
    seen = example(sentence, n_heads=n_heads, d_model=d_model, seed=seed)
    rows, wide = seen.joined.shape
    with drawing(seen.words):
        board = Board([seen.joined, seen.output_weight, seen.z])
        end = wide * board.cell
        right = max(end, 5.4)  # room for the sentences under it
        _note(board, 0, 0, "1   The heads' outputs side by side,")
        concat(board, seen, 0, -0.65)
        board.text(end / 2, -0.72 - HIGH * rows, f"{rows} × {wide}", va="top", color=FAINT)
        board.text(end + 0.32, -0.65 - HIGH * rows / 2, "×", size=15)
        _note(board, right + 0.62, 0, "2   times $W^O$,\n     learned as well,")
        output_weight(board, seen, right + 0.62, -0.65)
        low = -0.65 - HIGH * rows - 0.95
        _note(board, 0, low, "3   are one matrix, which holds what all heads found.")
        board.text(0.3, low - 0.65 - HIGH * rows / 2, "=", size=15)
        result = Grid(seen.z, "$Z$", "z", rows=seen.words, numbers=True, show_shape=True)
        board.grid(result, 1.4, low - 0.65)
        _by_heads(board, seen, low - 0.65 - HIGH * rows - 0.95)
        picture = board.cut()
    caption = (
        f"The {n_heads} outputs side by side are {rows} × {wide}, and W^O, {wide} × {d_model}, brings them "
        f"back to the width of X: row 1, “{seen.words[0]}”, becomes {board.row(seen.z[0])}. Every head has "
        "its own rows of W^O, so Z is a sum over heads."
    )
    return Drawing(picture, caption)


def _by_heads(board, seen, y):
    """The same product as a sum over heads, the first two written out."""
    _note(board, 0, y, "The same head by head: each head has its own rows of $W^O$.")
    parts: list[Grid | str] = []
    for number in range(min(2, seen.n_heads)):
        one, block = seen.head(number), _block(seen, number)
        grey = "weight" if number % 2 == 0 else paler("weight", PALE)
        pink = "z" if number % 2 == 0 else paler("z", PALE)
        parts += ["+"] if parts else []
        parts += [Grid(one.z, f"$Z_{{{number}}}$", pink, edge="z", numbers=True), "×"]
        parts += [Grid(block, f"$W^O_{{{number}}}$", grey, edge="z", numbers=True)]
    dots = ["+ …"] if seen.n_heads > 2 else []
    board.product([*parts, *dots, "=  $Z$"], 0, y - 0.7 - HIGH * max(len(seen.words), len(block)) / 2)


def _block(seen, number):
    """The rows of W^O that belong to a head."""
    width = seen.head(number).z.shape[1]
    return seen.output_weight[number * width : (number + 1) * width]


def output_weight(board: Board, seen: Example, left: float, top: float) -> None:
    """W^O, the rows of every second head paler, with its shape."""
    for number in range(seen.n_heads):
        shade = "weight" if number % 2 == 0 else paler("weight", PALE)
        placed = board.grid(Grid(_block(seen, number), "", shade, edge="z", numbers=True), left, top)
        top = placed.bottom
    rows, columns = seen.output_weight.shape
    board.text(placed.centre[0], top - 0.07, f"{rows} × {columns}", va="top", color=FAINT)


def concat(board: Board, seen: Example, left: float, top: float) -> None:
    """The heads' outputs side by side, every second one paler."""
    for number in range(seen.n_heads):
        z = seen.head(number).z
        shade = "z" if number % 2 == 0 else paler("z", PALE)
        cells = Grid(z, f"$Z_{{{number}}}$", shade, edge="z", numbers=True)
        left = board.grid(cells, left, top).right


def _note(board, x, y, text):
    board.text(x, y, text, size=12, ha="left", va="center")
