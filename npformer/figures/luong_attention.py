"""Luong's attention at one step of a recurrent decoder: to the whole source (F55), and to a window (F56)."""

from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.patches import Circle, Rectangle

from npformer.attention import GlobalAttention, LocalMonotonic, LocalPredictive
from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.luong_example import SEED, SOURCE, TARGET, Translation, translation
from npformer.figures.luong_window import gaussian_curve
from npformer.plots import Figure, Grid
from npformer.plots.board import Board, paler
from npformer.plots.cells import CELL, Placed
from npformer.plots.palette import colour as colour_of
from npformer.plots.palette import edge as edge_of
from npformer.plots.style import FORMULA, TEXT, drawing, number, text_size, widest

FEET, SCORES, BARS, READ = 0.35, 1.75, 2.2, 4.35  # heights: of the states' feet, scores, bars and context
TALL = 0.95  # of the room for bars
NUMBERS = BARS + TALL + 0.34


@figure("F55", "Luong's global attention", source="S4", data="FW")
def global_attention(
    studio, *, source: str = SOURCE, target: str = TARGET, similarity: str = "general", seed: int = SEED
) -> Drawing:
    """One step of a decoder that has read `target` and looks at all of `source`. All weights are random."""
    seen = translation(lambda s, rng: GlobalAttention(s), source, target, similarity=similarity, seed=seed)
    best = int(seen.weights.argmax())
    return Drawing(
        _picture(seen, None),
        f"The decoder's state after “{seen.target[-1]}” is compared with every state of the source, and the "
        f"softmax of the scores gives the weights, the largest to “{seen.source[best]}” "
        f"({number(seen.weights[best])}). The context is the mean of the source states with these weights; "
        "context and state make the attentional state, which predicts the next word. All weights are random.",
    )


@figure("F56", "Luong's local attention", source="S4", data="FW")
def local_attention(
    studio,
    *,
    kind: str = "local-p",
    reach: float = 2,
    source: str = SOURCE,
    target: str = TARGET,
    similarity: str = "general",
    seed: int = SEED,
) -> Drawing:
    """The same with a window, reach words to either side of p, predicted or ("local-m") the step's own."""
    makers = {
        "local-p": lambda s, rng: LocalPredictive(s, reach=reach, rng=rng),
        "local-m": lambda s, rng: LocalMonotonic(s, reach=reach),
    }
    if kind not in makers:
        raise UserError(f"kind is {kind!r}: choose one of {', '.join(makers)}")
    seen = translation(makers[kind], source, target, similarity=similarity, seed=seed)
    p = seen.position
    where = f"The window reaches {reach:g} words to either side of {number(p)}, "
    if kind == "local-p":
        how = (
            "which the decoder's state predicted. Pale bars: the softmax inside the window, which sums to 1. "
            "The Gaussian round the position lowers it to the full bars, which sum to "
            f"{number(seen.weights.sum())}. "
        )
    else:
        how = "which is the decoder's own position. The softmax inside the window gives the weights. "
    return Drawing(
        _picture(seen, kind), where + how + "Words outside have weight 0 and no part in the context."
    )


def _picture(seen: Translation, kind: str | None) -> Figure:
    """kind is "local-p", "local-m", or None for the global one."""
    with drawing(seen.source, seen.target, seen.vocabulary):
        board = Board([seen.memory, seen.states, seen.context, seen.attentional, seen.probabilities])
        step = max(board.cell + 0.34, widest([*seen.source, *seen.target], TEXT) + 0.14)
        xs = [step * i for i in range(len(seen.source))]
        room = 2.6 if kind is None else 4.0  # for what stands between the two
        first = max(xs[-1] + step + 0.4, xs[-1] + step + room - step * (len(seen.target) - 1))
        ts = [first + step * i for i in range(len(seen.target))]
        read = _states(board, xs, seen.source, seen.memory, "k")
        written = _states(board, ts, seen.target, seen.states, "q")
        last = written[-1]
        board.arrow((read[-1].right, read[-1].centre[1]), (written[0].left, last.centre[1]))
        board.text(read[0].left - 0.08, last.centre[1], r"$\bar h_s$", size=FORMULA, ha="right")
        board.text(last.right + 0.08, last.centre[1], "$h_t$", size=FORMULA, ha="left")
        _compare(board, seen, xs, last)
        if kind is not None:
            _window(board, seen, kind, xs, last)
        _bars(board, seen, xs)
        _read(board, seen, xs, last)
        return board.cut(what=f"a source of {len(xs)} words")


def _states(board: Board, xs, words, states, role: str) -> list[Placed]:
    """A column of numbers over each word, each handed on to the next. Where they are."""
    placed = [
        board.grid_at(Grid(state[:, None], "", role, numbers=True), x, FEET + len(state) * CELL / 2)
        for x, state in zip(xs, states, strict=True)
    ]
    for x, word in zip(xs, words, strict=True):
        board.text(x, 0, word, parse_math=False)
        board.arrow((x, 0.12), (x, FEET))
    for one, other in pairwise(placed):
        board.arrow((one.right, one.centre[1]), (other.left, other.centre[1]))
    return placed


