"""Activation patching: which activation carries the difference between two texts.

A model reads a text and predicts one token, and reads another text with the same number of tokens and
predicts another one. Then one activation, such as the vector of a token after a layer, is taken from the run
on the other text into the run on the text. The activations whose patch changes the prediction carry the
difference:

    exact:        score(activation of the other text) - score
    first order:  (activation of the other text - activation) · ∂score / ∂activation

The score is the logit of the first token minus that of the second. The exact effects need one forward pass
for each activation. The gradient gives all effects of first order by one backward pass (attribution
patching). The two disagree where the model is far from linear between the two activations, as where a softmax
is saturated.

Source: Meng et al. 2022, "Locating and editing factual associations in GPT", section 2 (activation patching);
Nanda 2023, "Attribution patching".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module, to_numpy
from npformer.errors import UserError
from npformer.generation.search import require_finite
from npformer.lenses.tables import columns_of_text
from npformer.lenses.taps import (
    InputTap,
    Output,
    Tap,
    is_attention,
    require_logits,
    score_gradient,
    stacks,
    sublayers,
    tap_layers,
    watchable,
)
from npformer.validation import require_choice

if TYPE_CHECKING:
    from npformer.plots import Figure

# what is patched, and where it is
ACTIVATIONS = {
    "layers": "the vector of a token after a layer",
    "attention": "the output of an attention at a token",
    "feed-forward": "the output of a feed-forward network at a token",
    "heads": "the output of a head at all tokens, before Wo",
}
BATCH = 8  # patched runs that are computed at a time


class Effects(NamedTuple):
    """The effects of all patches in one stack of layers: M places in each of N rows."""

    rows: list[str]  #: N, such as "layer 0"
    columns: list[str]  #: M tokens or heads
    exact: Array  #: (N, M) the score with the patch minus the score without it
    first_order: Array  #: (N, M) the estimate from the gradient


@dataclass(frozen=True, eq=False)
class Patching:
    """The effects of activations of another text on a prediction.

    Attributes:
        target: The token that is predicted for the text.
        versus: The token that is predicted for the other text, or None if the score is the logit of `target`.
        position: The position at which they are predicted.
        score: The score for the text: the logit of `target` minus that of `versus`.
        other_score: The score for the other text.
        effects: The effects by the name of the stack of layers: "encoder" and "decoder", or "" for the only
            one.
    """

    target: str
    versus: str | None
    position: int
    score: float
    other_score: float
    effects: dict[str, Effects]

    @property
    def explained(self) -> str:
        """The score in words, such as "logit of 'il' − logit of 'elle'"."""
        versus = "" if self.versus is None else f" − logit of {self.versus!r}"
        return f"logit of {self.target!r}{versus}"

    def table(self) -> str:
        """Return the exact effects as plain text, in percent of the difference between the two scores.

        If the scores are equal, the effects are in units of the score.
        """
        difference = self.other_score - self.score
        head = (
            f"{self.explained}: {self.score:+.3f} for the text, {self.other_score:+.3f} for the other one\n"
            f"effect of each patch in each layer{', in percent of the difference' if difference else ''}"
        )
        return "\n\n".join([head, *(_table(name, each, difference) for name, each in self.effects.items())])

    def plot(self) -> Figure:
        """Draw the exact effects, and beside them those of first order, as heat maps.

        Characters that no installed font has are written as code points, such as U+6211.

        Raises:
            UserError: If there are too many tokens or layers for a picture.
        """
        from npformer import plots  # matplotlib takes a second to load
        from npformer.plots.style import drawable, literal

        maps = [
            [
                (f"{name} {kind}".strip(), values, each.rows, drawable(each.columns))
                for kind, values in (("exact", each.exact), ("first order", each.first_order))
            ]
            for name, each in self.effects.items()
        ]
        return plots.patch_grid(maps, title=literal(drawable([self.explained])[0]))

    def __repr__(self) -> str:
        shapes = ", ".join(f"{name or 'layers'} {each.exact.shape}" for name, each in self.effects.items())
        return f"<patching of {self.explained}: {shapes}>"


class _Site(NamedTuple):
    """A place in a model where activations are patched."""

    row: str
    tap: Tap
    n_heads: int | None  # where the heads of an attention are patched, and None where tokens are


def patching_of(
    model: Any,
    ids: Sequence[Array],
    other_ids: Sequence[Array],
    output: Output,
    versus: int | None,
    *,
    tokens: Sequence[Sequence[str]],
    labels: tuple[str, str | None],
    what: str = "layers",
) -> Patching:
    """Return the effects of all activations of another text on an output of a model.

    Args:
        model: A GPT, a Bert or a Transformer.
        ids: The ids of each of its inputs for the text, of shape (1, T).
        other_ids: Those for the other text, of the same shapes.
        output: The token and the position of the logit.
        versus: The token whose logit is subtracted, or None.
        tokens: The labels of the tokens of each input.
        labels: The labels of the two tokens.
        what: One of ACTIVATIONS.

    Raises:
        UserError: If the texts differ in their numbers of tokens or are the same, if the model has no layers
            of this kind, if it cannot read the ids, if it has no such position or token, or if its logits
            are not finite.
    """
    require_choice("what", what, tuple(ACTIVATIONS))
    for own, other in zip(ids, other_ids, strict=True):
        if own.shape != other.shape:
            raise UserError(
                f"the texts have {own.shape[1]} and {other.shape[1]} tokens: patching takes activations from "
                "place to place, so give texts with the same number of tokens"
            )
    if all(map(np.array_equal, ids, other_ids)):
        raise UserError("both texts are the same tokens, so no patch has an effect: give two that differ")
    require_logits(model)
    watched = watchable(model)
    sites = {name: _sites(stack, what) for name, stack in stacks(watched).items()}
    every = [site for each in sites.values() for site in each]

    logits, _ = watched.forward(*other_ids)
    other_score, others = float(_score(logits, output, versus)[0]), [site.tap.y for site in every]
    logits, cache = watched.forward(*ids)
    score = float(_score(logits, output, versus)[0])
    watched.backward(score_gradient(logits, output, versus), cache)
    pairs = list(zip(every, others, strict=True))
    # all of them first, since each patched run leaves other activations in the taps
    estimates = [_first_order(site, other) for site, other in pairs]
    runs = (_patched(watched, ids, site, other) for site, other in pairs)
    exact = [np.concatenate([_score(each, output, versus) for each in run]) - score for run in runs]

    found, start = {}, 0
    for (name, of_stack), labels_of_stack in zip(sites.items(), tokens, strict=True):
        rows = slice(start, start := start + len(of_stack))
        n_heads = of_stack[0].n_heads
        columns = list(labels_of_stack) if n_heads is None else [f"head {head}" for head in range(n_heads)]
        names = [site.row for site in of_stack]
        found[name] = Effects(names, columns, np.array(exact[rows]), np.array(estimates[rows]))
    return Patching(*labels, output.position, score, other_score, found)


def _score(logits: Array, output: Output, versus: int | None) -> Array:
    """Return the logit of a token minus that of another one, on the host. Shapes: (B, T, V) -> (B,)."""
    row = to_numpy(logits[:, output.position])  # (B, V)
    score: Array = row[:, output.token] - (0 if versus is None else row[:, versus])
    require_finite(score)
    return score


def _sites(stack: Any, what: str) -> list[_Site]:
    """Set taps in all layers of a stack, and return them with their names."""
    if what == "layers":
        return [_Site(f"layer {layer}", tap, None) for layer, tap in enumerate(tap_layers(stack))]
    sites = []
    for index, layer in enumerate(stack.layers):
        for name, part in list(sublayers(layer)):
            if is_attention(part) == (what == "feed-forward"):
                continue
            row = f"layer {index}" + (" cross" if name == "cross" else "")
            if what == "heads" and part.output is not None:
                tap: Tap = InputTap(part.output)
                part.output = tap
            else:
                tap = Tap(part)
                setattr(layer, name, tap)
            sites.append(_Site(row, tap, part.n_heads if what == "heads" else None))
    return sites


def _by_place(array: Array, site: _Site) -> Array:
    """Return an activation with an axis for its M places. Shapes: (B, T, D) -> (B, M, ...).

    The places are the T tokens, or the H heads with their numbers at all tokens.
    """
    if site.n_heads is None:
        return array
    heads = array.reshape(*array.shape[:2], site.n_heads, -1)  # (B, T, H, L)
    return heads.swapaxes(1, 2)  # (B, H, T, L)


def _first_order(site: _Site, other: Array) -> Array:
    """Return the effects of first order of the patches at one site, of shape (M,)."""
    products = _by_place((other - site.tap.y) * site.tap.dy, site)[0]  # (M, ...)
    sums: Array = to_numpy(products.reshape(len(products), -1).sum(1))
    return sums


def _patched(watched: Any, ids: Sequence[Array], site: _Site, other: Array) -> Iterator[Array]:
    """Yield the logits (B, T, V) with each patch at one site: M runs in all, a few at a time."""
    xp = array_module(other)
    n_places = _by_place(other, site).shape[1]
    for start in range(0, n_places, BATCH):
        places = xp.arange(start, min(start + BATCH, n_places))
        runs = xp.arange(len(places))

        def patch(y: Array, places: Array = places, runs: Array = runs) -> Array:
            y = y.copy()
            _by_place(y, site)[runs, places] = _by_place(other, site)[0, places]  # a view of y
            return y

        site.tap.patch = patch
        logits, _ = watched.forward(*(np.repeat(each, len(places), 0) for each in ids))
        yield logits
    site.tap.patch = None


def _table(name: str, effects: Effects, difference: float) -> str:
    """Return the effects in one stack as text, with a line for each place and a column for each layer."""
    rows = [row.removeprefix("layer ") for row in effects.rows]
    if difference:
        texts = np.vectorize(lambda effect: f"{round(100 * effect / difference)}")(effects.exact)
    else:
        texts = np.vectorize(lambda effect: f"{effect:.3f}")(effects.exact)
    lines = [[label, *line] for label, line in zip(effects.columns, texts.T.tolist(), strict=True)]
    return columns_of_text([name or "layer", *rows], lines, right=True)
