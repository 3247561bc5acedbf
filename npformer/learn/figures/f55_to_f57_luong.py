"""F55 to F57: Luong's global and local attention at one step of a recurrent decoder.

The figures show a sentence, half of its translation, and small networks with random weights.
"""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from matplotlib.patches import Circle, Rectangle
from numpy.typing import ArrayLike

from npformer.backend import Array
from npformer.data.codecs import Codec
from npformer.data.vocabulary import END, SPECIALS, START
from npformer.errors import UserError
from npformer.functional import gaussian_window, softmax
from npformer.learn.figures.jianshu_example import at_least, dataset
from npformer.learn.figures.registry import Drawing, figure
from npformer.nn import Embedding, Linear, Recurrent
from npformer.nn.attention import (
    AttentionalState,
    GlobalAttention,
    LocalMonotonic,
    LocalPredictive,
    Similarity,
)
from npformer.plots import Figure, curves
from npformer.plots.board import Board, new_board, numbered, paler
from npformer.plots.cells import CELL, Placed
from npformer.plots.layout import axes_at, new_figure, write_at
from npformer.plots.palette import COLOURS
from npformer.plots.palette import edge as edge_of
from npformer.plots.style import FORMULA, TEXT, drawing, number, text_size, widest

SOURCE = "the dog didn't cross the road"
TARGET = "le chien"
SEED = 4
D_HIDDEN = 4
LARGER = 2.0  # a factor of the initial weights; without it attention would be almost uniform


class Translation(NamedTuple):
    """The last step of a decoder that has read some words of a translation, for one sentence."""

    kind: str  # "global", "local-m" or "local-p"
    source: list[str]  # S words, the end symbol included
    target: list[str]  # T words, the decoder's input, the start symbol first
    memory: Any  # (S, N) the encoder's states
    states: Any  # (T, N) the decoder's states
    attention: Any  # the attention layer
    cache: Any  # of the attention layer, for all T states
    context: Any  # (N,) of the last state
    attentional: Any  # (N,)
    probabilities: Any  # (V,) of the next word
    vocabulary: list[str]  # V words: those of the translation

    @property
    def weights(self) -> Array:
        """The weights of the last state over the words, (S,)."""
        weights: Array = self.cache.weights[0, -1]  # (S,)
        return weights

    @property
    def position(self) -> float:
        """The position of the last state's window."""
        return float(self.cache.positions[0, -1])


def translation(
    kind: str = "local-p",
    reach: float | None = 2,
    source: str = SOURCE,
    target: str = TARGET,
    *,
    similarity: str = "general",
    seed: int = SEED,
) -> Translation:
    """Run encoder, decoder, attention and output with random weights.

    Args:
        kind: "local-p" predicts the position of the window, "local-m" takes the decoder's own position.
        reach: The number of words to either side of the position, or None for global attention.
        source, target: The English sentence, and the French words that the decoder has read.
        similarity, seed: The similarity function of the attention, and the seed of the random weights.

    Raises:
        UserError: If the kind or the similarity is unknown, or the sentence is empty.
    """
    if reach is not None and kind not in ("local-p", "local-m"):
        raise UserError(f"kind is {kind!r}: choose one of local-p, local-m")
    at_least(0, seed=seed)
    rng = np.random.default_rng(seed)
    read = [*dataset().source.words(source), SPECIALS[END]]
    written = [SPECIALS[START], *dataset().target.words(target)]
    memory, last = _run_gru(rng, [*dataset().source.encode(source, strict=True), END], dataset().source, None)
    states, _ = _run_gru(rng, [START, *dataset().target.encode(target, strict=True)], dataset().target, last)
    scores = Similarity(similarity, D_HIDDEN, D_HIDDEN, rng=rng)
    attention: Any = GlobalAttention(scores)
    if reach is not None:
        local = kind == "local-m"
        attention = (
            LocalMonotonic(scores, reach=reach) if local else LocalPredictive(scores, reach=reach, rng=rng)
        )
    joined = AttentionalState(D_HIDDEN, D_HIDDEN, rng=rng)
    vocabulary = [*dict.fromkeys(written[1:]), SPECIALS[END]]
    output = Linear(D_HIDDEN, len(vocabulary), rng=rng)
    for parameter in (*attention.parameters(), *joined.parameters(), *output.parameters()):
        parameter.value *= LARGER
    context, cache = attention.forward(states, memory)
    attentional, _ = joined.forward(context, states)
    probabilities, _ = softmax(output.forward(attentional)[0])
    ends = (context[0, -1], attentional[0, -1], probabilities[0, -1])
    return Translation(kind, read, written, memory[0], states[0], attention, cache, *ends, vocabulary)


