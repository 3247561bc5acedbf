"""A copy of a model whose parts are watched: what they put out, and the gradient of it.

A tap stands in the place of a part, such as a layer, and passes everything on. So the forward and backward
pass of the model stay the only ones: a lens reads what passes a tap, and a patch replaces it.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.models.bart import Bart
from npformer.models.bert import Bert, BertHead
from npformer.models.encoder import EncoderModel
from npformer.models.gpt import GPT
from npformer.models.t5 import T5
from npformer.models.transformer import Transformer
from npformer.models.vit import ViT
from npformer.nn import FeedForward, GatedFeedForward, MixtureOfExperts, MultiHeadAttention
from npformer.nn.fixed import fixed_parameters
from npformer.nn.module import Module
from npformer.validation import require_index

SUBLAYERS = (MultiHeadAttention, FeedForward, GatedFeedForward, MixtureOfExperts)


class Tap(Module):
    """A part of a model, and what passed through it last.

    Args:
        part: The part, such as a layer.

    Attributes:
        x: The first input of the last forward pass.
        y: Its output, with which the model went on.
        dy: The gradient of y in the last backward pass.
        patch: A function that returns what the model goes on with in place of an output, or None.
    """

    x: Any = None
    y: Any = None
    dy: Any = None

    def __init__(self, part: Module) -> None:
        self.part: Any = part
        self.patch: Callable[[Array], Array] | None = None

    def forward(self, x: Array, *inputs: Any, **settings: Any) -> tuple[Array, Any]:
        """Return the output of the part, patched if there is a patch, and its cache."""
        y, cache = self.part.forward(x, *inputs, **settings)
        self.x, self.y = x, y if self.patch is None else self.patch(y)
        return self.y, cache

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return what the backward pass of the part returns."""
        self.dy = dy
        return self.part.backward(dy, cache)


class InputTap(Tap):
    """A tap on the first input of a part: y is that input, and dy its gradient."""

    def forward(self, x: Array, *inputs: Any, **settings: Any) -> tuple[Array, Any]:
        """Return the output of the part for the input, patched if there is a patch, and its cache."""
        self.x, self.y = x, x if self.patch is None else self.patch(x)
        return self.part.forward(self.y, *inputs, **settings)

    def backward(self, dy: Array, cache: Any) -> Any:
        """Return what the backward pass of the part returns."""
        dx = self.part.backward(dy, cache)
        self.dy = dx[0] if isinstance(dx, tuple) else dx
        return dx


def watchable(model: Any, dtype: Any = None) -> Any:
    """Return a copy of a model in whose places taps can be set. It shares the weights, and has no gradients.

    Args:
        model: A GPT, a Bert, a Transformer or a ViT.
        dtype: Convert the copy to this dtype, if the model has another one.

    Raises:
        UserError: If it is another model.
    """
    if not isinstance(model, (GPT, Bart, T5)) and type(model) not in (Bert, Transformer, ViT):
        raise UserError(
            f"lenses look into the layers of a Transformer, a GPT or a BERT, and this is a "
            f"{type(model).__name__}: give another model"
        )
    copied = model.shared_copy(fixed_parameters(model))
    return copied if dtype is None or model.reference.dtype == dtype else copied.astype(dtype)


def require_logits(model: Any) -> None:
    """Raise UserError if a model computes no logits of tokens, as one without a head."""
    has_head = not isinstance(model, EncoderModel) or isinstance(model.head, BertHead)
    if not has_head or (isinstance(model, GPT) and model.output is None):
        raise UserError(
            f"this {type(model).__name__} computes no logits of tokens, which is what lenses explain: give a "
            "model with a head that predicts tokens"
        )


def without_logits(model: Any) -> Any:
    """Return a copy of a GPT, a Bert or a ViT that ends before its output layer, with the same layers.

    For what reads the layers only. For a short text, the logits take almost a third of the products of GPT-2,
    and read its whole table of tokens. Any other model is returned as it is.

    Args:
        model: The model.
    """
    if not isinstance(model, (GPT, EncoderModel)):
        return model
    copied = copy.copy(model)
    setattr(copied, "output" if isinstance(model, GPT) else "head", None)
    return copied


def stacks(model: Any) -> dict[str, Any]:
    """Return the stacks of layers of a model by their names: each has `layers` and `norm`.

    A Transformer has the stacks "encoder" and "decoder", and the only stack of another model is "".
    """
    if isinstance(model, Transformer):
        return {"encoder": model.encoder, "decoder": model.decoder}
    return {"": model.encoder if isinstance(model, (Bert, ViT)) else model}


def last_stack(model: Any) -> Any:
    """Return the stack of layers above which the model predicts tokens."""
    return list(stacks(model).values())[-1]


def tap_layers(stack: Any) -> list[Tap]:
    """Set a tap on the output of each layer of a stack, and return the taps."""
    stack.layers = [Tap(layer) for layer in stack.layers]
    taps: list[Tap] = stack.layers
    return taps


def is_attention(part: Any) -> bool:
    """Return whether a part of a layer is an attention, and not a feed-forward network."""
    return isinstance(part, MultiHeadAttention)


def sublayers(layer: Module) -> Iterator[tuple[str, Any]]:
    """Yield the attentions and the feed-forward network of a layer with their names, in their order."""
    return ((name, part) for name, part in layer.children() if isinstance(part, SUBLAYERS))


def predict(model: Any, x: Array) -> Array:
    """Return the logits of the next tokens for the output of a layer. Shapes: x (B, T, D) -> (B, T, V).

    For the last layer, these are the logits of the model.
    """
    if isinstance(model, Bert):
        logits: Array = model.head(x)
        return logits
    norm = last_stack(model).norm
    of_x: Array = model.output(x if norm is None else norm(x))
    return of_x


class Output(NamedTuple):
    """An output of a model: a token at a position."""

    position: int  #: t, among the T positions of the logits
    token: int


def score_gradient(logits: Array, output: Output, versus: int | None = None) -> Array:
    """Return the gradient of one logit, or of a difference of two, with respect to all logits.

    Args:
        logits: The logits of a model, of shape (B, T, V).
        output: The position and the token of the logit.
        versus: The token of a logit that is subtracted, or None.

    Returns:
        Zeros of the shape of the logits, with 1 at the output and -1 at `versus`.

    Raises:
        UserError: If there is no such position or token, or if both tokens are the same.
    """
    require_index("position", output.position, logits.shape[1])
    if versus == output.token:
        raise UserError("target and versus are the same token, so the difference is 0: give another one")
    gradient = array_module(logits).zeros_like(logits)
    for token, sign in ((output.token, 1), (versus, -1)):
        if token is not None:
            require_index("token", token, logits.shape[2])
            gradient[:, output.position, token] += sign
    return gradient