def _compare(board: Board, seen: Translation, xs, last: Placed) -> None:
    """A line from the decoder's state to every word that it is compared with, and a dot where they meet."""
    inside = [x for x, weight in zip(xs, seen.weights, strict=True) if weight > 0]
    board.arrow((last.centre[0], SCORES), (min(inside, default=xs[-1]), SCORES), head=False)
    for x in xs:
        colour = "ink" if x in inside else "#c4c7ca"
        board.arrow((x, last.top), (x, BARS), colour=colour, head=x in inside)
        if x in inside:
            board.ax.add_patch(Circle((x, SCORES), 0.045, facecolor="#222222", zorder=3, clip_on=False))
    middle = (xs[-1] + last.centre[0]) / 2
    board.text(middle, SCORES + 0.05, r"$score(h_t,\,\bar h_s)$", size=FORMULA, va="bottom")


def _window(board: Board, seen: Translation, kind: str, xs, last: Placed) -> None:
    """The window behind the bars, the position in it, and the Gaussian."""
    step, p, reach = xs[1] - xs[0] if len(xs) > 1 else 0.6, seen.position, seen.attention.reach
    left, right = max(p - reach, -0.5) * step, min(p + reach, len(xs)) * step
    board.frame(left, BARS, right, BARS + TALL, colour=paler("position"))
    style: dict[str, Any] = {"color": colour_of("highlight"), "linewidth": 1.6, "zorder": 4, "clip_on": False}
    board.ax.plot([p * step] * 2, [BARS, BARS + TALL], linestyle="--", **style)
    board.text(p * step, BARS + TALL + 0.12, "$p_t$", size=FORMULA)
    told = [f"$p_t = t = {p:.0f}$"]
    if kind == "local-p":
        told = [r"$p_t = S \cdot sigmoid(v_p^T\,\tanh(W_p h_t))$", f"$= {p:.2f}$"]
        x = np.linspace(left, right, 100)
        y = gaussian_curve(x / step, p, reach)
        board.ax.plot(x, BARS + TALL * y, **style)
    wide, high = max(text_size(line, FORMULA, math=True)[0] for line in told) + 0.24, 0.28 * len(told) + 0.1
    box = board.box("", last.centre[0] - 0.3 - wide / 2, BARS + TALL / 2, wide, high, colour="position")
    for index, line in enumerate(told):
        y_line = box.top[1] - 0.05 - 0.28 * (index + 0.5)
        board.text(box.x, y_line, line, size=FORMULA, room=False)
    board.arrow((last.centre[0], box.y), box.right)
    board.arrow(box.left, (right, box.y))


def _bars(board: Board, seen: Translation, xs) -> None:
    """The weights, and behind them what they were before the Gaussian."""
    before = getattr(seen.cache, "aligned", seen.cache.weights)[0, -1]
    scale = 0.9 * TALL / (before.max() or 1.0)
    for x, weight, whole in zip(xs, seen.weights, before, strict=True):
        bars = ((whole, paler("r", 0.35)), (weight, colour_of("r"))) if weight > 0 else ()
        for height, colour in bars:
            style: dict[str, Any] = {"facecolor": colour, "edgecolor": edge_of("r"), "clip_on": False}
            board.ax.add_patch(Rectangle((x - 0.13, BARS), 0.26, height * scale, zorder=3, **style))
        board.text(x, NUMBERS, number(weight) if weight > 0 else "0", size=TEXT)
    board.text(xs[0] - 0.3, NUMBERS, "$a_t$", size=FORMULA, ha="right")


def _read(board: Board, seen: Translation, xs, last: Placed) -> None:
    """The context, the attentional state, and the next word."""
    middle = (xs[0] + xs[-1]) / 2
    context = board.grid_at(Grid(seen.context, "$c_t$", "z", numbers=True), middle, READ, label="left")
    for x, weight in zip(xs, seen.weights, strict=True):
        if weight > 0:
            start, width = (x, NUMBERS + 0.1), 0.6 + 6 * float(weight)
            board.arrow(start, (middle, context.bottom), width=width, colour="faint", head=False)
    at = last.centre[0]
    grid = Grid(seen.attentional, r"$\tilde h_t$", "normalised", numbers=True)
    joined = board.grid_at(grid, at, READ, label="right")
    label = r"$\tanh(W_c\,[\,c_t\,;\,h_t\,])$"
    board.arrow((context.right, READ), (joined.left, READ))
    board.text((context.right + joined.left) / 2, READ + 0.06, label, size=FORMULA, va="bottom")
    board.arrow((at, last.top), (at, joined.bottom))
    words = Grid(seen.probabilities, "$y_t$", "x", columns=seen.vocabulary, numbers=True, shade=True)
    y = board.grid_at(words, at, READ + 0.85, label="right")
    board.arrow((at, joined.top), (at, y.bottom))
    board.text(at + 0.08, (joined.top + y.bottom) / 2, r"$softmax(W_s \tilde h_t)$", size=FORMULA, ha="left")
