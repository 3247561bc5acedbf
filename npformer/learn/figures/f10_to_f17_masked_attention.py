"""F10 to F17: a padded sentence through one attention layer: vectors, Q K V, scores, masks, weighted mean."""

from dataclasses import replace
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import Masking, dot_similarity, fill_scores, tutorial_attention
from npformer.learn.figures.jianshu_example import Example, PaddedSentence, listed
from npformer.learn.figures.registry import Drawing, figure
from npformer.plots import Figure, Grid, score_map
from npformer.plots.board import new_board, numbered
from npformer.plots.cells import CELL
from npformer.plots.heat_maps import MASKED, HeatMap, draw_at, make_heat_map, room
from npformer.plots.layout import PAD, new_figure, write_at
from npformer.plots.style import LABEL, drawing


def _grid_of(example: Example, values: Array, label: str, role: str, **more: Any) -> Grid:
    """Return a grid of one row for each token, with numbers, its shape, and padding in green."""
    return numbered(values, label, role, padded=example.padded, show_shape=True, **more)


@figure("F10", "From ids to vectors", "jianshu", "FW", "2.1", PaddedSentence)
def embedding_grid(padded: PaddedSentence, *, positions: str = "none") -> Drawing:
    """Draw the ids of a padded sentence at the left, and at the right their rows of the embedding table.

    `positions` is the layout of the position vectors that are added, or "none".
    """
    example = padded.example(positions=positions)
    ids, x = example.ids.T, example.x[0]  # (T, 1), (T, D)
    with new_board(example.words, matrices=[ids, x]) as board:
        vectors = _grid_of(example, x, "$X$", "x", columns=[str(i) for i in range(x.shape[1])])
        height = board.size(vectors)[1]
        left = board.grid(_grid_of(example, ids, "id", "plain", edge="x", rows=example.words), 0, height)
        right = board.grid(vectors, left.right + 1.35, height)
        for t in range(len(example.words)):
            y = height - (t + 0.5) * CELL
            board.arrow((left.right + 0.06, y), (right.left - 0.06, y), width=0.9, colour="faint")
        middle = (left.right + right.left) / 2
        board.text(middle, height + 0.14, f"table[id] × √{padded.d_model}", va="bottom")
    zero = not x[example.padded].any()
    padding = "all 0" if zero else "no longer 0 once position vectors are added to every row"
    return Drawing(
        board.figure,
        f"Each id selects its row of the embedding table: “{example.words[0]}”, id {ids[0, 0]}, becomes "
        f"({listed(x[0])}). The padding (green) is {padding}.",
    )


ROWS_APART = 0.62  # between rows of matrices, in inches


@figure("F11", "X · W gives queries, keys and values", "jianshu", "FW", "4.4", PaddedSentence)
def projections(padded: PaddedSentence, *, bias: float = 0.0, activation: str = "none") -> Drawing:
    """Draw X times three weight matrices.

    Args:
        padded: The sentence.
        bias: The value of every bias. With a bias other than 0 the padding does not stay 0.
        activation: The activation after each product; "relu" is the document's code.
    """
    example = padded.example(bias=bias, activation=activation)
    _, cache = example.attend()
    x, attention = cache.projections[0].x[0], cache.attention
    results = {"Q": attention.q[0, 0], "K": attention.k[0, 0], "V": attention.v[0, 0]}
    weights = [projection.weight for projection in cache.projections]
    after = "" if activation == "none" else f" after {activation}"
    with new_board(example.words, matrices=[x, *weights, *results.values()]) as board:
        step = max(x.shape) * CELL + ROWS_APART  # X and Q are T high, a weight is D high
        inputs = _grid_of(example, x, "$X$", "x", rows=example.words)
        left = board.grid_at(inputs, board.size(inputs)[0] / 2, step)
        for (name, values), weight, y in zip(results.items(), weights, (2 * step, step, 0), strict=True):
            factor = numbered(weight, f"$W^{name}$", "weight", name.lower(), show_shape=True)
            result = _grid_of(example, values, f"${name}${after}", name.lower())
            parts: list[Grid | str] = [
                "×",
                factor,
                f"+ {bias:g}  =" if bias else "=",
                result,
            ]  # × W^Q = Q, or × W^Q + b = Q
            weight_at, _ = board.product(parts, left.right + 1.0, y)
            bend = left.right + 0.35
            corners = [] if y == step else [(bend, step), (bend, y)]
            board.arrow((left.right + 0.06, step), *corners, (weight_at.left - 0.35, y))
    return Drawing(board.figure, _projection_caption(example, results["Q"], results["K"], bias, activation))


