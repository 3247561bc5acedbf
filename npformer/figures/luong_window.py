"""The predicted position of local attention, and the Gaussian round it (F57)."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from npformer.attention import LocalPredictive
from npformer.figures.entry import Drawing, figure
from npformer.figures.luong_example import SEED, SOURCE, TARGET, Translation, translation
from npformer.functional import gaussian_window
from npformer.plots import Figure, curves
from npformer.plots.layout import axes_at, new_figure
from npformer.plots.palette import COLOURS
from npformer.plots.palette import edge as edge_of
from npformer.plots.style import FORMULA, TEXT, drawing, number, widest

MARGIN, SIDES = 0.75, 1.65  # inches at the left of the axes, and at both sides


@figure("F57", "The predicted position and its Gaussian", source="S4", data="FW")
def predicted_position(
    studio, *, reach: float = 2, source: str = SOURCE, target: str = TARGET, seed: int = SEED
) -> Drawing:
    """Where local-p looks: the Gaussian over the source, its factor at each word, at D / 2 and at D."""
    seen = translation(lambda s, rng: LocalPredictive(s, reach=reach, rng=rng), source, target, seed=seed)
    half, edge = gaussian_curve([seen.position + reach / 2, seen.position + reach], seen.position, reach)
    return Drawing(
        _picture(seen),
        f"The decoder's state after “{seen.target[-1]}” says how far into the source to look: "
        f"{number(_share(seen))} of its {len(seen.source)} places. With σ = D / 2 = {reach / 2:g} the "
        f"Gaussian leaves {number(half, 4)} of a weight at a distance of D / 2, and {number(edge, 4)} at D, "
        "where the window ends. Dots: the words inside.",
    )


def _share(seen: Translation) -> float:
    """The predicted position as a share of the source."""
    return float(seen.cache.predicted.share[0, -1])


def gaussian_curve(places, p: float, reach: float) -> np.ndarray:
    """What gaussian_window leaves of a weight 1 at places that need not be words.

    Shapes: places (M,) -> (M,).
    """
    # a row of one word, at 0, for each place: p is moved instead of the word
    shifted = p - np.asarray(places)
    return gaussian_window(np.ones((len(shifted), 1)), shifted, reach / 2)[0][:, 0]


def _picture(seen: Translation) -> Figure:
    """The curve over the source, the window, and what is left at the words and at two distances."""
    p, reach, count = seen.position, seen.attention.reach, len(seen.source)
    low, high = min(-0.5, p - 1.4 * reach), max(count - 0.5, p + 1.4 * reach)
    with drawing(seen.source):
        wide = max(5.6, (high - low) * (widest(seen.source, TEXT) + 0.1))
        figure = new_figure(wide + SIDES, 4.5, f"a source of {count} words")
        ax = axes_at(figure, MARGIN, 0.75, wide, 3.1)
        places = np.linspace(low, high, 400)
        curves(
            gaussian_curve(places, p, reach), places, ax=ax, xlabel="place s in the source", ylabel="factor"
        )
        ax.axvspan(p - reach, p + reach, color=COLOURS["position"], alpha=0.5, linewidth=0, zorder=0)
        _words(ax, seen)
        _distances(ax, p, reach)
        ax.set_xticks(range(count), [f"{s}\n{word}" for s, word in enumerate(seen.source)], fontsize=TEXT)
        ax.set(ylim=(0, 1.08), yticks=[0, 0.5, 1])
        formula = r"$p_t = S \cdot sigmoid(v_p^T\,\tanh(W_p h_t))$"
        result = rf"$= {count} \cdot {_share(seen):.3f} = {p:.2f}$"
        middle = (MARGIN + wide / 2) / (wide + SIDES)
        figure.text(middle, 4.2 / 4.5, f"{formula} {result}", size=FORMULA, ha="center", va="center")
        return figure


def _words(ax: Axes, seen: Translation) -> None:
    """A dot for each word: its factor, where the window holds it."""
    at = np.flatnonzero(seen.weights > 0)
    factors = seen.cache.gaussian.bell[0, -1, at]
    ax.vlines(at, 0, factors, color=COLOURS["r"], linewidth=1.6, zorder=2.5)
    ax.plot(at, factors, "o", color=edge_of("r"), markersize=6, zorder=3)


def _distances(ax: Axes, p: float, reach: float) -> None:
    """p itself, and the factors at D / 2 and at D behind it."""
    ax.plot([p, p], [0, 1], color=COLOURS["highlight"], linestyle="--", linewidth=1.4)
    for share, name in ((0.5, "D / 2"), (1.0, "D")):
        place = p + share * reach
        (factor,) = gaussian_curve([place], p, reach)
        ax.plot([p, place], [factor, factor], color=COLOURS["highlight"], linewidth=1.4)
        ax.plot([place], [factor], "D", color=COLOURS["highlight"], markersize=5, zorder=4)
        style: dict[str, Any] = {"textcoords": "offset points", "size": TEXT, "va": "bottom"}
        ax.annotate(f"{number(factor, 4)} at {name}", (place, factor), (9, 4), **style)
