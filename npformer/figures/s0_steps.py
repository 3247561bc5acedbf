"""Attention as products of matrices: queries, keys and values (F11), their product (F12), the mean (F17)."""

from dataclasses import replace

from npformer.figures.entry import Drawing, figure
from npformer.figures.s0_example import LENGTH, SEED, SENTENCE, Example, example
from npformer.figures.s0_sheet import listed, row
from npformer.functional import dot_similarity
from npformer.plots import Grid
from npformer.plots.board import Board
from npformer.plots.boxes import elbow
from npformer.plots.cells import CELL
from npformer.plots.style import drawing

BETWEEN = 0.62  # between rows of matrices, in inches


@figure("F11", "X · W gives queries, keys and values", source="S0", data="FW")
def projections(
    studio,
    *,
    sentence: str = SENTENCE,
    length: int = LENGTH,
    d_model: int = 6,
    bias: float = 0.0,
    activation: str = "none",
    seed: int = SEED,
) -> Drawing:
    """The same X times three weights. activation "relu" is the document's code; a bias lifts the padding."""
    seen = example(sentence, length=length, d_model=d_model, bias=bias, activation=activation, seed=seed)
    _, cache = seen.look()
    x, attention = cache.projections[0].x[0], cache.attention
    made = [("Q", attention.q[0, 0]), ("K", attention.k[0, 0]), ("V", attention.v[0, 0])]
    weights = [projection.weight for projection in cache.projections]
    with drawing(seen.words):
        board = Board([x, *weights, *(values for _, values in made)])
        step = max(x.shape) * CELL + BETWEEN  # X and Q are T high, a weight is D high
        given = Grid(x, "$X$", "x", rows=seen.words, numbers=True, padded=seen.padded, show_shape=True)
        left = board.grid_at(given, board.size(given)[0] / 2, step)
        for index, ((name, values), weight) in enumerate(zip(made, weights, strict=True)):
            y = (2 - index) * step
            parts = _projection(name, values, weight, seen, activation, bias)
            placed = row(board, parts, left.right + 1.0, y)
            start, end = (left.right + 0.06, step), (placed[0].left - 0.35, y)
            via = (left.right + 0.35, step)
            board.arrow(start, *([via] if index != 1 else []), *elbow(via, end, level_first=False)[1:])
        picture = board.cut()
    return Drawing(picture, _projection_caption(seen, made[0][1], made[1][1], bias, activation))


def _projection(name, values, weight, seen: Example, activation, bias) -> list:
    """× W^Q = Q, or × W^Q + b = Q."""
    sum_sign = f"+ {bias:g}  =" if bias else "="
    role = name.lower()
    label = f"${name}$" if activation == "none" else f"${name}$ after {activation}"
    result = Grid(values, label, role, numbers=True, padded=seen.padded, show_shape=True)
    return ["×", Grid(weight, f"$W^{name}$", "weight", role, numbers=True, show_shape=True), sum_sign, result]


def _projection_caption(seen, queries, keys, bias, activation) -> str:
    after = "" if activation == "none" else f", each followed by {activation}"
    caption = (
        f"One X and three learned weights{after} give every word a query, a key and a value: the query of "
        f"“{seen.words[0]}” is ({listed(queries[0])}). "
    )
    if not seen.padded.any():
        return caption + "No position is padding here."
    if keys[seen.padded].any():
        padding = listed(keys[seen.padded][0, 0])
        return (
            caption
            + f"With a bias of {bias:g} padding (green) does not stay 0: its keys are {padding} throughout."
        )
    return (
        caption + "Padding (green) stays 0 only as long as the bias is 0, as at the start of training: "
        "0 · W + b = b. So masks have to come from the ids."
    )