def _run_gru(
    rng: np.random.Generator, ids: Sequence[int], codec: Codec, state: Array | None
) -> tuple[Array, Array]:
    """Run a GRU over a sentence. Shapes: ids (S,), state (1, N) or None -> states (1, S, N), last (1, N)."""
    embedding = Embedding(len(codec.vocabulary), D_HIDDEN, rng=rng)
    reader = Recurrent(D_HIDDEN, D_HIDDEN, kind="gru", rng=rng)
    for parameter in (*embedding.parameters(), *reader.parameters()):
        parameter.value *= LARGER
    states, _ = reader.forward(embedding.forward(np.array([ids]))[0], state)
    return states, states[:, -1]


# heights of the states' lower ends, the scores, the bars and the context
FEET, SCORES, BARS, READ = 0.35, 1.75, 2.2, 4.35
TALL = 0.95  # height of the room for the bars
THICK = 0.26  # width of a bar
NUMBERS = BARS + TALL + 0.34
FULL, PALE = COLOURS["r"], paler("r", 0.35)  # the weights a_t, and the weights before the Gaussian


@figure("F55", "Luong's global attention", "paperspace", "FW", "17.4", partial(translation, "global", None))
def global_attention(run: Translation) -> Drawing:
    """Draw one step of a decoder that has read `target` and attends to all of `source`."""
    best = int(run.weights.argmax())
    return Drawing(
        _attention_picture(run),
        f"The decoder's state after “{run.target[-1]}” is compared with every state of the source, and the "
        f"softmax of the scores gives the weights, the largest to “{run.source[best]}” "
        f"({number(run.weights[best])}). The context is the mean of the source states with these weights; "
        "context and state give the attentional state, which predicts the next word. All parameters are "
        "random.",
    )


@figure("F56", "Luong's local attention", "paperspace", "FW", "18.1 18.2", translation)
def local_attention(run: Translation) -> Drawing:
    """Draw one step of a decoder that attends to a window of the source."""
    p, reach = run.position, run.attention.reach
    where = f"The window (yellow) extends D = {reach:g} words to either side of {number(p)}, "
    if run.kind == "local-p":
        how = (
            "the position predicted from the decoder's state. Pale bars: the softmax inside the window, "
            "which sums to 1. The Gaussian around the position (orange) reduces it to the blue bars, the "
            f"weights, which sum to {number(run.weights.sum())}. "
        )
    else:
        how = "the decoder's own position. The softmax inside the window gives the weights. "
    return Drawing(
        _attention_picture(run),
        where + how + "Words outside have weight 0 and do not contribute to the context. All parameters are "
        "random.",
    )


