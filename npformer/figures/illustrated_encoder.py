"""Vectors on their way through one encoder: self-attention, feed-forward, and the norm after each."""

from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import MACHINES, SEED, STUDENT, Example, example
from npformer.figures.illustrated_input import places_of
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.style import drawing

HIGH = 0.46  # of a box, in inches
LEAST = 1.3  # of a word's column
STEP = 0.82  # from the middle of a box to that of the vectors over it, and on to the next box


@figure("F27", "Vectors through one encoder", source="S2", data="FW")
def one_encoder(
    studio, *, sentence: str = STUDENT, d_model: int = 4, n_heads: int = 8, seed: int = SEED
) -> Drawing:
    """x → self-attention → z → feed-forward → r, for every word at once."""
    seen = example(sentence, d_model=d_model, n_heads=n_heads, seed=seed)
    picture, row = _tower(seen, paths=False)
    caption = (
        f"Self-attention mixes the words, so z1 = {row(seen.normalised[0])} knows of all of them; the "
        f"feed-forward network then treats each z by itself and makes r1 = {row(seen.r[0])}. A residual and "
        "a norm follow each of the two, and are included here."
    )
    return Drawing(picture, caption)


@figure("F28", "Thinking Machines: a feed-forward network for each position", source="S2", data="FW")
def two_words(
    studio, *, sentence: str = MACHINES, d_model: int = 4, n_heads: int = 8, seed: int = SEED
) -> Drawing:
    """x → z → r of two words: one self-attention for all, the same feed-forward network at each position."""
    seen = example(sentence, d_model=d_model, n_heads=n_heads, seed=seed)
    picture, row = _tower(seen, paths=True)
    caption = (
        "Self-attention is one box, for the words depend on each other there; the feed-forward network is "
        "drawn once a position, for no word sees another, though its weights are the same everywhere. r1 = "
        f"{row(seen.r[0])} goes up to encoder #1."
    )
    return Drawing(picture, caption)


def _tower(seen: Example, *, paths: bool):
    """An encoder from below upwards; paths draws a feed-forward box for each position, and encoder #1."""
    rows = ((seen.x, "x", "x"), (seen.normalised, "z", "normalised"), (seen.r, "r", "r"))
    with drawing(seen.words):
        board = Board([values for values, _, _ in rows])
        width = max(seen.x.shape[1] * board.cell, LEAST)
        places = places_of(board, seen.words, seen.x.shape[1], LEAST)
        left, right = places[0] - width / 2 - 0.45, places[-1] + width / 2 + 0.25  # of the encoder
        for row, (values, letter, colour) in enumerate(rows):
            _vectors(board, values, letter, colour, places, 2 * STEP * row)
        middle = (places[0] + places[-1]) / 2
        wide = places[-1] - places[0] + width
        board.box("self-attention", middle, STEP, wide, HIGH, colour="attention")
        for x in places if paths else [middle]:
            board.box("feed-forward", x, 3 * STEP, width if paths else wide, HIGH, colour="feed_forward")
        _arrows(board, places, paths)
        board.frame(left, STEP - 0.55, right, 3 * STEP + 0.62, colour="encoder")
        board.text(left + 0.1, 3 * STEP + 0.47, "encoder #0", ha="left", weight="bold")
        for x, word in zip(places, seen.words, strict=True):
            board.text(x, -0.62, word, size=12, va="top", parse_math=False)
        if paths:
            board.box("encoder #1", (left + right) / 2, 5 * STEP - 0.1, right - left, HIGH, colour="encoder")
        return board.cut(), board.row


def _vectors(board, values, letter, colour, places, height):
    for i, x in enumerate(places):
        cells = Grid(values[i], f"${letter}_{{{i + 1}}}$", colour, numbers=True)
        board.grid_at(cells, x, height, label="left")


def _arrows(board, places, paths):
    """From word to x, through both boxes, and out at the top."""
    half, cell = HIGH / 2, 0.135
    stretches = [(-0.55, -cell)]
    for row in range(2):
        vectors, box = 2 * STEP * row, STEP * (2 * row + 1)
        stretches += [(vectors + cell, box - half), (box + half, vectors + 2 * STEP - cell)]
    stretches.append((4 * STEP + cell, 5 * STEP - 0.1 - half if paths else 4 * STEP + 0.5))
    for low, high in stretches:
        for x in places:
            board.arrow((x, low), (x, high))


@figure("F42", "LayerNorm(X + Z)", source="S2", data="FW")
def add_and_norm(
    studio, *, sentence: str = MACHINES, d_model: int = 4, n_heads: int = 8, seed: int = SEED
) -> Drawing:
    """The residual round self-attention: X and Z, their sum, and its rows after the norm."""
    seen = example(sentence, d_model=d_model, n_heads=n_heads, seed=seed)
    x, z, y = seen.x, seen.z, seen.normalised
    with drawing(seen.words):
        board = Board([x, z, y])
        wide, high = board.size(Grid(x))
        sums: list[Grid | str] = [Grid(x, "$X$", "x", numbers=True), "+", Grid(z, "$Z$", "z", numbers=True)]
        result = Grid(y, "", "normalised", rows=seen.words, numbers=True)
        up = high + 1.25  # from X to the sum
        first, second = board.product(sums, 0, up)
        given = board.grid_at(
            Grid(x, "$X$", "x", rows=seen.words, numbers=True), first.centre[0], 0, label="below"
        )
        box = board.box("self-attention", second.centre[0], 0, max(wide, 1.3), HIGH, colour="attention")
        out = board.grid_at(result, (first.left + second.right) / 2, up + high + 1.25)
        _sum_frame(board, first, second)
        board.arrow((given.right, 0), box.left)
        board.arrow((given.centre[0], given.top), (first.centre[0], first.bottom), dashed=True)
        board.text(given.centre[0] + 0.1, given.top + 0.2, "residual", ha="left")
        board.arrow(box.top, (second.centre[0], second.bottom))
        board.arrow((out.centre[0], first.top + 0.62), (out.centre[0], out.bottom))
        board.arrow((out.centre[0], out.top), (out.centre[0], out.top + 0.42))
        board.text(out.centre[0], out.top + 0.5, "to the feed-forward network", va="bottom")
        picture = board.cut()
    before, made, total, after = map(board.write, (x[0, 0], z[0, 0], x[0, 0] + z[0, 0], y[0, 0]))
    caption = (
        f"X goes round self-attention and is added to what it made: {before} + ({made}) = {total} in the "
        "first cell. The norm then gives every row, that is every word, mean 0 and variance 1: "
        f"{total} becomes {after}."
    )
    return Drawing(picture, caption)


def _sum_frame(board, first, second):
    """The box add & norm round LayerNorm( X + Z )."""
    y = first.centre[1]
    board.text(first.left - 0.12, y, "(", size=22, ha="right")
    board.text(first.left - 0.28, y, "LayerNorm", size=13, ha="right")
    board.text(second.right + 0.1, y, ")", size=22, ha="left")
    left, right = first.left - 1.4, second.right + 0.35
    board.frame(left, first.bottom - 0.25, right, first.top + 0.62, colour="norm")
    board.text(left + 0.1, first.top + 0.46, "add & norm", ha="left", weight="bold")
