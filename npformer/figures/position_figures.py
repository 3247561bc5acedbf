"""Position vectors: as cells, as curves and as heat maps, all from npformer.positions.sinusoids."""

import math

import numpy as np

from npformer.errors import UserError
from npformer.figures.entry import Drawing, figure
from npformer.figures.illustrated_example import SEED, STUDENT, embedded
from npformer.figures.illustrated_input import places_of
from npformer.plots import Grid, curves, value_map
from npformer.plots.board import Board
from npformer.plots.heat import colour_bar, signed_scale
from npformer.plots.layout import PAD, axes_at, new_figure
from npformer.plots.style import LABEL, drawing, number
from npformer.positions import sinusoids

WIDE = 6.8  # inches, of a heat map
IN_A_ROW = 4  # names in the legend of the curves
NAMES = {
    "halves": "sines, then cosines",
    "interleaved": "sines and cosines in turn",
    "jianshu": "S0's code: exponent 2i/d for every i",
}


@figure("F24", "Position vectors as cells", source="S2", data="FO")
def position_cells(
    studio, *, sentence: str = STUDENT, d_model: int = 4, layout: str = "halves", seed: int = SEED
) -> Drawing:
    """The position vector of each word over its word vector, to which it is added."""
    table = _table(len(sentence.split()), d_model, layout)
    words, x, _, _ = embedded(sentence, d_model=d_model, positions=layout, seed=seed)
    with drawing(words):
        board = Board([table, x], write=short)
        places = places_of(board, words, d_model)
        edge = places[0] - d_model * board.cell / 2 - 0.45
        board.text(edge, 0, "positional\nencoding", ha="right", va="center")
        board.text(edge, -0.95, "embedding", ha="right")
        for i, (place, word) in enumerate(zip(places, words, strict=True)):
            board.grid_at(
                Grid(table[i], f"$t_{{{i + 1}}}$", "position", numbers=True), place, 0, label="left"
            )
            board.text(place, -0.475, "+", size=16)
            board.grid_at(Grid(x[i], f"$x_{{{i + 1}}}$", "x", numbers=True), place, -0.95, label="left")
            board.text(place, -1.3, word, size=12, va="top", parse_math=False)
            board.text(place, 0.24, f"position {i}", va="bottom", color="#767676")
        picture = board.cut()
    caption = (
        f"Any word at position {len(words) - 1} gets t{len(words)} = {board.row(table[-1])} "
        f"({NAMES[layout]}). The first sine and cosine turn by one radian from word to word, the last "
        "hardly at all: fast and slow hands of one clock."
    )
    return Drawing(picture, caption)


@figure("F25", "Dimensions 4 to 7 over positions", source="S2", data="FO")
def position_curves(
    studio,
    *,
    dims: tuple[int, ...] = (4, 5, 6, 7),
    length: int = 100,
    d_model: int = 20,
    layout: str = "interleaved",
) -> Drawing:
    """Some columns of the table of position vectors as curves."""
    if not dims or not all(isinstance(d, int) and 0 <= d < d_model for d in dims):
        raise UserError(f"dims is {dims!r}: name dimensions from 0 to {d_model - 1}")
    table = _table(length, d_model, layout)
    picture = curves(table[:, list(dims)].T, xlabel="position", ylabel="value")
    ax = picture.axes[0]
    names = [f"dim {dim}" for dim in dims]
    with drawing(names):
        above = 0.35 * -(-len(dims) // IN_A_ROW)
        ax.set_ylim(-1.05, 1.05 + above)  # above the curves, room for the legend
        ax.set_yticks([-1, -0.5, 0, 0.5, 1], ["−1", "−0.5", "0", "0.5", "1"])
        ax.legend(ax.lines, names, loc="upper center", ncols=IN_A_ROW, handlelength=2.5, borderaxespad=0.2)
    caption = f"Each dimension is a sine or cosine of its own period: {_periods(dims, d_model, layout)}. "
    if layout == "interleaved":
        caption += "Dimensions 2i and 2i + 1 share one, a quarter of it apart, and all stay within ±1."
    else:
        caption += "All stay within ±1, however long the sentence."
    return Drawing(picture, caption)


def period(dim: int, d_model: int, layout: str) -> float:
    """Positions until a dimension repeats: 2π 10000^e, with the exponent of the layout."""
    half = d_model // 2
    exponent = {
        "interleaved": (dim - dim % 2) / d_model,
        "halves": dim % max(1, half) / max(1, half - 1),
        "jianshu": 2 * dim / d_model,
    }[layout]
    return 2 * math.pi * 10000**exponent


def _periods(dims, d_model, layout) -> str:
    """ "39.64 positions in dims 4 and 5, 99.58 in dims 6 and 7"."""
    groups: dict[str, list[int]] = {}
    for dim in dims:
        groups.setdefault(f"{period(dim, d_model, layout):.2f}", []).append(dim)
    parts = []
    for length, members in groups.items():
        names = " and ".join(map(str, members))
        parts.append(f"{length} positions in dim{'s' if len(members) > 1 else ''} {names}")
    return ", ".join(parts)


@figure("F26", "Position vectors as heat maps", source="S2", data="FO")
def position_maps(
    studio,
    *,
    upper: tuple[int, int, str] = (20, 512, "halves"),
    lower: tuple[int, int, str] = (10, 64, "interleaved"),
) -> Drawing:
    """Two tables, each (positions, dimensions, layout): a row is the vector of one position."""
    tables = [_table(*which) for which in (upper, lower)]
    heights = [float(np.clip(0.13 * len(table), 1.3, 4)) for table in tables]
    figure = new_figure(WIDE + 1.9, sum(heights) + 1.65, "these two tables")
    top = sum(heights) + 1.65
    for (length, d_model, layout), table, high in zip((upper, lower), tables, heights, strict=True):
        bottom = top - 0.75 - high
        ax = axes_at(figure, 0.75, bottom, WIDE, high)
        value_map(table, xlabel="embedding dimension", ylabel="token position", ax=ax)
        with drawing():
            ax.set_title(f"{length} × {d_model}: {NAMES[layout]}", size=LABEL, loc="left", weight="bold")
            beside = axes_at(figure, 0.75 + WIDE + PAD, bottom, 0.16, high)
            colour_bar(figure, beside, ax.images[0], signed_scale(table, "value"), high)
        top = bottom - 0.1
    pictured = " and ".join(
        f"{length} × {d_model} ({NAMES[layout]})" for length, d_model, layout in (upper, lower)
    )
    caption = (
        f"Two tables of position vectors, {pictured}: each row belongs to one position and is added to the "
        "word there. The first sines and cosines change from word to word, and the last so slowly that "
        "their columns hardly change at all."
    )
    return Drawing(figure, caption)


def _table(length, d_model, layout):
    """The table of sinusoids. Errors: UserError for sizes that cannot be."""
    for name, value in (("the number of positions", length), ("d_model", d_model)):
        if not isinstance(value, int) or value < 1:
            raise UserError(f"{name} is {value!r}: give a whole number, 1 or more")
    return sinusoids(length, d_model, layout)


def short(value: float) -> str:
    """0, 1, .84 or .0001: two decimals, and for what two would hide as many as show it."""
    if value in (0, 1, -1) or abs(abs(value) - 1) < 5e-4:
        return f"{round(value)}".replace("-", "−")
    return number(value, 4 if abs(value) < 5e-3 else 2)
