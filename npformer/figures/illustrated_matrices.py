"""Self-attention of a whole sentence as products of matrices: head #0 of the example."""

from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import MACHINES, SEED, example, listed
from npformer.plots import Grid
from npformer.plots.board import Board, paler
from npformer.plots.style import drawing, widest

LETTERS = ("q", "k", "v")
SHARES = paler("z", 0.45)  # the weights, on their way to Z


@figure("F31", "Query, key and value of two words", source="S2", data="FW")
def queries_keys_values(
    studio, *, sentence: str = MACHINES, d_model: int = 4, d_head: int = 3, head: int = 0, seed: int = SEED
) -> Drawing:
    """x1 and x2 times W^Q, W^K, W^V: three vectors for each word."""
    seen = example(sentence, d_model=d_model, d_head=d_head, seed=seed)
    one = seen.head(head)
    with drawing(seen.words):
        board = Board([seen.x, *one[:6]])
        wide = max(d_model, d_head) * board.cell
        places = [i * (max(wide, widest(seen.words, 12)) + 0.6) for i in range(len(seen.words))]
        edge = places[0] - wide / 2 - 0.45
        beyond = places[-1] + wide / 2 + 0.65 + d_head * board.cell / 2
        tall = board.size(Grid(one.wq))[1] + 0.3  # of a row with a weight matrix
        heights = [0.0, -0.6, *(-1.2 - tall * (i + 0.5) for i in range(3))]
        for y, name in zip(heights, ("input", "embedding", "queries", "keys", "values"), strict=True):
            board.text(edge, y, name, size=10, ha="right")
        for i, x in enumerate(places):
            board.text(x, 0, seen.words[i], size=12, parse_math=False)
            board.grid_at(Grid(seen.x[i], f"$x_{{{i + 1}}}$", "x", numbers=True), x, heights[1], label="left")
            for y, letter, made in zip(heights[2:], LETTERS, (one.q, one.k, one.v), strict=True):
                cells = Grid(made[i], f"${letter}_{{{i + 1}}}$", letter, numbers=True)
                board.grid_at(cells, x, y, label="left")
        for y, letter, weight in zip(heights[2:], LETTERS, one[:3], strict=True):
            cells = Grid(weight, _weight_name(letter), "weight", letter, numbers=True)
            board.grid_at(cells, beyond, y, label="right")
        picture = board.cut()
    caption = (
        f"x1 times the matrix W^Q gives q1 = {board.row(one.q[0])}, the query of “{seen.words[0]}”; W^K and "
        "W^V give its key and its value. The same three matrices serve every word, and make vectors of "
        f"{d_head} numbers out of {d_model}."
    )
    return Drawing(picture, caption)


@figure("F35", "X times W gives Q, K and V", source="S2", data="FW")
def projections(
    studio, *, sentence: str = MACHINES, d_model: int = 4, d_head: int = 3, head: int = 0, seed: int = SEED
) -> Drawing:
    """The queries, keys and values of all words at once: three products."""
    seen = example(sentence, d_model=d_model, d_head=d_head, seed=seed)
    one = seen.head(head)
    with drawing(seen.words):
        board = Board([seen.x, *one[:6]])
        y, step = 0.0, max(d_model, len(seen.words)) * 0.27 + 0.75
        for letter, weight, made in zip(LETTERS, one[:3], (one.q, one.k, one.v), strict=True):
            parts: list[Grid | str] = [
                Grid(seen.x, "$X$", "x", rows=seen.words, numbers=True, show_shape=True),
                "×",
                Grid(weight, _weight_name(letter), "weight", letter, numbers=True, show_shape=True),
                "=",
                Grid(made, f"${letter.upper()}$", letter, numbers=True, show_shape=True),
            ]
            board.product(parts, 0, y)
            y -= step
        picture = board.cut()
    caption = (
        "The words are the rows of X, so one product makes the queries of all words: row 1 of Q is "
        f"{board.row(one.q[0])}, the q1 of “{seen.words[0]}”. K and V are made likewise, by weights of "
        "their own."
    )
    return Drawing(picture, caption)


@figure("F36", "softmax(QKᵀ / √d_k) V = Z", source="S2", data="FW")
def attention_as_matrices(
    studio, *, sentence: str = MACHINES, d_model: int = 4, d_head: int = 3, head: int = 0, seed: int = SEED
) -> Drawing:
    """Steps two to six in one formula, and below it with the weights written out."""
    seen = example(sentence, d_model=d_model, d_head=d_head, seed=seed)
    one = seen.head(head)
    rows = seen.words
    value = Grid(one.v, "$V$", "v", numbers=True, show_shape=True)
    result = Grid(one.z, "$Z$", "z", numbers=True, show_shape=True)
    with drawing(rows):
        board = Board([one.q, one.k, one.v, one.z, one.weights], names=rows)
        middle, beyond = _fraction(board, one, rows, d_head)
        board.product(["×", value, "=", result], beyond, 0)
        low = -(0.27 * len(rows) + board.band(rows) + 1.28)
        weights = Grid(one.weights, "", SHARES, edge="z", rows=rows, columns=rows, numbers=True)
        placed = board.grid_at(weights, middle, low)
        note = "the weights: each row is a query, and sums to 1"
        board.text(middle, placed.top + board.band(rows) + 0.18, note, va="bottom")
        board.arrow((middle, -0.5), (middle, placed.top + board.band(rows) + 0.4))
        board.product(["×", value, "=", result], beyond, low)
        picture = board.cut()
    shares = listed(f"{board.write(w)} of “{word}”" for w, word in zip(one.weights[0], rows, strict=True))
    caption = (
        f"All steps in one formula: the softmax makes each row of QKᵀ / √{d_head} sum to 1, and “{rows[0]}” "
        f"takes {shares}. Times V that is row 1 of Z, {board.row(one.z[0])}."
    )
    return Drawing(picture, caption)


def _fraction(board, one, rows, d_head):
    """softmax( Q × Kᵀ over √d_k ), the line at height 0: its middle, and where the rest may begin."""
    tall = max(len(rows), d_head) * 0.27
    start = widest(rows, 9) + 0.07
    q = Grid(one.q, "$Q$", "q", rows=rows, numbers=True)
    k = Grid(one.k.T, "$K^T$", "k", numbers=True)
    _, second = board.product([q, "×", k], start, tall / 2 + 0.15)
    right, middle = second.right, second.right / 2
    board.arrow((0, 0), (right, 0), head=False)
    board.text(middle, -0.25, f"$\\sqrt{{d_k}}$ = √{d_head}", size=12)
    for x, side in ((-0.17, "left"), (right + 0.17, "right")):
        board.bracket(x, -0.45, tall + 0.5, side)
    board.text(-0.4, 0, "softmax", size=13, ha="right")
    return middle, right + 0.45


def _weight_name(letter: str) -> str:
    return f"$W^{letter.upper()}$"
