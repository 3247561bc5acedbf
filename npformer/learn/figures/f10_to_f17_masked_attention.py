"""F10 to F17: a padded sentence through one attention layer: vectors, Q K V, scores, masks, weighted mean."""

from dataclasses import replace
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional import Masking, dot_similarity, fill_scores, tutorial_attention
from npformer.learn.figures.jianshu_example import (
    LENGTH,
    SEED,
    SENTENCE,
    Example,
    Part,
    listed,
    make_example,
    paint,
    row,
)
from npformer.learn.figures.registry import Drawing, figure
from npformer.learn.figures.studio import Studio
from npformer.plots import Figure, Grid, score_map
from npformer.plots.board import Board
from npformer.plots.boxes import elbow
from npformer.plots.cells import CELL
from npformer.plots.heat_maps import MASKED, HeatMap, draw_at, make_heat_map, room, signed_scale
from npformer.plots.layout import PAD, new_figure
from npformer.plots.style import LABEL, drawing


@figure("F10", "From ids to vectors", source="jianshu", data="FW")
def embedding_grid(
    studio: Studio,
    *,
    sentence: str = SENTENCE,
    length: int = LENGTH,
    d_model: int = 6,
    positions: str = "none",
    seed: int = SEED,
) -> Drawing:
    """Draw the ids of a padded sentence at the left, and at the right their rows of the embedding table.

    Args:
        studio: Not used.
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        positions: The layout of the position vectors that are added, or "none".
        seed: The seed of the random weights.

    Returns:
        The figure with its caption.
    """
    example = make_example(sentence, length=length, d_model=d_model, positions=positions, seed=seed)
    ids, x = example.ids.T, example.x[0]  # (T, 1), (T, D)
    with drawing(example.words):
        board = Board([ids, x])
        numbered = Grid(ids, "id", "plain", edge="x", numbers=True, rows=example.words, show_shape=True)
        columns = [str(i) for i in range(x.shape[1])]
        vectors = Grid(x, "$X$", "x", numbers=True, columns=columns, padded=example.padded, show_shape=True)
        height = board.size(vectors)[1]
        left = paint(board, numbered, 0, height, ("padding", example.padded[:, None]))
        right = board.grid(vectors, left.right + 1.35, height)
        for t in range(len(example.words)):
            y = height - (t + 0.5) * CELL
            board.arrow((left.right + 0.06, y), (right.left - 0.06, y), width=0.9, colour="faint")
        middle = (left.right + right.left) / 2
        board.text(middle, height + 0.14, f"table[id] × √{d_model}", va="bottom")
        picture = board.cut()
    zero = not x[example.padded].any()
    padding = (
        "(green) is all 0" if zero else "(green) is no longer 0 once position vectors are added to every row"
    )
    return Drawing(
        picture,
        f"Each id selects its row of the embedding table: “{example.words[0]}”, id {ids[0, 0]}, becomes "
        f"({listed(x[0])}). The padding {padding}.",
    )


ROWS_APART = 0.62  # between rows of matrices, in inches


@figure("F11", "X · W gives queries, keys and values", source="jianshu", data="FW")
def projections(
    studio: Studio,
    *,
    sentence: str = SENTENCE,
    length: int = LENGTH,
    d_model: int = 6,
    bias: float = 0.0,
    activation: str = "none",
    seed: int = SEED,
) -> Drawing:
    """Draw X times three weight matrices.

    Args:
        studio: Not used.
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        bias: The value of every bias. With a bias other than 0 the padding does not stay 0.
        activation: The activation after each product; "relu" is the document's code.
        seed: The seed of the random weights.

    Returns:
        The figure with its caption.
    """
    example = make_example(
        sentence, length=length, d_model=d_model, bias=bias, activation=activation, seed=seed
    )
    _, cache = example.attend()
    x, attention = cache.projections[0].x[0], cache.attention
    results = [("Q", attention.q[0, 0]), ("K", attention.k[0, 0]), ("V", attention.v[0, 0])]
    weights = [projection.weight for projection in cache.projections]
    with drawing(example.words):
        board = Board([x, *weights, *(values for _, values in results)])
        step = max(x.shape) * CELL + ROWS_APART  # X and Q are T high, a weight is D high
        inputs = Grid(x, "$X$", "x", rows=example.words, numbers=True, padded=example.padded, show_shape=True)
        left = board.grid_at(inputs, board.size(inputs)[0] / 2, step)
        for index, ((name, values), weight) in enumerate(zip(results, weights, strict=True)):
            y = (2 - index) * step
            parts = _projection(name, values, weight, example, activation, bias)
            placed = row(board, parts, left.right + 1.0, y)
            start, end = (left.right + 0.06, step), (placed[0].left - 0.35, y)
            via = (left.right + 0.35, step)
            board.arrow(start, *([via] if index != 1 else []), *elbow(via, end, level_first=False)[1:])
        picture = board.cut()
    return Drawing(picture, _projection_caption(example, results[0][1], results[1][1], bias, activation))


