"""Direct logit attribution: what each part of a model adds to the logit of a token.

The vector from which the logits are computed is a sum: of the embedding, and of what every head, every
feed-forward network and every bias added. The output matrix is linear, and so is a norm, apart from its bias,
if its factor, one over the deviation of each row, stays as it is. So the logit of a token is a sum, too, with
a term for each part:

    logit = Σ_parts (output of the part) · (gradient of the logit for it)

where the gradient follows the residual connections and the norms alone, and no other layer. It is computed by
the backward pass of the model itself, in a copy in which layers pass no gradient to their inputs (`Cut`) and
norms keep their statistics (`FixedNorm`). This tells what a part adds directly, and nothing about what later
layers make of it.

Source: Elhage et al. 2021, "A mathematical framework for Transformer circuits".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from npformer.backend import Array, array_module, to_numpy
from npformer.errors import UserError
from npformer.escaping import token_label
from npformer.generation.search import require_finite
from npformer.lenses.tables import bar
from npformer.lenses.taps import (
    InputTap,
    Output,
    Tap,
    is_attention,
    last_stack,
    require_logits,
    score_gradient,
    sublayers,
    watchable,
)
from npformer.models.bert import Bert
from npformer.models.gpt import GPT
from npformer.models.transformer.sequences import Postprocess, Preprocess
from npformer.nn import AddNorm, LayerNorm, MixtureOfExperts, RMSNorm
from npformer.nn.module import Module
from npformer.validation import require_count

if TYPE_CHECKING:
    from npformer.plots import Figure

NORMS = (LayerNorm, RMSNorm, AddNorm)


class Part(NamedTuple):
    """A part of a model, and what it adds to a logit."""

    layer: int | None  # None for the embedding, the last norm and the output
    name: str  # such as "embedding", "head 3", "cross head 0", "feed-forward" or "biases"
    value: float

    @property
    def label(self) -> str:
        """The name with its layer, such as "layer 1 head 3"."""
        return self.name if self.layer is None else f"layer {self.layer} {self.name}".rstrip()


@dataclass(frozen=True, eq=False)
class LogitAttribution:
    """The terms that the parts of a model add to the logit of a token, or to the difference of two logits.

    Attributes:
        explained: The token, or "A − B" for a difference.
        position: The position at which it is predicted.
        logit: The logit, or the difference.
        parts: The parts, from the embedding to the output.
        total: What the parts add up to, computed without them. It is the logit, but not for a BERT, whose
            prediction head is not linear: there it is the vector that this head reads times the gradient of
            the logit for it.
    """

    explained: str
    position: int
    logit: float
    parts: list[Part]
    total: float

    @property
    def sum(self) -> float:
        """The sum of the parts, added here; it differs from `total` by rounding alone."""
        return sum(part.value for part in self.parts)

    def by_layer(self) -> list[Part]:
        """Return the sums of the parts of each layer, with one part for all that is in no layer."""
        sums: dict[int | None, float] = {}
        for part in self.parts:
            sums[part.layer] = sums.get(part.layer, 0.0) + part.value
        return [
            Part(layer, "" if layer is not None else "embedding and output", v) for layer, v in sums.items()
        ]

    def table(self, most: int = 15) -> str:
        """Return the parts as plain text: a line with a bar for each.

        Args:
            most: The number of parts that are listed, those with the largest numbers, in the model's order.
        """
        kept = self._largest(most)
        width, largest = max(len(part.label) for part in kept), max(abs(part.value) for part in kept)
        lines = [f"logit {self.logit:+.4f} of {token_label(self.explained)}"]
        for part in kept:
            lines.append(f"  {part.label:{width}}  {part.value:+9.4f}  {bar(part.value, largest)}".rstrip())
        rest = self.sum - sum(part.value for part in kept)
        others = len(self.parts) - len(kept)
        lines += [f"  {f'{others} others':{width}}  {rest:+9.4f}"] if others else []
        return "\n".join([*lines, f"sum {self.sum:+.4f}"])

    def plot(self, most: int = 40) -> Figure:
        """Draw a bar for each part, to the right if it makes the token more probable.

        Args:
            most: The number of parts that are drawn, those with the largest numbers.
        """
        from npformer import plots  # matplotlib takes a second to load
        from npformer.plots.style import drawable, literal

        kept = self._largest(most)
        title = f"logit {self.logit:.3f} of {token_label(self.explained)}: what each part adds"
        title = literal(drawable([title])[0])
        return plots.score_bars([[part.value for part in kept]], [[part.label for part in kept]], title=title)

    def _largest(self, most: int) -> list[Part]:
        """Return the parts with the largest numbers, in the order of the model."""
        require_count("most", most)
        order = np.argsort([-abs(part.value) for part in self.parts], kind="stable")[:most]
        return [self.parts[index] for index in sorted(order.tolist())]

    def __repr__(self) -> str:
        return f"<attribution of the logit of {self.explained!r}: {len(self.parts)} parts>"


class Cut(Tap):
    """A tap on a sublayer that passes no gradient on to its inputs."""

    def forward(self, x: Array, *inputs: Any, **settings: Any) -> tuple[Array, Any]:
        """Return the output of the sublayer and, in place of its cache, zeros of the shapes of its inputs."""
        super().forward(x, *inputs, **settings)
        xp = array_module(x)
        memory = [xp.zeros_like(each) for each in inputs if getattr(each, "ndim", 0)]  # of cross-attention
        return self.y, [xp.zeros_like(x), *memory]

    def backward(self, dy: Array, cache: list[Array]) -> Any:
        """Return zeros: dx, or (dx, dmemory) for cross-attention."""
        self.dy = dy
        return cache[0] if len(cache) == 1 else tuple(cache)


class FixedNorm(Tap):
    """A tap on a norm whose statistics count as constants: its backward pass is that of a linear map."""

    def forward(self, x: Array, *inputs: Any, **settings: Any) -> tuple[Array, Any]:
        """Return the output of the norm and, in place of its cache, one over the deviation of each row."""
        super().forward(x, *inputs, **settings)
        h = x + inputs[0] if isinstance(self.part, AddNorm) else x  # (B, T, D)
        if not isinstance(self.part, RMSNorm):
            h = h - h.mean(-1, keepdims=True)
        return self.y, 1 / array_module(x).sqrt((h * h).mean(-1, keepdims=True) + self.part.eps)

    def backward(self, dy: Array, cache: Array) -> Any:
        """Return dx, or (dx, dh) for "add & norm"."""
        self.dy = dy
        # y = gain rstd (x - mean) + bias, with a constant rstd
        dx = dy * self.part.gain.value * cache
        if not isinstance(self.part, RMSNorm):
            dx = dx - dx.mean(-1, keepdims=True)
        return (dx, dx) if isinstance(self.part, AddNorm) else dx


def attribution_of(
    model: Any, ids: Sequence[Array], output: Output, explained: str, *, versus: int | None = None
) -> LogitAttribution:
    """Return what each part of a model adds to the logit of a token. It is computed in float64.

    Args:
        model: A GPT, a Bert or a Transformer. Of a Transformer, the parts of the decoder.
        ids: The ids of each of its inputs, of shape (1, T).
        output: The token, and the position at which it is predicted.
        explained: The label of what is explained.
        versus: The id of another token, for the difference of the two logits.

    Raises:
        UserError: If the model has no layers of this kind, if it cannot read the ids, or if it has no such
            position or token.
    """
    return Attributions(model, ids).of(output, explained, versus=versus)


class Attributions:
    """One forward pass in float64, from which what the parts add to any of its logits is computed.

    Args:
        model: A GPT, a Bert or a Transformer. Of a Transformer, the parts of the decoder.
        ids: The ids of each of its inputs, of shape (1, T).

    Raises:
        UserError: If the model has no layers of this kind or no logits, if it cannot read the ids, or if its
            logits are not finite.
    """

    def __init__(self, model: Any, ids: Sequence[Array]) -> None:
        require_logits(model)
        if hasattr(model.output if isinstance(model, GPT) else None, "cap"):
            raise UserError(
                "the logits of this model are capped, so they are no sums of what its parts add: use the "
                "lens or patching, or a model without final_logit_softcapping"
            )
        self._model = watchable(model, np.float64)
        stack = last_stack(self._model)
        self._cuts = [_cut(layer) for layer in stack.layers]
        self._norms = [_fix_norms(layer) for layer in stack.layers]
        self._has_head = isinstance(model, Bert)
        self._last_norms = [] if self._has_head else _fix_norms(stack)
        stack.layers[0] = self._embedded = InputTap(stack.layers[0])
        if self._has_head:
            self._model.head = InputTap(self._model.head)
        self._logits, self._cache = self._model.forward(*ids)  # (1, T, V)
        require_finite(self._logits)

    def of(self, output: Output, explained: str, *, versus: int | None = None) -> LogitAttribution:
        """Return what each part adds to a logit.

        Args:
            output: The token, and the position at which it is predicted.
            explained: The label of what is explained.
            versus: The id of another token, for the difference of the two logits.

        Raises:
            UserError: If the model has no such position or token.
        """
        dlogits = score_gradient(self._logits, output, versus)
        self._model.backward(dlogits, self._cache)

        parts = [Part(None, "embedding", _product(self._embedded.y, self._embedded.dy))]
        for index, (own_cuts, own_norms) in enumerate(zip(self._cuts, self._norms, strict=True)):
            parts += _parts_of_layer(index, own_cuts, own_norms)
        logit = _product(self._logits, dlogits)
        if self._has_head:
            total = _product(self._model.head.y, self._model.head.dy)
            return LogitAttribution(explained, output.position, logit, parts, total)
        biases = sum(map(_bias, self._last_norms)) + _bias_product(self._model.output, dlogits)
        parts.append(Part(None, "biases of the output", biases))
        return LogitAttribution(explained, output.position, logit, parts, logit)


def _cut(layer: Module) -> dict[str, Cut]:
    """Cut the sublayers of a layer, set a tap on the heads of attention, and return the cuts by name."""
    cuts = {}
    for name, sublayer in list(sublayers(layer)):
        if is_attention(sublayer) and sublayer.output is not None:
            sublayer.output = InputTap(sublayer.output)
        cuts[name] = Cut(sublayer)
        setattr(layer, name, cuts[name])
    return cuts


def _fix_norms(module: Module) -> list[FixedNorm]:
    """Fix the statistics of the norms around the sublayers of a layer, and return their taps."""
    taps = []
    for name, child in list(module.children()):
        if isinstance(child, NORMS):
            taps.append(FixedNorm(child))
            setattr(module, name, taps[-1])
        elif isinstance(child, (Preprocess, Postprocess)):
            taps += _fix_norms(child)
    return taps


def _parts_of_layer(layer: int, cuts: dict[str, Cut], norms: list[FixedNorm]) -> list[Part]:
    """Return the parts of a layer: its heads, its feed-forward network and all its biases."""
    parts, biases = [], sum(map(_bias, norms))
    for name, cut in cuts.items():
        if is_attention(cut.part):
            word = "cross head" if name == "cross" else "head"
            parts += [Part(layer, f"{word} {head}", value) for head, value in enumerate(_of_heads(cut))]
            bias = 0.0 if cut.part.output is None else _bias_product(cut.part.output.part, cut.dy)
        else:
            # the biases of experts count as a part of what they put out
            bias = 0.0 if isinstance(cut.part, MixtureOfExperts) else _bias_product(cut.part.outer, cut.dy)
            parts.append(Part(layer, "feed-forward", _product(cut.y, cut.dy) - bias))
        biases += bias
    return [*parts, Part(layer, "biases", biases)]


def _of_heads(cut: Cut) -> list[float]:
    """Return what each of the H heads of an attention adds."""
    attention, z, dz = cut.part, cut.y, cut.dy  # (1, T, H·L)
    if attention.output is not None:
        # y = z Wo + bias
        z, dz = attention.output.y, cut.dy @ attention.output.part.weight.value.T
    products = to_numpy(z * dz).reshape(-1, attention.n_heads, attention.d_value)  # (T, H, L)
    values: list[float] = products.sum((0, 2)).tolist()
    return values


def _bias(tap: FixedNorm) -> float:
    """Return what the bias of a norm adds."""
    return _bias_product(tap.part, tap.dy)


def _bias_product(module: Any, dy: Array) -> float:
    """Return the product of the bias of a module with the gradient of its output, 0 without a bias."""
    bias = getattr(module, "bias", None)
    return 0.0 if bias is None else float((bias.value * dy).sum())


def _product(y: Array, dy: Array) -> float:
    """Return the sum of the products of an output and its gradient."""
    return float((y * dy).sum())
