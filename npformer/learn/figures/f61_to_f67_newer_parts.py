"""F61 to F67: the parts that newer models have in place of those of 2017, and what they cost."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.errors import UserError, quantity
from npformer.functional import attention, layer_norm, rms_norm, rotary_table, rotate
from npformer.functional.masks import causal_mask
from npformer.learn.figures.datawhale_example import WordVectors, embedded
from npformer.learn.figures.registry import Drawing, figure
from npformer.models.gpt import GPT, GPTConfig
from npformer.nn import GatedFeedForward, MultiHeadAttention
from npformer.nn.module import Module, Parameter
from npformer.plots import Grid, attention_map, curves, mask_map
from npformer.plots.board import Board, new_board, numbered
from npformer.plots.boxes import Box
from npformer.plots.composition import beside
from npformer.plots.heat_maps import heat_row, make_heat_map, signed_scale
from npformer.plots.style import LABEL, number
from npformer.training.optimizer import Adam, AdamW, cosine

# F61: the bytes of a KV cache.

POINTS = 8  # lengths above 0 for which a text is read


@figure("F61", "The bytes of a KV cache", "course", "FW", "24.4 14.4")
def kv_cache_bytes(
    *,
    key_heads: Sequence[int] = (8, 2, 1),
    n_heads: int = 8,
    d_model: int = 128,
    n_layers: int = 4,
    longest: int = 256,
) -> Drawing:
    """Draw the bytes of the KV caches of GPTs that differ only in the number of key heads.

    Args:
        key_heads: The numbers of heads of keys and values, one for each curve.
        n_heads, d_model, n_layers: The number of query heads, the width and the number of layers.
        longest: The length of the longest text, a multiple of 8.

    Raises:
        UserError: If a setting is impossible.
    """
    if longest < POINTS or longest % POINTS:
        raise UserError(f"longest is {longest}: it must be a multiple of {POINTS} above 0")
    lengths = np.arange(POINTS + 1) * (longest // POINTS)  # (P,)
    sizes = {"n_heads": n_heads, "d_model": d_model, "n_layers": n_layers, "context": longest}
    config = GPTConfig.preset("gpt-shakespeare", **sizes)
    measured = [_bytes_of_caches(config.replace(n_kv_heads=number), lengths) for number in key_heads]
    names = [_kind(number, n_heads) for number in key_heads]
    axes: dict[str, Any] = {"xlabel": "tokens of the text", "ylabel": "KiB of the KV cache"}
    picture = curves(np.array(measured) / 1024, lengths, labels=names, legend=True, **axes)
    found_bytes = [
        f"{found[-1]:,} bytes with {_kind(number, config.n_heads)}"
        for number, found in zip(key_heads, measured, strict=True)
    ]
    return Drawing(
        picture,
        f"The KV caches of GPTs with {quantity(config.n_layers, 'layer')} and "
        f"{quantity(config.n_heads, 'query head')} of width {config.d_head}, in float32: the size of "
        f"their arrays after one text of each length. After {quantity(config.context, 'token')} there "
        f"are {'; '.join(found_bytes)}. The bytes are proportional to the length and to the number of key "
        "heads.",
    )


def _bytes_of_caches(config: GPTConfig, lengths: Array) -> list[int]:
    """Let a GPT read a text of each length, and return the bytes of its KV caches. Shapes: lengths (P,)."""
    model, found = GPT(config, rng=np.random.default_rng(0)), []
    for length in lengths.tolist():
        kv_cache = model.empty_kv_cache(length)
        if length:
            model.decode_step(np.zeros((1, length), int), 0, kv_cache)
        found.append(sum(each.nbytes for each in kv_cache))
    return found


def _kind(key_heads: int, n_heads: int) -> str:
    """Return the name of a curve."""
    kind = {n_heads: "multi-head", 1: "multi-query"}.get(key_heads, "grouped")
    return f"{quantity(key_heads, 'key head')} ({kind})"


# F62: what the norms remove from a vector.

APART = 0.75  # inches between two matrices, which is the room of an arrow


@figure("F62", "RMS norm and layer norm", "course", "FW", "23.1")
def rms_norm_beside_layer_norm(
    *, d_model: int = 5, factor: float = 2.0, shift: float = 1.0, seed: int = 0
) -> Drawing:
    """Draw a vector, a multiple of it and the vector plus a constant, and both norms of the three.

    Args:
        d_model, seed: The width of the vectors, and the seed of the random one.
        factor, shift: The factor of the second vector, and the constant that the third one adds.

    Raises:
        UserError: If the width is below 2, or the factor is not above 0.
    """
    if d_model < 2 or factor <= 0:
        raise UserError(f"d_model is {d_model} and factor is {factor}: give at least 2, and a number above 0")
    x = np.random.default_rng(seed).standard_normal(d_model)  # (D,)
    rows = np.stack([x, factor * x, x + shift])  # (3, D)
    names = ["x", f"{factor:g} x", f"x + {shift:g}"]
    gain, bias = np.ones(d_model), np.zeros(d_model)
    by_rms, by_layer = rms_norm(rows, gain)[0], layer_norm(rows, gain, bias)[0]
    with new_board(names, matrices=[rows, by_rms, by_layer]) as board:
        inputs = numbered(rows, "", "x", rows=names, shade=True)
        width, height = board.size(inputs)
        left = board.grid(inputs, 0, height / 2)
        for name, values, y in (("RMS norm", by_rms, 0.85), ("layer norm", by_layer, -0.85)):
            result = numbered(values, name, "normalised", shade=True)
            placed = board.grid(result, width + APART, y + height / 2)
            board.arrow((left.right + 0.06, left.centre[1]), (placed.left - 0.06, placed.centre[1]))
    moved = np.abs(by_rms[2] - by_rms[0]).max()
    most = max(np.abs(by_rms[1] - by_rms[0]).max(), np.abs(by_layer[1:] - by_layer[0]).max())
    return Drawing(
        board.figure,
        f"The three rows are x, {names[1]} and {names[2]}, with the mean {rows[0].mean():.2f} of x. RMS "
        "norm divides each row by its root mean square, so a factor changes nothing, but a constant "
        f"does: one entry changes by {moved:.2f}. Layer norm also subtracts the mean, so its three rows "
        f"are equal (up to {most:.0e}, because of the small number under the root).",
    )


# F63: rotary positions.


@figure("F63", "Rotary positions", "course", "FW", "23.2")
def rotary_positions(*, length: int = 10, width: int = 6, base: float = 30.0, seed: int = 3) -> Drawing:
    """Draw a query rotated by its position, and the scores of equal queries with equal keys.

    Args:
        length, width: The number of positions, and the width of a head, which is even.
        base, seed: The base of the angles, and the seed of the random query and key.

    Raises:
        UserError: If there are fewer than 2 positions, or the width is odd.
    """
    if length < 2:
        raise UserError(f"length is {length}: give at least 2 positions")
    q, k = np.random.default_rng(seed).standard_normal((2, width))  # (K,) each
    cos, sin = rotary_table(np.arange(length), width, base=base)  # (T, K / 2) each
    queries, keys = (rotate(np.tile(x, (length, 1)), cos, sin)[0] for x in (q, k))  # (T, K)
    scores = queries @ keys.T  # (T, T)
    maps = []
    for matrix, label, title in (
        (queries, "number", "one query, rotated at each position"),
        (scores, "score", "scores with one key, rotated too"),
    ):
        heat = make_heat_map(matrix, None, None, name=label)
        heat.scale, heat.title = signed_scale(matrix, label), title
        maps.append(heat)
    maps[0].axis_labels = ("position", "number of the vector")
    return Drawing(
        heat_row(maps),
        f"Left: the same query at {length} positions. Numbers j and j + {width // 2} form a pair, which is "
        "rotated by an angle proportional to the position: the first pair by 1 radian for each position, "
        f"the last one by {base ** (2 / width - 1):.2g}. Right: the scores of the query at each position "
        "(row) with one key at each position (column). They are equal along each diagonal, because a score "
        "depends only on the distance between query and key. Numbers above 0 are blue, and those below 0 "
        "orange.",
    )


# F64: a gated feed-forward network.

LARGER = 2.0  # a factor of the initial weights; without it the numbers would be near 0
GATES = {"swiglu": "swish", "geglu": "gelu"}


@figure("F64", "A gated feed-forward network", "course", "FW", "23.3", embedded, sentence="the dog barks")
def gated_feed_forward(vectors: WordVectors, *, d_ff: int = 5, activation: str = "swiglu") -> Drawing:
    """Draw y = (f(x Wg) * (x Wv)) W2 with the numbers of a forward pass.

    Args:
        vectors: The words and their vectors.
        d_ff, activation: The width of the hidden layer, and "swiglu" or "geglu".

    Raises:
        UserError: If there is no such gated activation.
    """
    words, x, seed = vectors
    d_model = x.shape[1]
    rng = np.random.default_rng(seed)
    layer = GatedFeedForward(d_model, d_ff, activation=activation, rng=rng, dtype=x.dtype)
    for parameter in layer.parameters():
        parameter.value *= LARGER
    y, cache = layer.forward(x)  # (T, D)
    gated, x = cache.gated, cache.gate.x
    weights = [part.weight.value for part in (layer.gate, layer.value, layer.outer)]
    gate, hidden = x @ weights[0], gated.activated * gated.value  # (T, F)
    inputs, value = numbered(x, "$x$", "x", rows=words), numbered(gated.value, "value", "v")
    activated = numbered(gated.activated, f"{GATES[activation]}(gate)", "q", rows=words, shade=True)
    by_gate, by_value, outer = (
        numbered(matrix, f"$W_{letter}$", "weight", edge)
        for matrix, letter, edge in zip(weights, "gv2", "qvz", strict=True)
    )
    rows: list[list[Grid | str]] = [
        [inputs, "×", by_gate, "=", numbered(gate, "gate", "q")],
        [inputs, "×", by_value, "=", value],
        [activated, "⊙", value, "=", numbered(hidden, "$h$", "r")],
        [numbered(hidden, "$h$", "r", rows=words), "×", outer, "=", numbered(y, "$y$", "z")],
    ]
    arrays = [x, *weights, gate, gated.value, gated.activated, hidden, y]
    step = max(len(matrix) for matrix in (x, *weights)) * 0.27 + 0.6
    with new_board(words, matrices=arrays) as board:
        for index, parts in enumerate(rows):
            board.product(parts, 0, -index * step)
    sizes = np.abs(gated.activated).mean(0)  # (F,)
    closed = int(sizes.argmin())
    return Drawing(
        board.figure,
        f"Two linear maps of x give the gate and the value, both of shape (T, {d_ff}). The activation "
        f"{GATES[activation]} of the gate is multiplied with the value, number by number, and a third linear "
        f"map leads back to the width {d_model}. Where {GATES[activation]} of the gate is near 0, the value "
        f"hardly passes, as in column {closed} with a mean absolute value of {sizes[closed]:.2f}. All "
        "weights are random.",
    )


# F65: query heads that share a head of keys and values.

HEAD, STEP = 0.36, 0.46  # the width of a head, and the distance of two
D_HEAD = 4


@figure("F65", "Query heads that share keys and values", "course", "FW", "23.4")
def grouped_queries(*, n_heads: int = 8, key_heads: Sequence[int] = (8, 2, 1)) -> Drawing:
    """Draw which query heads use which head of keys and values.

    The connections are measured: a head of keys and values is changed, and the query heads whose outputs
    change are connected with it. `key_heads` has the number of heads of keys and values of each layer.
    """
    if not key_heads:
        raise UserError("key_heads is empty: give at least one number of heads")
    used = [uses(n_heads, number) for number in key_heads]
    with new_board() as board:
        for row, connected in enumerate(used):
            y = -2.2 * row
            n_heads, groups = connected.shape
            xs = STEP * np.arange(n_heads)
            below = [_head(board, f"{g}", xs[connected[:, g]].mean(), y, "k") for g in range(groups)]
            for h, x in enumerate(xs):
                above = _head(board, f"{h}", x, y + 0.85, "q")
                for g in np.flatnonzero(connected[h]):
                    board.arrow(below[g].top, above.bottom, head=False)
            board.text(xs.mean(), y + 1.32, _name(n_heads, groups), size=LABEL)
            board.text(xs[0] - 0.35, y + 0.85, "queries", size=LABEL, ha="right")
            board.text(xs[0] - 0.35, y, "keys, values", size=LABEL, ha="right")
    shares = "; ".join(
        f"{quantity(each.shape[1], 'head')} of keys and values, "
        f"{'each ' * (each.shape[1] > 1)}used by {quantity(share, 'query head')}"
        for each in used
        for share in sorted({int(number) for number in each.sum(0)})
    )
    return Drawing(
        board.figure,
        f"Query heads (above) and heads of keys and values (below) of layers with {n_heads} query heads: "
        f"{shares}. Each query head still has its own attention weights, but "
        "fewer keys and values must be stored in a KV cache. Each line was found by a change of the values "
        "of a head: the output of the query head changed too.",
    )


def _name(n_heads: int, key_heads: int) -> str:
    """Return the name of an attention with these heads."""
    return {n_heads: "multi-head attention", 1: "multi-query attention"}.get(
        key_heads, "grouped-query attention"
    )


def uses(n_heads: int, n_kv_heads: int) -> Array:
    """Return which query heads depend on which head of keys and values, bool of shape (H, G)."""
    rng = np.random.default_rng(0)
    layer = MultiHeadAttention(
        n_heads * D_HEAD, n_heads, n_kv_heads=n_kv_heads, output=False, rng=rng, dtype=np.float64
    )  # without the output projection, the output is the outputs of the heads
    x = rng.standard_normal((1, 3, n_heads * D_HEAD))  # (B, T, D)
    before = layer.forward(x)[0]
    found = np.zeros((n_heads, n_kv_heads), bool)
    for head in range(n_kv_heads):
        columns = layer.value.weight.value[:, head * D_HEAD : (head + 1) * D_HEAD]
        columns *= 2
        changed = layer.forward(x)[0] != before  # (1, T, D)
        columns /= 2
        found[:, head] = changed.reshape(-1, n_heads, D_HEAD).any((0, 2))
    return found


def _head(board: Board, label: str, x: float, y: float, colour: str) -> Box:
    return board.box(label, x, y, HEAD, HEAD, colour=colour)


# F66: a sliding window.


@figure("F66", "A sliding window", "course", "FW", "23.4")
def sliding_window(*, length: int = 8, window: int = 3, n_layers: int = 2) -> Drawing:
    """Draw the mask of a window, and the share of each token in the outputs after several layers.

    Args:
        length, n_layers: The numbers of tokens and of layers.
        window: The number of tokens to which a token attends, itself included.

    Raises:
        UserError: If there are fewer than one layer or two tokens.
    """
    if n_layers < 1 or length < 2:
        raise UserError(f"n_layers is {n_layers} and length is {length}: give at least 1 layer and 2 tokens")
    x = np.zeros((length, 1))
    whole, mask = causal_mask(length, x), causal_mask(length, x, window=window)  # (T, T)
    shares = _shares(mask, n_layers)
    panels = [
        partial(mask_map, whole, None, None),
        partial(mask_map, mask, None, None),
        partial(attention_map, shares, None, None, mask=shares > 0),
    ]
    names = ["causal mask", f"window of {window}", f"shares after {quantity(n_layers, 'layer')}"]
    picture = beside(panels, names=names)
    return Drawing(
        picture,
        f"With a window of {window} a token attends to itself and {quantity(window - 1, 'token')} before it: "
        f"{mask.sum()} pairs of {length} tokens in place of {whole.sum()}. Information still moves further, "
        f"because each layer attends to the outputs of the layer before it: after "
        f"{quantity(n_layers, 'layer')} the last token depends on "
        f"{quantity(int((shares[-1] > 0).sum()), 'token')}. Right: the share of each token (column) in each "
        "output (row), if every layer gives all tokens of its window the same weight.",
    )


def _shares(mask: Array, n_layers: int) -> Array:
    """Return the share of each token in each output, (T, T), with attention weights from equal scores."""
    equal = np.zeros((len(mask), 1))
    weights = attention(equal, equal, equal, mask)[1].weights  # (T, T)
    return np.asarray(np.linalg.matrix_power(weights, n_layers))


# F67: weight decay and the schedule.

LR = 0.01


class Weights(Module):
    """A model of a few weights in one matrix, which all begin at 1."""

    def __init__(self, count: int) -> None:
        self.weight = Parameter(np.ones((1, count)))


@figure("F67", "Weight decay and the cosine schedule", "course", "FW", "23.5")
def adamw(
    *,
    steps: int = 500,
    warmup_steps: int = 50,
    floor: float = 0.1,
    weight_decay: float = 0.1,
    gradients: Sequence[float] = (0.1, 10.0),
) -> Drawing:
    """Draw the learning rate of each step, and the values of weights whose gradients are 0 on average.

    Args:
        steps, warmup_steps: The number of steps, and how many of them are the warm-up of the schedule.
        floor: The last learning rate, as a share of the largest.
        weight_decay: The factor of the weights, λ.
        gradients: The absolute value of the gradient of each weight. Its sign alternates.

    Raises:
        UserError: If there are no weights or fewer than 2 steps, or the schedule is impossible.
    """
    if not len(gradients) or steps < 2:
        raise UserError("give at least 2 steps and one gradient")
    rates = list(map(cosine(LR, steps, warmup_steps, floor * LR), range(1, steps + 1)))
    decoupled, penalty = (
        _decay(kind, gradients, steps, weight_decay) for kind in ("AdamW", "Adam")
    )  # (P, N)
    names = [f"{kind}, |g| = {g:g}" for kind in ("AdamW", "L2 in Adam") for g in gradients]
    picture = beside(
        [
            partial(curves, rates, np.arange(1, steps + 1), ylabel="learning rate"),
            partial(curves, np.hstack([decoupled, penalty]).T, labels=names, ylabel="weight", legend=True),
        ],
        names=["cosine schedule with a floor", "weights that only the decay moves"],
        down=True,
    )
    last = [", ".join(number(value) for value in run[-1]) for run in (decoupled, penalty)]
    return Drawing(
        picture,
        f"Top: the learning rate rises for {warmup_steps} steps and then falls along half a cosine to "
        f"{floor:g} of its largest value. Bottom, with the learning rate {LR:g} in each step: weights whose "
        "gradients change their sign in each step, so "
        f"that only the decay moves them; their size |g| is {' or '.join(f'{g:g}' for g in gradients)}. "
        f"AdamW shrinks all by the same factor: after {steps} steps they are {last[0]}. A penalty "
        f"in the gradient is divided by the size of the gradient, as Adam divides everything: {last[1]}.",
    )


def _decay(kind: str, gradients: Sequence[float], steps: int, weight_decay: float) -> Array:
    """Return the weights before each step and after the last one, (steps + 1, N)."""
    model = Weights(len(gradients))
    optimizer = AdamW(model, weight_decay=weight_decay) if kind == "AdamW" else Adam(model)
    values = [model.weight.value[0].copy()]
    for step in range(steps):
        model.weight.grad[...] = np.array(gradients) * (-1) ** step
        if kind == "Adam":  # the gradient of λ w² / 2
            model.weight.grad += weight_decay * model.weight.value
        optimizer.step(LR)
        values.append(model.weight.value[0].copy())
    return np.array(values)
