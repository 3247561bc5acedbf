"""Two sequences of operations that most layers contain: add and norm, and activation and dropout.

Each sequence is one pair, because npformer.kernels computes it in one pass over the arrays.
"""

from typing import Any, NamedTuple

from npformer.backend import Array, Generator
from npformer.errors import UserError
from npformer.functional.activations import ACTIVATIONS, relu, relu_backward
from npformer.functional.caches import cache_class
from npformer.functional.dropout import dropout, dropout_backward
from npformer.functional.norm import LayerNormCache, layer_norm, layer_norm_backward


@cache_class
class AddNormCache(NamedTuple):
    """The cache of add_norm."""

    dropout_mask: Any  # (..., D) the dropout mask, or None
    norm: LayerNormCache


def add_norm(
    x: Array,
    h: Array,
    gain: Array,
    bias: Array,
    eps: float = 1e-5,
    p: float = 0.0,
    rng: Generator | None = None,
) -> tuple[Array, AddNormCache]:
    """Compute y = norm(x + dropout(h)): the output h of a sublayer is added to its input x and normalized.

    Args:
        x: The input of the sublayer, of shape (..., D).
        h: The output of the sublayer, of shape (..., D).
        gain: The scale of each number, of shape (D,).
        bias: The shift of each number, of shape (D,).
        eps: A small number that prevents a division by zero.
        p: The dropout probability of h.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of shape (..., D), and the cache.

    Raises:
        UserError: If x and h differ in shape.

    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """
    check_residual(x, h)
    h, dropout_mask = dropout(h, p, rng)
    y, norm = layer_norm(x + h, gain, bias, eps)
    return y, AddNormCache(dropout_mask, norm)


def add_norm_backward(dy: Array, cache: AddNormCache) -> tuple[Array, Array, Array, Array]:
    """Return the gradients dx and dh (..., D), dgain and dbias (D,) of y = norm(x + dropout(h))."""
    # y = layer_norm(x + dropout(h))
    dx, dgain, dbias = layer_norm_backward(dy, cache.norm)
    # x + dropout(h): a sum passes its gradient to both terms
    return dx, dropout_backward(dx, cache.dropout_mask), dgain, dbias


def check_residual(x: Array, h: Array) -> None:
    """Check that x and h have the same shape, since a residual connection adds them elementwise.

    Raises:
        UserError: If the shapes differ.
    """
    if x.shape != h.shape:
        raise UserError(
            f"a residual connection adds x of shape {x.shape} and the sublayer's output of shape {h.shape}: "
            "give both the same shape"
        )


@cache_class
class ReluDropoutCache(NamedTuple):
    """The cache of relu_dropout."""

    y: Array  # (..., F) the output
    dropout_mask: Any  # (..., F) the dropout mask, or None


@cache_class
class ActivationDropoutCache(NamedTuple):
    """The cache of activation_dropout."""

    name: str  # the name of the activation
    activation: Any  # the cache of the activation
    dropout_mask: Any  # (..., F) the dropout mask, or None


def activation_dropout(
    x: Array, activation: str = "relu", p: float = 0.0, rng: Generator | None = None
) -> tuple[Array, ActivationDropoutCache | ReluDropoutCache]:
    """Compute y = dropout(f(x)), the middle of the feed-forward network, where f is one of ACTIVATIONS.

    Args:
        x: The input, of shape (..., F).
        activation: The name of the activation function f.
        p: The dropout probability.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of shape (..., F), and the cache.

    Source: Vaswani et al. 2017, section 3.3.
    """
    if activation == "relu":
        return relu_dropout(x, p, rng)
    activate, _ = ACTIVATIONS[activation]
    h, activated = activate(x)
    y, dropout_mask = dropout(h, p, rng)
    return y, ActivationDropoutCache(activation, activated, dropout_mask)


def activation_dropout_backward(dy: Array, cache: ActivationDropoutCache | ReluDropoutCache) -> Array:
    """Return dx, of shape (..., F), the gradient of y = dropout(f(x))."""
    if isinstance(cache, ReluDropoutCache):
        return relu_dropout_backward(dy, cache)
    _, activate_backward = ACTIVATIONS[cache.name]
    # y = dropout(h)
    dh = dropout_backward(dy, cache.dropout_mask)
    # h = f(x)
    return activate_backward(dh, cache.activation)


def relu_dropout(x: Array, p: float, rng: Generator | None) -> tuple[Array, ReluDropoutCache]:
    """Compute y = dropout(max(0, x)), in the form y = max(0, dropout(x)).

    Both forms are equal, since dropout multiplies by factors that are not negative. In the second form, an
    entry that is dropped or not positive becomes +0, also if x is infinite or NaN.

    Args:
        x: The input, of shape (..., F).
        p: The dropout probability.
        rng: The generator for dropout. It is needed if p > 0.

    Returns:
        y, of shape (..., F), and the cache.
    """
    h, dropout_mask = dropout(x, p, rng)
    y, _ = relu(h)
    return y, ReluDropoutCache(y, dropout_mask)


def relu_dropout_backward(dy: Array, cache: ReluDropoutCache) -> Array:
    """Return dx, of shape (..., F): dy times the dropout mask where y > 0, and 0 elsewhere."""
    # y = max(0, h)
    dh = relu_backward(dy, cache.y)
    # h = dropout(x)
    return dropout_backward(dh, cache.dropout_mask)
