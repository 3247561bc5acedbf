"""Attention as a graph of several heads (F18), and as looking something up (F59)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.patches import Rectangle

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.schematic_parts import GAP, HIGH, config_of
from npformer.functional import attention
from npformer.plots import Figure
from npformer.plots.board import Board
from npformer.plots.boxes import Box
from npformer.plots.palette import colour as colour_of
from npformer.plots.style import FORMULA, LABEL, drawing, number, printable, widest
from npformer.transformer import TransformerConfig

SHOWN = 3  # heads of a pile that are drawn
OFFSET = 0.08  # from one head of a pile to the next behind it
APART = 1.6  # from V to K to Q

QUERY = "how does attention work"
TITLES = ("attention explained", "how does a transformer work", "funny cats", "ten soups for winter")


@figure("F18", "The graph of multi-head attention", source="S0", data="SC")
def multi_head(studio, *, preset: str = "paper-base", **settings) -> Drawing:
    """V, K, Q through a linear map a head, scaled dot-product attention, concatenation, a last linear map."""
    config = config_of(preset, settings)
    d, heads, key, value = config.d_model, config.n_heads, config.head_key, config.head_value
    kind = "linear" if config.projection_activation == "none" else f"linear, {config.projection_activation}"
    with drawing():
        board = Board()
        back = OFFSET * (min(SHOWN, heads) - 1)
        wide = 2 * APART + 1.3
        whole = _pile(board, "scaled dot-product attention", (0, 1.35), wide, "attention", heads)
        for i, (letter, role, width) in enumerate((("V", "v", value), ("K", "k", key), ("Q", "q", key))):
            x = (i - 1) * APART
            linear = _pile(board, f"{kind}\n{d} → {width}", (x, 0.25), 1.3, "linear", heads)
            given = _letter(board, letter, x, -0.75, role)
            board.arrow(given.top, linear.bottom)
            board.arrow(linear.top, (x, whole.bottom[1]))
        board.text(whole.right[0] + back + 0.12, whole.y, f"h = {heads}", size=FORMULA, ha="left")
        last = _above(board, whole, config)
        board.arrow(last.top, (0, last.top[1] + 0.4))
        picture = board.cut()
    joined = f"Their outputs are laid side by side, {heads} × {value} = {heads * value} numbers a word"
    mixed = f", and a last linear map takes them to {d}" if config.attention_output else ""
    return Drawing(
        picture,
        f"{heads} head{'s' * (heads > 1)}, each with linear maps of its own from {d} to {key} numbers: each "
        f"compares queries with keys in its own way. {joined}{mixed}.",
    )


def _pile(board: Board, label: str, at, width: float, colour: str, count: int) -> Box:
    """Equal boxes one behind another, as many as there are heads but at most SHOWN; the one in front."""
    x, y = at
    for index in range(min(SHOWN, count) - 1, 0, -1):
        left, bottom = x - width / 2 + index * OFFSET, y - HIGH / 2 + index * OFFSET
        behind = Rectangle((left, bottom), width, HIGH, facecolor=colour_of(colour), edgecolor="#5f6368")
        behind.set(zorder=2.9 - 0.1 * index, clip_on=False)
        board.ax.add_patch(behind)
        board.take(left, bottom, left + width, bottom + HIGH)
    return board.box(label, x, y, width, HIGH, colour=colour)


def _letter(board: Board, letter: str, x: float, y: float, role: str) -> Box:
    """One of V, K and Q in its colour."""
    return board.box(letter, x, y, 0.42, 0.36, colour=role)


def _above(board: Board, whole: Box, config: TransformerConfig) -> Box:
    """What makes one output of all heads: nothing is to be joined where there is one."""
    last, joined = whole, config.n_heads * config.head_value
    rows = []
    if config.n_heads > 1:
        rows.append((f"concat\n{config.n_heads} × {config.head_value} = {joined}", "plain"))
    if config.attention_output:
        rows.append((f"linear\n{joined} → {config.d_model}", "linear"))
    back = OFFSET * (min(SHOWN, config.n_heads) - 1)
    for label, colour in rows:
        room = GAP + 0.08 + (back if last is whole else 0)
        box = board.box(label, 0, last.top[1] + room + HIGH / 2, 1.7, HIGH, colour=colour)
        board.arrow(last.top, box.bottom)
        last = box
    return last


@figure("F59", "Query, keys and values as looking something up", source="S4", data="SC")
def retrieval(studio, *, query: str = QUERY, titles: Sequence[str] = TITLES) -> Drawing:
    """A search for videos: the query is compared with every title, and the answer is a mixture of videos.

    The score of a title is the number of words that it shares with the query; a look-up takes the best one,
    attention takes the softmax of the scores as weights.
    Errors: UserError for an empty query, or fewer than 2 or more than 8 titles.
    """
    if isinstance(titles, str) or not 2 <= len(titles) <= 8 or not query.split():
        raise UserError("give a query of at least one word, and a list of 2 to 8 titles")
    query, titles = printable(query), [printable(title) for title in titles]
    scores, weights = look_up(query, titles)
    with drawing(query, titles):
        picture = _search(query, titles, scores, weights)
    best = int(np.argmax(scores))
    return Drawing(
        picture,
        "A look-up compares the query with every key; here a score counts the shared words, "
        f"{scores[best]:.0f} with “{titles[best]}”. It would return the value of that one alone. Attention "
        "returns a mixture of all values, with the softmax of the scores as weights: "
        f"{number(weights[best])} of video {best + 1}.",
    )


def _search(query: str, titles: Sequence[str], scores, weights) -> Figure:
    """The query at the left, then keys, values and the answer; lines are as wide as weights are large."""
    board = Board()
    wide = max(widest([query], LABEL), 1.4) + 0.24, max(widest(titles, LABEL), 1.4) + 0.24
    end = wide[0] / 2 + 1.1 + wide[1]  # of the keys
    xs = (0, end - wide[1] / 2, end + 1.9, end + 4.1)  # of the query, the keys, the values, the answer
    parts = [f"{number(weight)} video {i + 1}" for i, weight in enumerate(weights)]
    asked = board.box(query, xs[0], 0, wide[0], HIGH, colour="q")
    answer = board.box("\n+ ".join(parts), xs[3], 0, 1.3, 0.2 * len(parts) + 0.2, colour="z")
    for i, (title, weight) in enumerate(zip(titles, weights, strict=True)):
        y = ((len(titles) - 1) / 2 - i) * 0.75
        key = board.box(title, xs[1], y, wide[1], HIGH, colour="k")
        value = board.box(f"video {i + 1}", xs[2], y, 1.0, HIGH, colour="v")
        for ends in ((asked.right, key.left), (key.right, value.left), (value.right, answer.left)):
            board.arrow(*ends, width=0.8 + 5 * weight, colour="faint", head=False)
        middle = (key.right[0] + value.left[0]) / 2
        board.text(middle, y + 0.07, f"{scores[i]:.0f} → {number(weight)}", va="bottom")
    top = len(titles) / 2 * 0.75 + 0.05
    names = (("query", xs[0]), ("keys", xs[1]), ("values", xs[2]), ("answer", xs[3]))
    for (name, x), box in zip(names, (asked, None, None, answer), strict=True):
        height = top if box is None else box.top[1] + 0.12
        board.text(x, height, name, size=FORMULA, weight="bold", va="bottom")
    board.text((end + xs[2] - 0.5) / 2, top, "score → weight", va="bottom")
    return board.cut(what=f"a search with {len(titles)} titles")


def look_up(query: str, titles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Scores and weights of titles, each text a vector that counts its words.

    Shapes: -> (N,), (N,).
    """
    vocabulary = sorted({word for text in (query, *titles) for word in text.lower().split()})

    def counted(text):
        words = text.lower().split()
        return [float(words.count(word)) for word in vocabulary]

    q, k = np.array([counted(query)]), np.array([counted(title) for title in titles])  # (1, V), (N, V)
    _, cache = attention(q, k, np.eye(len(titles)), scale=1.0)
    return cache.scores[0], cache.weights[0]
