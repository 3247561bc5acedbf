"""Residual connections around a sublayer, with dropout and layer norm before or after it."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from npformer.backend import Array, array_module
from npformer.errors import UserError
from npformer.functional.caches import cache_class
from npformer.functional.norm import LayerNormCache
from npformer.functional.rms_norm import RMSNormCache
from npformer.kernels import add_norm, add_norm_backward
from npformer.nn.checks import check_floats
from npformer.nn.context import INFERENCE, Context
from npformer.nn.dropout import Dropout
from npformer.nn.module import Module, Parameter
from npformer.nn.norm import LayerNorm, RMSNorm

Sublayer: TypeAlias = Callable[[Array], tuple[Array, Any]]


class Residual(Module):
    """The base class of residual connections around a sublayer f. Subclasses differ in norm and dropout.

    The sublayer is an argument. In the forward pass it is a function x -> (output, cache). In the backward
    pass it is a function (d_output, cache) -> dx. If the sublayer has further inputs, such as the memory of
    cross-attention, the function returns a tuple of dx and their gradients.

        y, cache = residual.forward(x, lambda h: self_attention.forward(h, mask=mask), context)
        dx = residual.backward(dy, cache, self_attention.backward)

    Shapes: x, f(x), y (..., D). Source: He et al. 2015; Vaswani et al. 2017, section 3.1.
    """

    def forward(self, x: Array, sublayer: Sublayer, context: Context = INFERENCE) -> tuple[Array, Any]:
        """Compute x + f(x), with norm and dropout.

        Args:
            x: The input, of shape (..., D).
            sublayer: The function f, x -> (output, cache of the sublayer).
            context: The settings of the forward pass.

        Returns:
            y, of shape (..., D), and the cache. cache.sublayer is the cache of the sublayer.
        """
        raise NotImplementedError

    def backward(self, dy: Array, cache: Any, sublayer_backward: Callable[..., Any]) -> Any:
        """Compute the gradients of x and of the further inputs of the sublayer.

        Args:
            dy: The gradient of y, of shape (..., D).
            cache: The cache of forward.
            sublayer_backward: The backward pass of the sublayer, (d_output, cache of the sublayer) -> dx.

        Returns:
            dx, of shape (..., D). If sublayer_backward returns a tuple, dx followed by its other gradients.
        """
        raise NotImplementedError


@cache_class
class PreNormCache(NamedTuple):
    """The cache of PreNormResidual."""

    norm: LayerNormCache | RMSNormCache
    sublayer: Any
    dropout_mask: Any  # (..., D), or None


class PreNormResidual(Residual):
    """A residual connection with the norm before the sublayer: y = x + dropout(f(norm(x))).

    This is the order of tensor2tensor and GPT-2.

    Args:
        d_model: The width D of x.
        dropout: The dropout probability of the output of the sublayer.
        eps: The eps of the layer norm.
        norm: The norm, such as an RMSNorm. The default is a new LayerNorm.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        d_model: int,
        *,
        dropout: float = 0.0,
        eps: float = 1e-5,
        norm: LayerNorm | RMSNorm | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.norm = LayerNorm(d_model, eps=eps, dtype=dtype) if norm is None else norm
        self.dropout = Dropout(dropout)

    def forward(self, x: Array, sublayer: Sublayer, context: Context = INFERENCE) -> tuple[Array, Any]:
        """Compute y = x + dropout(f(norm(x))).

        Args:
            x, sublayer, context: As in Residual.forward.

        Returns:
            y, of shape (..., D), and the cache.
        """
        h, norm = self.norm.forward(x)
        h, sublayer_cache = sublayer(h)
        h, dropout_mask = self.dropout.forward(h, context)
        return x + h, PreNormCache(norm, sublayer_cache, dropout_mask)

    def backward(self, dy: Array, cache: Any, sublayer_backward: Callable[..., Any]) -> Any:
        """Compute the gradients of x and of the further inputs of the sublayer.

        Args:
            dy, cache, sublayer_backward: As in Residual.backward.

        Returns:
            dx, of shape (..., D), or a tuple of dx and the other gradients.
        """
        # y = x + dropout(h): a sum passes its gradient to both terms
        dh = self.dropout.backward(dy, cache.dropout_mask)
        # h = sublayer(norm(x))
        dh, others = _split(sublayer_backward(dh, cache.sublayer))
        dx = dy + self.norm.backward(dh, cache.norm)
        return (dx, *others) if others else dx