def _attention_picture(run: Translation) -> Figure:
    """Draw a step of attention."""
    with new_board(
        run.source,
        run.target,
        run.vocabulary,
        matrices=[run.memory, run.states, run.context, run.attentional, run.probabilities],
        what=f"a source of {len(run.source)} words",
    ) as board:
        step = max(board.cell + 0.34, widest([*run.source, *run.target], TEXT) + 0.14)
        xs = [step * i for i in range(len(run.source))]
        room = 2.6 if run.kind == "global" else 4.0  # for the parts between encoder and decoder
        first = max(xs[-1] + step + 0.4, xs[-1] + step + room - step * (len(run.target) - 1))
        ts = [first + step * i for i in range(len(run.target))]
        read = _states(board, xs, run.source, run.memory, "k")
        targets = _states(board, ts, run.target, run.states, "q")
        last = targets[-1]
        board.arrow((read[-1].right, read[-1].centre[1]), (targets[0].left, last.centre[1]))
        board.text(read[0].left - 0.08, last.centre[1], r"$\bar h_s$", size=FORMULA, ha="right")
        board.text(last.right + 0.08, last.centre[1], "$h_t$", size=FORMULA, ha="left")
        # lines from the decoder's state to the words it is compared with, and a dot at each comparison
        inside = [x for x, weight in zip(xs, run.weights, strict=True) if weight > 0]
        board.arrow((last.centre[0], SCORES), (min(inside, default=xs[-1]), SCORES), head=False)
        for x in xs:
            board.arrow(
                (x, last.top), (x, BARS), colour="ink" if x in inside else "#c4c7ca", head=x in inside
            )
        for x in inside:
            board.ax.add_patch(Circle((x, SCORES), 0.045, facecolor="#222222", zorder=3, clip_on=False))
        middle = (xs[-1] + last.centre[0]) / 2
        board.text(middle, SCORES + 0.05, r"$score(h_t,\,\bar h_s)$", size=FORMULA, va="bottom")
        if run.kind != "global":
            _window(board, run, xs, inside, last)
        _bars(board, run, xs)
        for index, (colour, text) in enumerate(_meanings(run)):
            left, y = xs[0] - 0.3, READ + 1.15 - 0.27 * index
            style: dict[str, Any] = {"facecolor": colour, "edgecolor": "#444444", "clip_on": False}
            board.ax.add_patch(Rectangle((left, y - 0.06), 0.2, 0.12, **style))
            board.text(left + 0.28, y, text, size=FORMULA, ha="left")
        _context_and_output(board, run, xs, last)
    return board.figure


def _states(
    board: Board, xs: Sequence[float], words: Sequence[str], states: Array, role: str
) -> list[Placed]:
    """Draw a state above each word, with arrows from state to state, and return the states' places."""
    placed = [
        board.grid_at(numbered(state[:, None], "", role), x, FEET + len(state) * CELL / 2)
        for x, state in zip(xs, states, strict=True)
    ]
    for x, word in zip(xs, words, strict=True):
        board.text(x, 0, word, parse_math=False)
        board.arrow((x, 0.12), (x, FEET))
    for one, other in pairwise(placed):
        board.arrow((one.right, one.centre[1]), (other.left, other.centre[1]))
    return placed


def _window(
    board: Board, run: Translation, xs: Sequence[float], inside: Sequence[float], last: Placed
) -> None:
    """Draw the window behind the bars, its position, and the Gaussian."""
    step, p, reach = xs[1] - xs[0] if len(xs) > 1 else 0.6, run.position, run.attention.reach
    left, right = max(p - reach, -0.5) * step, min(p + reach, len(xs)) * step
    margin = THICK / 2 + 0.06  # the frame contains the bars of the words at the edges of the window
    low, high = min([left, *(x - margin for x in inside)]), max([right, *(x + margin for x in inside)])
    board.frame(low, BARS, high, BARS + TALL, colour=paler("position"))
    style: dict[str, Any] = {"color": COLOURS["highlight"], "linewidth": 1.6, "zorder": 4, "clip_on": False}
    board.ax.plot([p * step] * 2, [BARS, BARS + TALL], linestyle="--", **style)
    board.text(p * step, BARS + TALL + 0.12, "$p_t$", size=FORMULA)
    lines = [f"$p_t = t = {p:.0f}$"]
    if run.kind == "local-p":
        lines = [r"$p_t = S \cdot sigmoid(v_p^T\,\tanh(W_p h_t))$", f"$= {p:.2f}$"]
        x = np.linspace(left, right, 100)
        y = gaussian_curve(x / step, p, reach)
        board.ax.plot(x, BARS + TALL * y, **style)
    wide = max(text_size(line, FORMULA, math=True)[0] for line in lines) + 0.24
    tall = 0.28 * len(lines) + 0.1
    box = board.box("", last.centre[0] - 0.3 - wide / 2, BARS + TALL / 2, wide, tall, colour="position")
    for index, line in enumerate(lines):
        y_line = box.top[1] - 0.05 - 0.28 * (index + 0.5)
        board.text(box.x, y_line, line, size=FORMULA, room=False)
    board.arrow((last.centre[0], box.y), box.right)
    board.arrow(box.left, (high, box.y))


