"""The attention of any model, given as arrays: all its heads, one head, lines between tokens, or rollout."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from npformer.backend import Array, to_numpy
from npformer.errors import UserError, quantity, unknown
from npformer.functional.model_attention import layers_of, require_weights
from npformer.functional.rollout import attention_rollout
from npformer.plots.attention_lines import PER_QUERY, line_row, word_lines
from npformer.plots.heat_maps import (
    FINEST,
    TITLE_SPACE,
    Names,
    draw_grid,
    grid_heats,
    grid_plan,
    heat_row,
    make_heat_map,
    panel_cells,
    thinned,
)
from npformer.plots.layout import MAX_SIDE, mask_array, words
from npformer.plots.style import SMALL, drawable, drawing, text_size
from npformer.validation import require_count, require_index

VIEWS = ("maps", "lines", "rollout")
MOST_CELLS = 512  # cells a side of one heat map; more queries or keys are pooled
LONGEST_LABEL = 1.5  # inches; longer labels are cut
MOST_LINES = 100  # the lines of several heads that can be told apart; more are drawn for more than 50 queries
LINES_MARGIN = 0.9  # inches, what a picture of lines has above and below its tokens, besides the title


@dataclass(frozen=True)
class Drawn:
    """The weights that are drawn, with their labels, and what the title says about them."""

    values: list[Array]  # (H, T, S) for each layer
    mask: Array  # bool (T, S), False is dark grey
    queries: list[str] | None  # None: numbered
    keys: list[str] | None
    names: Names  # the numbers of the layers and heads
    title: str | None = None  # None: the default of the view
    notes: tuple[str, ...] = ()

    @property
    def is_one(self) -> bool:
        """True for one head of one layer."""
        return len(self.values) == len(self.values[0]) == 1

    @property
    def shape(self) -> tuple[int, int]:
        """The number of queries and that of keys."""
        n_queries, n_keys = self.values[0].shape[-2:]
        return n_queries, n_keys

    def noted(self, default: str, *notes: str) -> str:
        """Return the title, or its default, with all notes, those of the arguments last, on a second line."""
        said = "; ".join((*self.notes, *(note for note in notes if note)))
        title = default if self.title is None else self.title
        return "\n".join(line for line in (title, said) if line)


def attention(
    weights: Any,
    queries: Sequence[str] | None = None,
    keys: Sequence[str] | None = None,
    *,
    inputs: Any = None,
    only: str | None = None,
    view: str = "maps",
    layer: int | None = None,
    head: int | None = None,
    query: int | Sequence[int] | None = None,
    top_k: int | None = None,
    example: int | None = None,
    mask: ArrayLike | None = None,
    normalized: bool = True,
    title: str | None = None,
) -> Figure:
    """Draw the attention weights of a whole model, or of a part of it.

    Everything fits in one picture that can be read. Of many tokens every n-th is labelled, or none in the
    small maps of many heads. Where there are more tokens than cells can be told apart, a cell shows a block
    of tokens: the weights of its keys are added, and the mean over its queries is taken, so that each row
    still adds up to 1. A line below the title says what was done.

    Args:
        weights: A tuple with the weights of each layer, (B, H, T, S), as models of Hugging Face return it
            with output_attentions=True, or one array (L, B, H, T, S), (B, H, T, S), (H, T, S) or (T, S).
            The arrays belong to NumPy, CuPy or PyTorch, on any device and of any dtype of real numbers. Or a
            module of PyTorch, such as a model of Hugging Face in any setting, which runs once
            (npformer.interop.torch.attention_maps).
        queries: T labels, or None to number the queries.
        keys: S labels. The default is the labels of the queries if T = S.
        inputs: What a module is called with: a mapping, such as a tokenizer returns it, a tuple, or one
            tensor.
        only: A part of the names of attentions, such as "cross_attn" or "encoder.": those of a module, or of
            a dict that attention_maps returned. The default is all.
        view: "maps" draws a heat map for each head of each layer, "lines" the lines between the tokens of one
            layer, and "rollout" attention rollout (Abnar and Zuidema 2020) after one layer.
        layer: Draw this layer only. The default is all layers in "maps" and the last one in "rollout".
        head: Draw this head only. A layer and a head together are drawn as one large map.
        query: The index of a query, or several indices. Only these queries are drawn.
        top_k: Draw only the k largest weights of each query and head. With `query`, the keys that have none
            of them are left out.
        example: The index of the example in the batch. It may be left out if there is only one.
        mask: Bool, broadcastable to (T, S), True where a query may attend.
        normalized: Whether to check that every row adds up to 1.
        title: The first line of the title. The default names what is drawn.

    Returns:
        The figure. npformer.plots.save writes it as PNG, SVG or PDF.

    Raises:
        UserError: If an argument is wrong, or there are too many layers, heads or tokens for a picture.

    Example:
        >>> attention(model, tokens, inputs=tokenizer(text, return_tensors="pt"), layer=5, head=2)
        >>> output = model(**inputs, output_attentions=True)  # loaded with attn_implementation="eager"
        >>> attention(output.attentions, tokens, layer=5, head=2)
    """
    if view not in VIEWS:
        raise unknown("view", str(view), VIEWS)
    layers = layers_of(_computed(weights, inputs), example=example, only=only)
    n_queries, n_keys = layers[0].shape[-2:]
    if queries is not None and keys is None:
        if n_queries != n_keys:
            raise UserError(f"there are {n_queries} queries and {n_keys} keys: give keys= as well")
        keys = queries
    labels = (
        None if queries is None else words(queries, n_queries, "queries"),
        None if keys is None else words(keys, n_keys, "keys"),
    )
    if view == "rollout":
        drawn = _rollout(layers, labels, layer, head, mask, normalized)
    else:
        drawn = _chosen(layers, labels, layer, head, mask, normalized)
    if title is not None:
        drawn = replace(drawn, title=title)
    drawn = _largest(_of_queries(drawn, query), top_k, leave_out=query is not None)
    drawn = _readable(drawn)
    with drawing(drawn.title, drawn.queries, drawn.keys):
        if view == "lines":
            return _lines(drawn, top_k)
        return _one_map(drawn) if drawn.is_one else _grid(drawn)


def _computed(weights: Any, inputs: Any) -> Any:
    """Return the weights, or those that a module of PyTorch computes for its inputs."""
    torch = sys.modules.get("torch")  # whoever has a module has imported it
    if torch is None or not isinstance(weights, torch.nn.Module):
        if inputs is not None:
            raise UserError("inputs= belong to a module of PyTorch, and weights is none: leave them out")
        return weights
    from npformer.interop.torch import attention_maps

    if inputs is None:
        raise UserError(
            f"weights is a {type(weights).__name__}, a module of PyTorch: give the inputs= that it is called "
            'with, such as tokenizer(text, return_tensors="pt")'
        )
    if isinstance(inputs, Mapping):
        return attention_maps(weights, **inputs)
    return attention_maps(weights, *(inputs if isinstance(inputs, tuple) else (inputs,)))


# What is drawn.

Labels = tuple[list[str] | None, list[str] | None]  # of the queries, and of the keys


def _chosen(
    layers: list[Array],
    labels: Labels,
    layer: int | None,
    head: int | None,
    mask: ArrayLike | None,
    normalized: bool,
) -> Drawn:
    """Return the chosen layers and heads, checked, with weights of 0 where the mask is False."""
    n_layers, n_heads = len(layers), len(layers[0])
    numbers = range(n_layers) if layer is None else [require_index("layer", layer, n_layers)]
    heads = range(n_heads) if head is None else [require_index("head", head, n_heads)]
    shown = mask_array(mask, layers[0].shape[-2:])
    values = []
    for number in numbers:
        masked = _masked(to_numpy(layers[number]), shown)
        require_weights(masked, f"layer {number}", normalized=normalized)
        values.append(masked[list(heads)] if head is not None else masked)
    return Drawn(values, shown, *labels, Names(numbers, heads))


def _masked(layer: Array, mask: Array) -> Array:
    """Return weights that are 0 where the mask is False. Shapes: layer (H, T, S), mask (T, S)."""
    return layer if mask.all() else np.where(mask, layer, np.zeros_like(layer[:1, :1, :1]))


def _rollout(
    layers: list[Array],
    labels: Labels,
    layer: int | None,
    head: int | None,
    mask: ArrayLike | None,
    normalized: bool,
) -> Drawn:
    """Return the rollout after one layer as the weights of a single head."""
    if head is not None:
        raise UserError("rollout takes the mean over the heads: leave out head")
    if not normalized:
        raise UserError("rollout needs rows that add up to 1: leave out normalized=False")
    last = len(layers) - 1 if layer is None else require_index("layer", layer, len(layers))
    shown = mask_array(mask, layers[0].shape[-2:])
    masked = [_masked(to_numpy(each), shown) for each in layers[: last + 1]]
    result = attention_rollout(masked)[-1]  # (T, T)
    title = f"attention rollout, layers 0 to {last}" if last else "attention rollout, layer 0"
    return Drawn([result[None]], np.ones_like(shown), *labels, Names([last], [0]), title)


def _of_queries(drawn: Drawn, query: int | Sequence[int] | None) -> Drawn:
    """Return the chosen queries alone. Their labels say where they stand among all."""
    if query is None:
        return drawn
    count = drawn.shape[0]
    given = [query] if np.ndim(query) == 0 else np.asarray(query).tolist()
    rows = [require_index("query", one, count) for one in given]
    if not rows:
        raise UserError("query is an empty list: give the index of at least one query")
    return replace(
        drawn,
        values=[each[:, rows] for each in drawn.values],
        mask=drawn.mask[rows],
        queries=_numbered(drawn.queries, rows),
        notes=(*drawn.notes, f"{len(rows)} of {quantity(count, 'query', 'queries')}"),
    )


def _numbered(labels: list[str] | None, indices: Sequence[int]) -> list[str]:
    """Return the labels at some indices, each with its index, since the labels around it are not drawn."""
    return [str(i) if labels is None else f"{labels[i]} [{i}]" for i in indices]


def top_k_mask(weights: np.ndarray, k: int) -> np.ndarray:
    """Return True at the k largest weights of each query; of equal weights, those of the first keys.

    Shapes: weights (..., T, S) -> bool (..., T, S).
    """
    order = np.argsort(-weights, axis=-1, kind="stable")[..., :k]
    largest = np.zeros(weights.shape, bool)
    np.put_along_axis(largest, order, True, axis=-1)
    return largest


def _largest(drawn: Drawn, top_k: int | None, *, leave_out: bool) -> Drawn:
    """Return the largest weights of each query and head, with weights of 0 elsewhere.

    `leave_out` says whether keys without any of these weights are left out.
    """
    if top_k is None:
        return drawn
    count = drawn.shape[1]
    require_count("top_k", top_k)
    if top_k > count:
        raise UserError(f"top_k is {top_k}: give a number from 1 to {count}, the number of keys")
    values = [np.where(top_k_mask(each, top_k), each, 0) for each in drawn.values]
    note = f"only the {quantity(top_k, 'largest weight')} of each query and head"
    drawn = replace(drawn, values=values, notes=(*drawn.notes, note))
    if not leave_out:
        return drawn
    kept = np.flatnonzero(np.any([each.any((0, 1)) for each in values], axis=0))  # (S',)
    kept = kept if len(kept) else np.arange(1)  # the queries may be fully masked
    return replace(
        drawn,
        values=[each[..., kept] for each in values],
        mask=drawn.mask[:, kept],
        keys=_numbered(drawn.keys, kept.tolist()),
        notes=(*drawn.notes, f"{len(kept)} of {quantity(count, 'key')}"),
    )


# Pooling.


def pooled(values: Array, block: tuple[int, int]) -> Array:
    """Pool weights so that rows that add up to 1 still do: the sum over keys and the mean over queries.

    `block` has the numbers of queries and of keys in a block; the last blocks may be smaller.
    Shapes: (..., T, S) -> (..., ⌈T / block[0]⌉, ⌈S / block[1]⌉), float64.
    """
    n_queries, n_keys = values.shape[-2:]
    rows, columns = np.arange(0, n_queries, block[0]), np.arange(0, n_keys, block[1])
    sums = np.add.reduceat(values, columns, axis=-1, dtype=np.float64)
    sums = np.add.reduceat(sums, rows, axis=-2)
    result: Array = sums / np.diff(rows, append=n_queries)[:, None]
    return result


def _pooled_to(drawn: Drawn, cells: tuple[int, int]) -> Drawn:
    """Return at most this many cells, down and across; a block is labelled with its first token."""
    (n_queries, n_keys), (down, across) = drawn.shape, cells
    block = -(-n_queries // down), -(-n_keys // across)
    if n_queries == n_keys:
        block = max(block), max(block)  # so that the map of self-attention stays square
    if block == (1, 1):
        return drawn
    parts = [f"sum over {block[1]} keys"] if block[1] > 1 else []
    parts += [f"mean over {block[0]} queries"] if block[0] > 1 else []
    return replace(
        drawn,
        values=[pooled(each, block) for each in drawn.values],
        mask=pooled(drawn.mask, block) > 0,
        queries=words(drawn.queries, n_queries, "queries")[:: block[0]],
        keys=words(drawn.keys, n_keys, "keys")[:: block[1]],
        notes=(*drawn.notes, f"each cell: {', '.join(parts)}"),
    )


# The views.


def _grid(drawn: Drawn) -> Figure:
    """Draw a small heat map for each head of each layer."""
    labelled = drawn.queries is not None or drawn.keys is not None
    n_layers, n_heads = len(drawn.values), len(drawn.values[0])
    last = max(drawn.names.layers)
    small = _pooled_to(drawn, panel_cells(n_layers, n_heads, drawn.shape, last))
    heats = grid_heats(np.stack(small.values).astype(np.float64), small.queries, small.keys, small.mask)
    plan = grid_plan(heats, compact=True, last=last)
    left_out = "no labels: layer= and head= draw one map with labels" if labelled and not plan.words else ""
    return draw_grid(heats, plan, small.noted("", left_out) or None, names=small.names)


def _one_map(drawn: Drawn) -> Figure:
    """Draw the heat map of one head, with as many labels as can be read."""
    drawn = _pooled_to(drawn, (MOST_CELLS, MOST_CELLS))
    heat = thinned(make_heat_map(drawn.values[0][0], drawn.queries, drawn.keys, drawn.mask, legend=True))
    default = f"layer {drawn.names.layers[0]}, head {drawn.names.heads[0]}"
    return heat_row([heat], drawn.noted(default, _thinning(max(heat.every))))


def _lines(drawn: Drawn, top_k: int | None) -> Figure:
    """Draw the lines of all heads of one layer."""
    if len(drawn.values) > 1:
        raise UserError(f"lines are drawn for one layer: choose it with layer=0 .. {len(drawn.values) - 1}")
    count, every = max(drawn.shape), 1
    space = MAX_SIDE - TITLE_SPACE - LINES_MARGIN
    while count * line_row(count, every) > space:
        every += 1
    if line_row(count, every) < FINEST:
        raise UserError(
            f"lines between {count:,} tokens cannot be told apart: choose queries with query= and top_k="
        )
    layers, heads = drawn.names
    default = f"layer {layers[0]}" + (f", head {heads[0]}" if len(heads) == 1 else "")
    most = max(MOST_LINES, PER_QUERY * drawn.shape[0]) if len(heads) > 1 else None
    if top_k is not None:
        most = drawn.values[0].size  # all lines that were chosen
    return word_lines(
        drawn.values[0],
        words(drawn.queries, drawn.shape[0], "queries"),
        words(drawn.keys, drawn.shape[1], "keys"),
        heads=heads,
        most=most,
        every=every,
        title=drawn.noted(default, "weights below .01 are not drawn", _thinning(every)),
    )


def _thinning(every: int) -> str:
    return f"one label in {every} is written" if every > 1 else ""


def _readable(drawn: Drawn) -> Drawn:
    """Return the same with labels that can be drawn and are not too long, and notes on what was changed."""
    given = [*(drawn.queries or ()), *(drawn.keys or ())]
    shown = dict(zip(given, drawable(given), strict=True))
    with drawing(list(shown.values())):
        short = {label: _cut(text) for label, text in shown.items()}
    notes = drawn.notes
    if any(label != text for label, text in shown.items()):
        notes += ("characters that no installed font has are written as U+...",)
    if any(shown[label] != text for label, text in short.items()):
        notes += ("long labels are cut",)
    queries, keys = (
        None if labels is None else [short[label] for label in labels]
        for labels in (drawn.queries, drawn.keys)
    )
    return replace(drawn, queries=queries, keys=keys, notes=notes)


def _cut(label: str) -> str:
    """Return a label that is at most LONGEST_LABEL wide, with "…" at its end if it was longer."""
    text = label
    while text_size(text, SMALL)[0] > LONGEST_LABEL:
        label = label[: min(len(label) - 1, 60)]
        text = label + "…"
    return text