@figure("F12", "Q · Kᵀ, a score for every pair of words", source="S0", data="FW")
def query_key_product(
    studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """Every row of Q times every column of Kᵀ, not yet divided by √d_k."""
    seen = example(sentence, length=length, d_model=d_model, seed=seed)
    q, k = (values[0, 0] for values in seen.look()[1].attention[:2])
    scores, _ = dot_similarity(q, k)  # (T, T)
    pad = seen.padded
    with drawing(seen.words):
        board = Board([q, k, scores])
        words = seen.words
        queries = Grid(q, "$Q$", "q", rows=words, padded=pad, numbers=True, show_shape=True)
        keys = Grid(k.T, "$K^T$", "k", columns=words, numbers=True, show_shape=True)
        result = Grid(scores, "$QK^T$", "attention", "k", words, words, numbers=True, show_shape=True)
        of_padding = ("padding", pad | pad[:, None])
        row(board, [queries, "×", (keys, ("padding", pad)), "=", (result, of_padding)], 0, 0)
        picture = board.cut()
    i, j = min(1, len(q) - 1), 0
    return Drawing(
        picture,
        f"Row {i}, column {j} is the query of “{seen.words[i]}” times the key of “{seen.words[j]}”, "
        f"{listed(scores[i, j])}: a row holds one query's products with all keys. Where padding takes part "
        "(green) the product is 0, which is an ordinary score: it has to be masked.",
    )


@figure("F17", "Weights · V gives Z, and the residual", source="S0", data="FW")
def weighted_sum(
    studio,
    *,
    sentence: str = SENTENCE,
    length: int = LENGTH,
    d_model: int = 6,
    causal: bool = False,
    seed: int = SEED,
) -> Drawing:
    """Each row of Z is a mean of the rows of V; the input X is added to it. causal is the decoder's way."""
    seen = example(sentence, length=length, d_model=d_model, seed=seed)
    z, cache = seen.look(keys=True, causal=causal, queries=True)
    weights, v, z, x = cache.attention.weights[0, 0], cache.attention.v[0, 0], z[0], seen.x[0]
    total = x + z  # what Residual.join makes of them before its norm
    with drawing(seen.words):
        board = Board([weights, v, z, x, total])
        upper, lower = _residual_rows(seen, weights, v, z, total, seen.mask(causal=causal))
        placed = row(board, upper, 0, len(x) * CELL + 1.15)
        # the second row under the first: X, Z and their sum end where weights, V and Z end
        start = placed[0].right - board.size(Grid(x))[0]
        _, again, _ = row(board, lower, start, 0)
        bend = again.top + 0.5
        from_z = (placed[2].centre[0], placed[2].bottom - 0.3)
        board.arrow(from_z, (from_z[0], bend), (again.centre[0], bend), (again.centre[0], again.top + 0.33))
        picture = board.cut()
    t = max(0, len(x) - 1 - int(seen.padded.sum()))
    best = int(weights[t].argmax())
    return Drawing(
        picture,
        f"The row of “{seen.words[t]}” in Z is a mean of the rows of V, most of “{seen.words[best]}” "
        f"(weight {listed(weights[t, best])}). The input is added: {listed(z[t, 0])} + {listed(x[t, 0])} = "
        f"{listed(total[t, 0])} in its first cell. Padding rows (green) have no weights and stay 0.",
    )


def _residual_rows(seen: Example, weights, v, z, total, mask):
    """weights × V = Z, and X + Z = their sum."""
    words, pad = seen.words, seen.padded

    def vectors(values, label, role, **more):
        return Grid(values, label, role, numbers=True, padded=pad, show_shape=True, **more)

    look = Grid(weights, "weights", "r", rows=words, columns=words, numbers=True, shade=True, mask=mask)
    given = (replace(look, show_shape=True), ("padding", pad[:, None]))
    upper = [given, "×", vectors(v, "$V$", "v"), "=", vectors(z, "$Z$", "z")]
    residual = vectors(seen.x[0], "$X$, round by the residual", "x", rows=words)
    lower = [residual, "+", vectors(z, "$Z$", "z"), "=", vectors(total, "$X + Z$", "x_position")]
    return upper, lower