def _bars(board: Board, run: Translation, xs: Sequence[float]) -> None:
    """Draw the weights, and behind them the weights before the Gaussian."""
    before = getattr(run.cache, "aligned", run.cache.weights)[0, -1]
    scale = 0.9 * TALL / (before.max() or 1.0)
    for x, weight, whole in zip(xs, run.weights, before, strict=True):
        bars = ((whole, PALE), (weight, FULL)) if weight > 0 else ()
        for height, colour in bars:
            style: dict[str, Any] = {"facecolor": colour, "edgecolor": edge_of("r"), "clip_on": False}
            left = x - THICK / 2
            board.ax.add_patch(Rectangle((left, BARS), THICK, height * scale, zorder=3, **style))
        board.text(x, NUMBERS, number(weight) if weight > 0 else "0", size=TEXT)
    board.text(xs[0] - 0.3, NUMBERS, "$a_t$", size=FORMULA, ha="right")


def _context_and_output(board: Board, run: Translation, xs: Sequence[float], last: Placed) -> None:
    """Draw the context, the attentional state, and the next word."""
    middle = (xs[0] + xs[-1]) / 2
    context = board.grid_at(numbered(run.context, "$c_t$", "z"), middle, READ, label="left")
    for x, weight in zip(xs, run.weights, strict=True):
        if weight > 0:
            start, width = (x, NUMBERS + 0.1), 0.6 + 6 * float(weight)
            board.arrow(start, (middle, context.bottom), width=width, colour="faint", head=False)
    at = last.centre[0]
    grid = numbered(run.attentional, r"$\tilde h_t$", "normalised")
    joined = board.grid_at(grid, at, READ, label="right")
    label = r"$\tanh(W_c\,[\,c_t\,;\,h_t\,])$"
    board.arrow((context.right, READ), (joined.left, READ))
    board.text((context.right + joined.left) / 2, READ + 0.06, label, size=FORMULA, va="bottom")
    board.arrow((at, last.top), (at, joined.bottom))
    words = numbered(run.probabilities, "$y_t$", "x", columns=run.vocabulary, shade=True)
    y = board.grid_at(words, at, READ + 0.85, label="right")
    board.arrow((at, joined.top), (at, y.bottom))
    board.text(at + 0.08, (joined.top + y.bottom) / 2, r"$softmax(W_s \tilde h_t)$", size=FORMULA, ha="left")


def _meanings(run: Translation) -> list[tuple[str, str]]:
    """Return the entries of the legend, pairs (colour, meaning)."""
    if run.kind == "global":
        return [(FULL, "$a_t$: softmax of the scores")]
    window = (paler("position"), rf"window $[p_t - D,\ p_t + D]$, $D = {run.attention.reach:g}$")
    if run.kind == "local-m":
        return [(FULL, "$a_t$: softmax inside the window"), window]
    return [
        (PALE, "softmax inside the window"),
        (FULL, "$a_t$: softmax times Gaussian"),
        (COLOURS["highlight"], r"Gaussian round $p_t$, 1 at $p_t$, $\sigma = D / 2$"),
        window,
    ]


MARGIN, SIDES = 0.75, 1.65  # inches at the left of the axes, and at both sides
HIGH = 4.8  # inches, of the figure


LOCAL_P = partial(translation, "local-p")