def _projection_caption(example: Example, queries: Array, keys: Array, bias: float, activation: str) -> str:
    after = "" if activation == "none" else f", each followed by {activation},"
    caption = (
        f"X times three learned weight matrices{after} gives every token a query, a key and a value: the "
        f"query of “{example.words[0]}” is ({listed(queries[0])}). "
    )
    if not example.padded.any():
        return caption + "No position is padding here."
    if keys[example.padded].any():
        padding = listed(keys[example.padded][0, 0])
        return (
            caption
            + f"With a bias of {bias:g} padding (green) does not stay 0: its keys are {padding} throughout."
        )
    return (
        caption + "Padding (green) stays 0 only as long as the bias is 0, as it is at the start of training, "
        "because 0 · W + b = b. Masks must therefore be computed from the ids."
    )


@figure("F12", "Q · Kᵀ, a score for every pair of tokens", "jianshu", "FW", "5.1", PaddedSentence)
def query_key_product(padded: PaddedSentence) -> Drawing:
    """Draw Q times Kᵀ, not yet divided by √d_k."""
    example, q, k, scores = _raw_scores(padded)
    words, pad = example.words, example.padded
    with new_board(words, matrices=[q, k, scores]) as board:
        keys = numbered(k.T, "$K^T$", "k", columns=words, show_shape=True)
        result = numbered(scores, "$QK^T$", "attention", "k", words, words, show_shape=True)
        keys = replace(keys, painted=[("padding", pad)])
        result = replace(result, painted=[("padding", pad | pad[:, None])])
        board.product([_grid_of(example, q, "$Q$", "q", rows=words), "×", keys, "=", result], 0, 0)
    i, j = min(1, len(q) - 1), 0
    return Drawing(
        board.figure,
        f"Row {i}, column {j} is the dot product of the query of “{words[i]}” and the key of “{words[j]}”, "
        f"{listed(scores[i, j])}. A row holds the products of one query with all keys. Products with padding "
        "(green) are 0, which is an ordinary score, so padding has to be masked.",
    )


def _raw_scores(padded: PaddedSentence) -> tuple[Example, Array, Array, Array]:
    """Return the example with its queries and keys, (T, K), and their dot products, (T, T)."""
    example = padded.example()
    q, k = (values[0, 0] for values in example.attend()[1].attention[:2])
    return example, q, k, dot_similarity(q, k)[0]


