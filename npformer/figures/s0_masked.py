"""The scores of a sentence with itself, and what each mask does to them: F13 to F16."""

from dataclasses import replace

import numpy as np

from npformer.figures.entry import Drawing, figure
from npformer.figures.s0_example import LENGTH, SEED, SENTENCE, Example, example
from npformer.figures.s0_sheet import listed
from npformer.functional import Masking, attention, mask_scores
from npformer.plots import Figure, score_map
from npformer.plots.heat import MASKED, HeatMap, draw_at, make, room, signed_scale
from npformer.plots.layout import PAD, new_figure
from npformer.plots.style import LABEL, drawing

# the document's number at masked keys; with its prose's query mask, before the softmax
BEFORE = Masking(float(-(2**32) + 1), "replace", "before")


@figure("F13", "The scores: T × T, a row is a query", source="S0", data="FW")
def raw_scores(
    studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """Q Kᵀ / √d_k of a padded sentence, before any mask."""
    seen = example(sentence, length=length, d_model=d_model, seed=seed)
    scores = seen.look()[1].attention.scores[0, 0]
    best = int(scores[0].argmax())
    return Drawing(
        score_map(scores, seen.words, seen.words, numbers=True),
        f"Q Kᵀ / √{d_model}, {len(scores)} × {len(scores)}. A row is a query: the first says how alike "
        f"“{seen.words[0]}” is to every key, most to “{seen.words[best]}” ({listed(scores[0, best])}). "
        "Padding has scores like any word, 0 here, and would get weight.",
    )


@figure("F14", "The scores after the key mask", source="S0", data="FW")
def key_mask(
    studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """The same scores with the columns of padding masked."""
    seen = example(sentence, length=length, d_model=d_model, seed=seed)
    scores, mask = _masked(seen, causal=False)
    return Drawing(
        score_map(scores, seen.words, seen.words, mask=mask, numbers=True),
        f"Dark grey: no query may look at the {seen.padding}, so {int((~mask).sum())} scores of "
        f"{mask.size}, whole columns, become −∞. The others are those of F13.",
    )


@figure("F15", "The scores after the causal mask as well", source="S0", data="FW")
def causal_scores(
    studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """The same scores with everything after the query masked too, as the decoder needs it."""
    seen = example(sentence, length=length, d_model=d_model, seed=seed)
    scores, mask = _masked(seen, causal=True)
    last = seen.words[min(2, len(seen.words) - 1)]
    return Drawing(
        score_map(scores, seen.words, seen.words, mask=mask, numbers=True),
        "In the decoder a query must not see what comes after it either: the strict upper triangle is dark "
        f"grey too, and {int(mask.sum())} scores of {mask.size} are left. “{last}” still sees itself: the "
        "diagonal stays.",
    )


def _masked(seen: Example, *, causal: bool):
    """The scores, and where queries may look, both (T, T), from the cache of a forward pass."""
    cache = seen.look(keys=True, causal=causal)[1].attention
    scores = cache.scores[0, 0]
    return scores, np.broadcast_to(cache.masking.mask[0, 0], scores.shape)


@figure("F16", "The query mask, in the encoder and in the decoder", source="S0", data="FW")
def query_mask(
    studio, *, sentence: str = SENTENCE, length: int = LENGTH, d_model: int = 6, seed: int = SEED
) -> Drawing:
    """Encoder above, decoder below: the masked scores, their softmax, and the mask after the softmax."""
    seen = example(sentence, length=length, d_model=d_model, seed=seed)
    with drawing(seen.words):
        rows = [_panels(seen, causal=causal) for causal in (False, True)]
        picture = _sheet(rows)
    uniform = 1 / len(seen.words)
    return Drawing(
        picture,
        f"Encoder above, decoder below, {seen.padding}. Setting their rows to 0 before the softmax (left, "
        f"the document's text) makes their weights 1/{len(seen.words)} = {uniform:.2f} (middle), padding "
        "included. Its code, and npformer, put the query mask after the softmax: rows of 0 (right).",
    )


def _panels(seen: Example, *, causal: bool) -> list[HeatMap]:
    """Scores with padding rows 0, their softmax, and the weights of npformer."""
    _, after = seen.look(keys=True, causal=causal, queries=True)
    q, k, v = after.attention[:3]
    mask, queries = seen.mask(causal=causal), seen.query_mask
    _, before = attention(q, k, v, mask, query_mask=queries, masking=BEFORE)
    scores, _ = mask_scores(before.scores, mask, queries, BEFORE)
    seen_keys = np.broadcast_to(mask, scores.shape)[0, 0]  # (T, T)
    # a padding row was set to 0 throughout, masked keys included: nothing in it is grey
    rewritten = seen_keys | np.broadcast_to(~queries, scores.shape)[0, 0]
    heats = [
        make(scores[0, 0], seen.words, seen.words, rewritten, name="scores"),
        make(before.weights[0, 0], seen.words, seen.words, rewritten),
        make(after.attention.weights[0, 0], seen.words, seen.words, seen_keys),
    ]
    heats[0].scale = signed_scale(heats[0].values[rewritten], "score")
    for heat in heats[1:]:
        heat.scale = heat.scale._replace(high=1.0)  # one colour for one weight in all four
    return [_plain(heat, first=index == 0) for index, heat in enumerate(heats)]


def _plain(heat: HeatMap, *, first: bool) -> HeatMap:
    """With numbers; words of the queries beside the first of a row alone."""
    heat = replace(heat, numbers=True)
    if first:
        return heat
    return replace(heat, queries=[""] * len(heat.values), axis_labels=("", "key"))


def _sheet(rows: list[list[HeatMap]]) -> Figure:
    """The panels of the encoder over those of the decoder, with their names."""
    titles = ("scores, padding rows set to 0", "softmax of these", "query mask after the softmax")
    for heat, title in zip(rows[0], titles, strict=True):
        heat.title = title
    rows[1][0].legend = (MASKED,)
    cell = max(heat.least_cell for row in rows for heat in row)
    rooms = [[room(heat, cell, bar=False) for heat in row] for row in rows]
    side, gap = 0.3, 2 * PAD  # for "encoder" and "decoder"
    width = side + sum(r.total[0] for r in rooms[0]) + gap * 2 + 2 * PAD
    heights = [max(r.total[1] for r in row) for row in rooms]
    figure = new_figure(width, sum(heights) + gap + 2 * PAD, "six matrices")
    top = sum(heights) + gap + PAD
    for row, row_rooms, height, name in zip(rows, rooms, heights, ("encoder", "decoder"), strict=True):
        left = PAD + side
        for heat, r in zip(row, row_rooms, strict=True):
            draw_at(figure, heat, left, top, cell=cell, bar=False)
            left += r.total[0] + gap
        middle = top - row_rooms[0].top - row_rooms[0].height / 2
        place = ((PAD + side / 2) / width, middle / figure.get_size_inches()[1])
        figure.text(*place, name, size=LABEL, weight="bold", rotation=90, ha="center", va="center")
        top -= height + gap
    return figure