@figure("F57", "The predicted position and its Gaussian", "paperspace", "FW", "18.2", LOCAL_P)
def predicted_position(run: Translation) -> Drawing:
    """Draw the window of local-p: the Gaussian, its factor at each word, at D / 2 and at D."""
    reach = run.attention.reach
    half, edge = gaussian_curve([run.position + reach / 2, run.position + reach], run.position, reach)
    return Drawing(
        _window_picture(run),
        f"The decoder's state after “{run.target[-1]}” predicts a position in the source: "
        f"{number(_share(run))} of its length {len(run.source)}. With D = {reach:g} and σ = D / 2 the "
        f"Gaussian multiplies a weight by {number(half, 4)} at a distance of D / 2, and by {number(edge, 4)} "
        "at D, where the window ends. Dots: the words inside the window.",
    )


def _share(run: Translation) -> float:
    """Return the predicted position as a share of the source's length."""
    return float(run.cache.predicted.share[0, -1])


def gaussian_curve(places: ArrayLike, p: float, reach: float) -> np.ndarray:
    """Return the factors of gaussian_window, (M,), at places that need not be positions of words.

    Args:
        places, p: The places, (M,), and the centre of the Gaussian.
        reach: The half width D of the window. The standard deviation is D / 2.
    """
    # a row of one word at position 0 for each place: p is shifted instead of the word
    shifted = p - np.asarray(places)
    return gaussian_window(np.ones((len(shifted), 1)), shifted, reach / 2)[0][:, 0]


def _window_picture(run: Translation) -> Figure:
    """Draw the curve over the source, the window, and the factors at the words and at two distances."""
    p, reach, count = run.position, run.attention.reach, len(run.source)
    low, high = min(-0.5, p - 1.4 * reach), max(count - 0.5, p + 1.4 * reach)
    with drawing(run.source):
        wide = max(5.6, (high - low) * (widest(run.source, TEXT) + 0.1))
        figure = new_figure(wide + SIDES, HIGH, f"a source of {count} words")
        ax = axes_at(figure, MARGIN, 0.75, wide, 3.1)
        places = np.linspace(low, high, 400)
        factor_at = gaussian_curve(places, p, reach)
        curves(factor_at, places, ax=ax, xlabel="position s in the source", ylabel="factor")
        ax.axvspan(p - reach, p + reach, color=COLOURS["position"], alpha=0.5, linewidth=0, zorder=0)
        at = np.flatnonzero(run.weights > 0)  # a dot for each word inside the window at its factor
        factors = run.cache.gaussian.bell[0, -1, at]
        ax.vlines(at, 0, factors, color=COLOURS["r"], linewidth=1.6, zorder=2.5)
        ax.plot(at, factors, "o", color=edge_of("r"), markersize=6, zorder=3)
        orange = COLOURS["highlight"]
        ax.plot([p, p], [0, 1], color=orange, linestyle="--", linewidth=1.4)
        for share, name in ((0.5, "D / 2"), (1.0, "D")):
            place = p + share * reach
            (factor,) = gaussian_curve([place], p, reach)
            ax.plot([p, place], [factor, factor], color=orange, linewidth=1.4)
            ax.plot([place], [factor], "D", color=orange, markersize=5, zorder=4)
            style: dict[str, Any] = {"textcoords": "offset points", "size": TEXT, "va": "bottom"}
            ax.annotate(f"{number(factor, 4)} at {name}", (place, factor), (9, 4), **style)
        ax.set_xticks(range(count), [f"{s}\n{word}" for s, word in enumerate(run.source)], fontsize=TEXT)
        ax.set(ylim=(0, 1.08), yticks=[0, 0.5, 1])
        formula = r"$p_t = S \cdot sigmoid(v_p^T\,\tanh(W_p h_t))$"
        result = rf"$= {count} \cdot {_share(run):.3f} = {p:.2f}$"
        width = rf"$D = {reach:g},\quad \sigma = D / 2 = {reach / 2:g}$"
        for y, line in ((4.5, f"{formula} {result}"), (4.2, width)):
            write_at(figure, MARGIN + wide / 2, y, line, size=FORMULA)
        return figure