@figure("F17", "Weights · V gives Z, and the residual", "jianshu", "FW", "5.1 8.3", PaddedSentence)
def weighted_sum(padded: PaddedSentence, *, causal: bool = False) -> Drawing:
    """Draw the weights times V, which gives Z, and the sum of Z and the input."""
    example = padded.example()
    z, cache = example.attend(keys=True, causal=causal, queries=True)
    weights, v, z, x = cache.attention.weights[0, 0], cache.attention.v[0, 0], z[0], example.x[0]
    total = x + z  # the sum of the residual connection, before the norm
    words, mask, painted = example.words, example.mask(causal=causal), [("padding", example.padded[:, None])]
    style: dict[str, Any] = {"numbers": True, "shade": True, "show_shape": True}
    shaded = Grid(weights, "weights", "r", None, words, words, mask=mask, painted=painted, **style)
    mean = _grid_of(example, z, "$Z$", "z")
    residual = _grid_of(example, x, "$X$, residual", "x", rows=example.words)
    with new_board(example.words, matrices=[weights, v, z, x, total]) as board:
        upper: list[Grid | str] = [shaded, "×", _grid_of(example, v, "$V$", "v"), "=", mean]
        placed = board.product(upper, 0, len(x) * CELL + 1.15)
        # the second row under the first: X, Z and their sum end where weights, V and Z end
        lower: list[Grid | str] = [
            residual,
            "+",
            mean,
            "=",
            _grid_of(example, total, "$X + Z$", "x_position"),
        ]
        _, again, _ = board.product(lower, placed[0].right - board.size(residual)[0], 0)
        bend = again.top + 0.5
        from_z = (placed[2].centre[0], placed[2].bottom - 0.3)
        board.arrow(from_z, (from_z[0], bend), (again.centre[0], bend), (again.centre[0], again.top + 0.33))
    t = max(0, len(x) - 1 - int(example.padded.sum()))
    best = int(weights[t].argmax())
    return Drawing(
        board.figure,
        f"The row of “{example.words[t]}” in Z is a weighted mean of the rows of V, with the largest weight, "
        f"{listed(weights[t, best])}, for “{example.words[best]}”. The residual connection adds the input: "
        f"{listed(z[t, 0])} + {listed(x[t, 0])} = {listed(total[t, 0])} in the first cell. Padding rows "
        "(green) have weights 0 and stay 0.",
    )


# F13 to F15: one map of the scores in three states.


@figure("F13", "The scores: T × T, a row is a query", "jianshu", "FW", "5.1", PaddedSentence)
def raw_scores(padded: PaddedSentence) -> Drawing:
    """Draw Q Kᵀ of a padded sentence: the scores before the division by √d_k, the masks and the softmax."""
    example, _, _, scores = _raw_scores(padded)
    best = int(scores[0].argmax())
    return Drawing(
        score_map(scores, example.words, example.words, numbers=True, title="raw scores $QK^T$"),
        f"Q Kᵀ is a {len(scores)} × {len(scores)} matrix of raw scores, not yet scaled, masked or "
        "normalized. Each row is a query: the first row holds the scores of "
        f"“{example.words[0]}” with all keys, the largest with “{example.words[best]}” "
        f"({listed(scores[0, best])}). Padding has scores like any token, here 0, and would get weight.",
    )


@figure("F14", "The scores after the key mask", "jianshu", "FW", "6.1", PaddedSentence)
def key_mask(padded: PaddedSentence) -> Drawing:
    """Draw the same scores with the columns of padding masked."""
    example, picture, mask = _masked_scores(padded, "keys of padding masked", causal=False)
    return Drawing(
        picture,
        f"Dark grey: no query may attend to padding ({example.padding}), so {int((~mask).sum())} of "
        f"{mask.size} scores, which are whole columns, become −∞. The other scores are those of F13, divided "
        f"by √{padded.d_model}.",
    )


@figure("F15", "The scores after the causal mask as well", "jianshu", "FW", "6.1 6.3", PaddedSentence)
def causal_scores(padded: PaddedSentence) -> Drawing:
    """Draw the same scores with all later positions masked too, as in the decoder."""
    example, picture, mask = _masked_scores(padded, "later keys masked as well", causal=True)
    last = example.words[min(2, int((~example.padded).sum()) - 1)]
    return Drawing(
        picture,
        "In the decoder a query may not attend to later positions either: the strict upper triangle is dark "
        f"grey too, and {int(mask.sum())} of {mask.size} scores are left. The diagonal stays, so “{last}” "
        "still attends to itself.",
    )