class AddNorm(Module):
    """The layer y = norm(x + dropout(h)), where h is the output of a sublayer and x its input.

    Shapes: x, h, y (..., D).

    Args:
        d_model: The width D.
        dropout: The dropout probability of h.
        eps: The eps of the layer norm.
        bias: Learn a bias in the layer norm. Without one, it is 0.
        dtype: The dtype of the parameters.

    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """

    def __init__(
        self,
        d_model: int,
        *,
        dropout: float = 0.0,
        eps: float = 1e-5,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.dropout, self.eps = dropout, eps
        self.gain = Parameter(np.ones(d_model, dtype))
        self.bias = Parameter(np.zeros(d_model, dtype)) if bias else None

    def forward(self, x: Array, h: Array, context: Context = INFERENCE) -> tuple[Array, Any]:
        """Compute y = norm(x + dropout(h)).

        Args:
            x: The input of the sublayer, of shape (..., D).
            h: The output of the sublayer, of shape (..., D).
            context: The settings of the forward pass.

        Returns:
            y, of shape (..., D), and the cache.
        """
        gain = self.gain.value
        check_floats(x, (..., len(gain)), "AddNorm")
        check_floats(h, x.shape, "AddNorm", "h")
        bias = self.bias.value if self.bias is not None else array_module(gain).zeros_like(gain)
        return add_norm(x, h, gain, bias, self.eps, context.dropout(self.dropout), context.rng)

    def backward(self, dy: Array, cache: Any) -> tuple[Array, Array]:
        """Return the gradients (dx, dh), each of shape (..., D)."""
        dx, dh, dgain, dbias = add_norm_backward(dy, cache)
        self.gain.accumulate(dgain)
        if self.bias is not None:
            self.bias.accumulate(dbias)
        return dx, dh


@cache_class
class PostNormCache(NamedTuple):
    """The cache of PostNormResidual."""

    sublayer: Any
    add_norm: Any

    @property
    def dropout_mask(self) -> Any:
        """The dropout mask (..., D), or None."""
        return self.add_norm.dropout_mask

    @property
    def norm(self) -> Any:
        """The cache of the norm."""
        return self.add_norm.norm


class PostNormResidual(Residual):
    """A residual connection with the norm after the sum: y = norm(x + dropout(f(x))), as in the paper.

    Args:
        d_model: The width D of x.
        dropout: The dropout probability of the output of the sublayer.
        eps: The eps of the layer norm.
        bias: Learn a bias in the layer norm. Without one, it is 0.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self,
        d_model: int,
        *,
        dropout: float = 0.0,
        eps: float = 1e-5,
        bias: bool = True,
        dtype: Any = np.float32,
    ) -> None:
        self.norm = AddNorm(d_model, dropout=dropout, eps=eps, bias=bias, dtype=dtype)

    def forward(self, x: Array, sublayer: Sublayer, context: Context = INFERENCE) -> tuple[Array, Any]:
        """Compute y = norm(x + dropout(f(x))).

        Args:
            x, sublayer, context: As in Residual.forward.

        Returns:
            y, of shape (..., D), and the cache.
        """
        h, sublayer_cache = sublayer(x)
        y, add_norm = self.norm.forward(x, h, context)
        return y, PostNormCache(sublayer_cache, add_norm)

    def backward(self, dy: Array, cache: Any, sublayer_backward: Callable[..., Any]) -> Any:
        """Compute the gradients of x and of the further inputs of the sublayer.

        Args:
            dy, cache, sublayer_backward: As in Residual.backward.

        Returns:
            dx, of shape (..., D), or a tuple of dx and the other gradients.
        """
        # y = norm(x + dropout(h))
        dx, dh = self.norm.backward(dy, cache.add_norm)
        # h = sublayer(x)
        dh, others = _split(sublayer_backward(dh, cache.sublayer))
        dx = dx + dh
        return (dx, *others) if others else dx


# after the dash, "a" occurs once, and no letter occurs twice: (?!.*(.).*\1) forbids a repeated letter
SPELLING = re.compile(r"n?-(?!.*(.).*\1)[nd]*a[nd]*")


@cache_class
class SequenceResidualCache(NamedTuple):
    """The cache of SequenceResidual."""

    norm_before: LayerNormCache | None
    sublayer: Any
    dropout_mask: Any  # (..., D), or None
    norm: LayerNormCache | None  # after the sublayer


class SequenceResidual(Residual):
    """A residual connection with operations given as letters before and after a dash, which stands for f.

        n  normalize      d  dropout      a  add the input x

    "n-da" computes the same as PreNormResidual, y = x + dropout(f(norm(x))), and "-dan" the same as
    PostNormResidual. "n-dna" normalizes the output of the sublayer before it is added to x. "n-dan" has a
    norm before the sublayer and another one after the sum.

    Args:
        d_model: The width D of x.
        sequence: The operations before and after the sublayer.
        dropout: The dropout probability of "d".
        eps: The eps of the layer norms.
        dtype: The dtype of the parameters.

    Raises:
        UserError: If the sequence does not have this form.

    Source: tensor2tensor's layer_preprocess_sequence and layer_postprocess_sequence.
    """

    def __init__(
        self,
        d_model: int,
        *,
        sequence: str = "n-da",
        dropout: float = 0.0,
        eps: float = 1e-5,
        dtype: Any = np.float32,
    ) -> None:
        check_sequence(sequence)
        before, _, self.after = sequence.partition("-")
        self.norm_before: Any = LayerNorm(d_model, eps=eps, dtype=dtype) if before else None
        self.norm_after: Any = LayerNorm(d_model, eps=eps, dtype=dtype) if "n" in self.after else None
        self.dropout = Dropout(dropout)

    def forward(self, x: Array, sublayer: Sublayer, context: Context = INFERENCE) -> tuple[Array, Any]:
        """Apply the operations of the sequence.

        Args:
            x, sublayer, context: As in Residual.forward.

        Returns:
            y, of shape (..., D), and the cache.
        """
        h, norm_before = (x, None) if self.norm_before is None else self.norm_before.forward(x)
        h, sublayer_cache = sublayer(h)
        dropout_mask = norm = None
        for letter in self.after:
            if letter == "d":
                h, dropout_mask = self.dropout.forward(h, context)
            elif letter == "a":
                h = x + h
            else:
                h, norm = self.norm_after.forward(h)
        return h, SequenceResidualCache(norm_before, sublayer_cache, dropout_mask, norm)

    def backward(self, dy: Array, cache: Any, sublayer_backward: Callable[..., Any]) -> Any:
        """Compute the gradients of x and of the further inputs of the sublayer.

        Args:
            dy, cache, sublayer_backward: As in Residual.backward.

        Returns:
            dx, of shape (..., D), or a tuple of dx and the other gradients.
        """
        dx: Any = 0
        dh = dy
        for letter in reversed(self.after):
            if letter == "d":
                dh = self.dropout.backward(dh, cache.dropout_mask)
            elif letter == "a":
                dx = dh  # a sum passes its gradient to both terms
            else:
                dh = self.norm_after.backward(dh, cache.norm)
        dh, others = _split(sublayer_backward(dh, cache.sublayer))
        # h = norm(x)
        if self.norm_before is not None:
            dh = self.norm_before.backward(dh, cache.norm_before)
        dx = dx + dh
        return (dx, *others) if others else dx


ResidualCache = PreNormCache | PostNormCache | SequenceResidualCache


def check_sequence(sequence: str) -> None:
    """Check that a string is a sequence that SequenceResidual accepts.

    Raises:
        UserError: If it is not.
    """
    if not SPELLING.fullmatch(sequence):
        raise UserError(
            f"{sequence!r} is not a sequence for a residual connection: write n or nothing, a dash, then "
            "a (add) once, with or without d (dropout) and n (normalize), such as n-da"
        )


def _split(gradients: Any) -> tuple[Any, tuple[Any, ...]]:
    """Return the gradient of a sublayer's input, and a tuple of its other gradients."""
    return (gradients[0], gradients[1:]) if isinstance(gradients, tuple) else (gradients, ())