def _projection(
    name: str, values: Array, weight: Array, example: Example, activation: str, bias: float
) -> list[Part]:
    """Return the parts of a row: × W^Q = Q, or × W^Q + b = Q."""
    sum_sign = f"+ {bias:g}  =" if bias else "="
    role = name.lower()
    label = f"${name}$" if activation == "none" else f"${name}$ after {activation}"
    result = Grid(values, label, role, numbers=True, padded=example.padded, show_shape=True)
    return ["×", Grid(weight, f"$W^{name}$", "weight", role, numbers=True, show_shape=True), sum_sign, result]


def _projection_caption(example: Example, queries: Array, keys: Array, bias: float, activation: str) -> str:
    after = "" if activation == "none" else f", each followed by {activation}"
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


@figure("F12", "Q · Kᵀ, a score for every pair of tokens", source="jianshu", data="FW")
def query_key_product(
    studio: Studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """Draw Q times Kᵀ, not yet divided by √d_k.

    Args:
        studio: Not used.
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        seed: The seed of the random weights.

    Returns:
        The figure with its caption.
    """
    example = make_example(sentence, length=length, d_model=d_model, seed=seed)
    q, k = (values[0, 0] for values in example.attend()[1].attention[:2])
    scores, _ = dot_similarity(q, k)  # (T, T)
    pad = example.padded
    with drawing(example.words):
        board = Board([q, k, scores])
        words = example.words
        queries = Grid(q, "$Q$", "q", rows=words, padded=pad, numbers=True, show_shape=True)
        keys = Grid(k.T, "$K^T$", "k", columns=words, numbers=True, show_shape=True)
        result = Grid(scores, "$QK^T$", "attention", "k", words, words, numbers=True, show_shape=True)
        of_padding = ("padding", pad | pad[:, None])
        row(board, [queries, "×", (keys, ("padding", pad)), "=", (result, of_padding)], 0, 0)
        picture = board.cut()
    i, j = min(1, len(q) - 1), 0
    return Drawing(
        picture,
        f"Row {i}, column {j} is the dot product of the query of “{example.words[i]}” and the key of "
        f"“{example.words[j]}”, {listed(scores[i, j])}. A row holds the products of one query with all keys. "
        "Products with padding (green) are 0, which is an ordinary score, so padding has to be masked.",
    )


@figure("F17", "Weights · V gives Z, and the residual", source="jianshu", data="FW")
def weighted_sum(
    studio: Studio,
    *,
    sentence: str = SENTENCE,
    length: int = LENGTH,
    d_model: int = 6,
    causal: bool = False,
    seed: int = SEED,
) -> Drawing:
    """Draw the weights times V, which gives Z, and the sum of Z and the input.

    Args:
        studio: Not used.
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        causal: Whether the causal mask is applied.
        seed: The seed of the random weights.

    Returns:
        The figure with its caption.
    """
    example = make_example(sentence, length=length, d_model=d_model, seed=seed)
    z, cache = example.attend(keys=True, causal=causal, queries=True)
    weights, v, z, x = cache.attention.weights[0, 0], cache.attention.v[0, 0], z[0], example.x[0]
    total = x + z  # the sum of the residual connection, before the norm
    with drawing(example.words):
        board = Board([weights, v, z, x, total])
        upper, lower = _residual_rows(example, weights, v, z, total, example.mask(causal=causal))
        placed = row(board, upper, 0, len(x) * CELL + 1.15)
        # the second row under the first: X, Z and their sum end where weights, V and Z end
        start = placed[0].right - board.size(Grid(x))[0]
        _, again, _ = row(board, lower, start, 0)
        bend = again.top + 0.5
        from_z = (placed[2].centre[0], placed[2].bottom - 0.3)
        board.arrow(from_z, (from_z[0], bend), (again.centre[0], bend), (again.centre[0], again.top + 0.33))
        picture = board.cut()
    t = max(0, len(x) - 1 - int(example.padded.sum()))
    best = int(weights[t].argmax())
    return Drawing(
        picture,
        f"The row of “{example.words[t]}” in Z is a weighted mean of the rows of V, with the largest weight, "
        f"{listed(weights[t, best])}, for “{example.words[best]}”. The residual connection adds the input: "
        f"{listed(z[t, 0])} + {listed(x[t, 0])} = {listed(total[t, 0])} in the first cell. Padding rows "
        "(green) have weights 0 and stay 0.",
    )


def _residual_rows(
    example: Example, weights: Array, v: Array, z: Array, total: Array, mask: Array
) -> tuple[list[Part], list[Part]]:
    """Return the parts of two rows: weights × V = Z, and X + Z = their sum."""
    words, pad = example.words, example.padded

    def vectors(values: Array, label: str, role: str, **more: Any) -> Grid:
        return Grid(values, label, role, numbers=True, padded=pad, show_shape=True, **more)

    weights_grid = Grid(
        weights, "weights", "r", rows=words, columns=words, numbers=True, shade=True, mask=mask
    )
    shaded: Part = (replace(weights_grid, show_shape=True), ("padding", pad[:, None]))
    upper: list[Part] = [shaded, "×", vectors(v, "$V$", "v"), "=", vectors(z, "$Z$", "z")]
    residual = vectors(example.x[0], "$X$, residual", "x", rows=words)
    lower: list[Part] = [residual, "+", vectors(z, "$Z$", "z"), "=", vectors(total, "$X + Z$", "x_position")]
    return upper, lower


# the document's number at masked keys, and the query mask of its text, before the softmax
BEFORE = Masking(float(-(2**32) + 1), "replace", "before")


@figure("F13", "The scores: T × T, a row is a query", source="jianshu", data="FW")
def raw_scores(
    studio: Studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """Draw Q Kᵀ of a padded sentence: the scores before the division by √d_k, the masks and the softmax.

    Args:
        studio: Not used.
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        seed: The seed of the random weights.

    Returns:
        The figure with its caption.
    """
    example = make_example(sentence, length=length, d_model=d_model, seed=seed)
    q, k = (values[0, 0] for values in example.attend()[1].attention[:2])
    scores, _ = dot_similarity(q, k)  # (T, T)
    best = int(scores[0].argmax())
    title = "raw scores $QK^T$"
    return Drawing(
        score_map(scores, example.words, example.words, numbers=True, title=title),
        f"Q Kᵀ is a {len(scores)} × {len(scores)} matrix of raw scores, not yet scaled, masked or "
        "normalized. Each row is a query: the first row holds the scores of "
        f"“{example.words[0]}” with all keys, the largest with “{example.words[best]}” "
        f"({listed(scores[0, best])}). Padding has scores like any token, here 0, and would get weight.",
    )


@figure("F14", "The scores after the key mask", source="jianshu", data="FW")
def key_mask(
    studio: Studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """Draw the same scores with the columns of padding masked.

    Args:
        studio: Not used.
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        seed: The seed of the random weights.

    Returns:
        The figure with its caption.
    """
    example = make_example(sentence, length=length, d_model=d_model, seed=seed)
    scores, mask = _masked(example, causal=False)
    return Drawing(
        _scaled_map(example, scores, mask, "keys of padding masked"),
        f"Dark grey: no query may attend to padding ({example.padding}), so {int((~mask).sum())} of "
        f"{mask.size} scores, which are whole columns, become −∞. The other scores are those of F13, divided "
        f"by √{d_model}.",
    )


@figure("F15", "The scores after the causal mask as well", source="jianshu", data="FW")
def causal_scores(
    studio: Studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """Draw the same scores with all later positions masked too, as in the decoder.

    Args:
        studio: Not used.
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        seed: The seed of the random weights.

    Returns:
        The figure with its caption.
    """
    example = make_example(sentence, length=length, d_model=d_model, seed=seed)
    scores, mask = _masked(example, causal=True)
    last = example.words[min(2, len(example.words) - 1)]
    return Drawing(
        _scaled_map(example, scores, mask, "later keys masked as well"),
        "In the decoder a query may not attend to later positions either: the strict upper triangle is dark "
        f"grey too, and {int(mask.sum())} of {mask.size} scores are left. The diagonal stays, so “{last}” "
        "still attends to itself.",
    )


def _scaled_map(example: Example, scores: Array, mask: Array, state: str) -> Figure:
    """Draw scores that are scaled and masked. The title gives their formula and says which are masked."""
    title = rf"$QK^T / \sqrt{{{example.x.shape[-1]}}}$, {state}"
    return score_map(scores, example.words, example.words, mask=mask, numbers=True, title=title)


def _masked(example: Example, *, causal: bool) -> tuple[Array, Array]:
    """Return the scores and the mask, both (T, T), from the cache of a forward pass."""
    cache = example.attend(keys=True, causal=causal)[1].attention
    scores, mask = cache.scores[0, 0], cache.mask
    assert mask is not None
    return scores, np.broadcast_to(mask[0, 0], scores.shape)


@figure("F16", "The query mask, in the encoder and in the decoder", source="jianshu", data="FW")
def query_mask(
    studio: Studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """Draw masked scores, their softmax, and the mask after the softmax, for encoder and decoder.

    Args:
        studio: Not used.
        sentence: An English sentence.
        length: The number of tokens with the end symbol and the padding.
        d_model: The width of the vectors.
        seed: The seed of the random weights.

    Returns:
        The figure with its caption.
    """
    example = make_example(sentence, length=length, d_model=d_model, seed=seed)
    with drawing(example.words):
        rows = [_panels(example, causal=causal) for causal in (False, True)]
        picture = _draw_sheet(rows)
    uniform = 1 / len(example.words)
    return Drawing(
        picture,
        f"Encoder above, decoder below, with {example.padding}. The document's text sets their rows to 0 "
        f"before the softmax (left), which makes all their weights 1/{len(example.words)} = {uniform:.2f}, "
        "even those of padding keys (middle). The document's code and npformer apply the query mask after "
        "the softmax, which gives rows of 0 (right).",
    )


def _panels(example: Example, *, causal: bool) -> list[HeatMap]:
    """Return the heat maps of scores with padding rows 0, of their softmax, and of npformer's weights."""
    _, after = example.attend(keys=True, causal=causal, queries=True)
    q, k, v = after.attention[:3]
    mask, queries = example.mask(causal=causal), example.query_mask
    _, before = tutorial_attention(q, k, v, mask, query_mask=queries, masking=BEFORE)
    scores, _ = fill_scores(before.scores, mask, BEFORE, queries)
    allowed = np.broadcast_to(mask, scores.shape)[0, 0]  # (T, T)
    # a padding row was set to 0 everywhere, masked keys included, so no cell of it is grey
    rewritten = allowed | np.broadcast_to(~queries, scores.shape)[0, 0]
    heats = [
        make_heat_map(scores[0, 0], example.words, example.words, rewritten, name="scores"),
        make_heat_map(before.weights[0, 0], example.words, example.words, rewritten),
        make_heat_map(after.attention.weights[0, 0], example.words, example.words, allowed),
    ]
    heats[0].scale = signed_scale(heats[0].values[rewritten], "score")
    for heat in heats[1:]:
        heat.scale = heat.scale._replace(high=1.0)  # a weight has the same colour in all four
    return [_plain(heat, first=index == 0) for index, heat in enumerate(heats)]


def _plain(heat: HeatMap, *, first: bool) -> HeatMap:
    """Return the heat map with numbers; only the first of a row has labels for the queries."""
    heat = replace(heat, numbers=True)
    if first:
        return heat
    return replace(heat, queries=[""] * len(heat.values), axis_labels=("", "key"))


def _draw_sheet(rows: list[list[HeatMap]]) -> Figure:
    """Draw the encoder's panels above the decoder's, with their names."""
    titles = ("scores, padding rows set to 0", "their softmax", "query mask after the softmax")
    for heat, title in zip(rows[0], titles, strict=True):
        heat.title = title
    rows[1][0].legend = (MASKED,)
    cell = max(heat.least_cell for row in rows for heat in row)
    rooms = [[room(heat, cell, bar=False) for heat in row] for row in rows]
    side, gap = 0.3, 2 * PAD  # side: the width of the names "encoder" and "decoder"
    width = side + sum(r.total[0] for r in rooms[0]) + gap * 2 + 2 * PAD
    heights = [max(r.total[1] for r in row) for row in rooms]
    figure = new_figure(width, sum(heights) + gap + 2 * PAD, "six matrices")
    top = sum(heights) + gap + PAD
    for heats, row_rooms, height, name in zip(rows, rooms, heights, ("encoder", "decoder"), strict=True):
        left = PAD + side
        for heat, r in zip(heats, row_rooms, strict=True):
            draw_at(figure, heat, left, top, cell=cell, bar=False)
            left += r.total[0] + gap
        middle = top - row_rooms[0].top - row_rooms[0].height / 2
        place = ((PAD + side / 2) / width, middle / figure.get_size_inches()[1])
        figure.text(*place, name, size=LABEL, weight="bold", rotation=90, ha="center", va="center")
        top -= height + gap
    return figure