def _masked_scores(padded: PaddedSentence, state: str, *, causal: bool) -> tuple[Example, Figure, Array]:
    """Draw the scores of a forward pass, scaled and masked; return the example, the figure and the mask."""
    example = padded.example()
    cache = example.attend(keys=True, causal=causal)[1].attention
    scores = cache.scores[0, 0]  # (T, T)
    mask = np.broadcast_to(example.mask(causal=causal)[0, 0], scores.shape)
    title = rf"$QK^T / \sqrt{{{padded.d_model}}}$, {state}"
    words = example.words
    return example, score_map(scores, words, words, mask=mask, numbers=True, title=title), mask


# F16: the query mask before and after the softmax.

# the document's number at masked keys, and the query mask of its text, before the softmax
BEFORE = Masking(float(-(2**32) + 1), "replace", "before")


@figure("F16", "The query mask, in the encoder and in the decoder", "jianshu", "FW", "6.4", PaddedSentence)
def query_mask(padded: PaddedSentence) -> Drawing:
    """Draw masked scores, their softmax, and the mask after the softmax, for encoder and decoder."""
    example = padded.example()
    with drawing(example.words):
        rows = [_panels(example, causal=causal) for causal in (False, True)]
        titles = ("scores, padding rows set to 0", "their softmax", "query mask after the softmax")
        for heat, title in zip(rows[0], titles, strict=True):
            heat.title = title
        rows[1][0].legend = (MASKED,)
        cell = max(heat.least_cell for row in rows for heat in row)
        rooms = [[room(heat, cell, bar=False) for heat in row] for row in rows]
        side, gap = 0.3, 2 * PAD  # side: the width of the names "encoder" and "decoder"
        width = side + sum(r.total[0] for r in rooms[0]) + gap * 2 + 2 * PAD
        heights = [max(r.total[1] for r in row) for row in rooms]
        picture = new_figure(width, sum(heights) + gap + 2 * PAD, "six matrices")
        top = sum(heights) + gap + PAD
        for heats, row_rooms, height, name in zip(rows, rooms, heights, ("encoder", "decoder"), strict=True):
            left = PAD + side
            for heat, r in zip(heats, row_rooms, strict=True):
                draw_at(picture, heat, left, top, cell=cell, bar=False)
                left += r.total[0] + gap
            middle = top - row_rooms[0].top - row_rooms[0].height / 2
            write_at(picture, PAD + side / 2, middle, name, size=LABEL, weight="bold", rotation=90)
            top -= height + gap
    uniform = 1 / len(example.words)
    return Drawing(
        picture,
        f"Encoder above, decoder below, with {example.padding}. The document's text sets their rows to 0 "
        f"before the softmax (left), which makes all their weights 1/{len(example.words)} = {uniform:.2f}, "
        "even those of padding keys (middle). The document's code and npformer apply the query mask after "
        "the softmax, which gives rows of 0 (right).",
    )


def _panels(example: Example, *, causal: bool) -> list[HeatMap]:
    """Return the heat maps of scores with padding rows 0, of their softmax, and of npformer's weights.

    Only the first has labels for the queries.
    """
    _, after = example.attend(keys=True, causal=causal, queries=True)
    q, k, v = after.attention[:3]
    mask, queries, words = example.mask(causal=causal), example.query_mask, example.words
    _, before = tutorial_attention(q, k, v, mask, query_mask=queries, masking=BEFORE)
    scores, _ = fill_scores(before.scores, mask, BEFORE, queries)
    allowed = np.broadcast_to(mask, scores.shape)[0, 0]  # (T, T)
    # a padding row was set to 0 everywhere, masked keys included, so no cell of it is grey
    rewritten = allowed | np.broadcast_to(~queries, scores.shape)[0, 0]
    heats = [make_heat_map(scores[0, 0], words, words, rewritten, name="scores", numbers=True)]
    for weights, shown in ((before.weights, rewritten), (after.attention.weights, allowed)):
        heat = make_heat_map(weights[0, 0], [""] * len(words), words, shown, numbers=True)
        heat.scale = heat.scale._replace(high=1.0)  # a weight has the same colour in all four
        heats.append(replace(heat, queries=[""] * len(words), axis_labels=("", "key")))
    return heats
