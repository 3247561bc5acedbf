"""LoRA: fine-tuning that learns two narrow matrices beside each frozen weight of a model.

    adapted, adapter = add_lora(model, rank=2)
    optimizer = Adam(adapter)  # updates the narrow matrices with the gradients that adapted.backward leaves
    tuned = merge_lora(model, adapted)

Source: Hu et al. 2021.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.lora import LoRACache, lora_linear, lora_linear_backward
from npformer.nn.attention.projections import Projection
from npformer.nn.checks import check_floats, check_gradient
from npformer.nn.fixed import FixedParameter, fixed_parameters
from npformer.nn.init import default_rng, normal
from npformer.nn.linear import Linear
from npformer.nn.module import Module, Parameter
from npformer.validation import require_count


class LoRALinear(Linear):
    """A linear layer with a frozen weight and a learned change: y = x (weight + scale a b) + bias.

    At first b is 0, so the layer computes what the given layer does. Only a and b learn.
    Shapes: x (..., I) -> y (..., O). The matrix a is (I, R), and b is (R, O).

    Args:
        layer: The linear layer, whose weight and bias are shared.
        rank: The number R of columns of a and of rows of b.
        scale: A factor of the change.
        rng: The generator of the initial a.

    Source: Hu et al. 2021, section 4.1.
    """

    def __init__(
        self,
        layer: Linear,
        rank: int,
        *,
        scale: float = 1.0,
        rng: np.random.Generator | None = None,
    ) -> None:
        require_count("rank", rank)
        # a Projection has settings of its own. The flat arrays are those of the given layer
        vars(self).update({name: part for name, part in vars(layer).items() if name != "_flat"})
        n_in, n_out = layer.weight.shape
        dtype = layer.weight.value.dtype
        self.weight = FixedParameter(layer.weight.value)
        self.bias = None if layer.bias is None else FixedParameter(layer.bias.value)
        self.a = Parameter(normal(default_rng(rng), (n_in, rank), n_in**-0.5, dtype))
        self.b = Parameter(np.zeros((rank, n_out), dtype))
        self.scale = scale

    def forward(self, x: Array) -> tuple[Array, LoRACache]:  # type: ignore[override]  # a cache of its own
        """Return y, of shape (..., O), and the cache."""
        check_floats(x, (..., len(self.weight.value)), type(self).__name__)
        y, cache = lora_linear(x, self.a.value, self.b.value, self.weight.value, scale=self.scale)
        return (y if self.bias is None else y + self.bias.value), cache

    def backward(self, dy: Array, cache: LoRACache) -> Array:  # type: ignore[override]  # a cache of its own
        """Return dx, of shape (..., I)."""
        check_gradient(dy, (*cache.x.shape[:-1], self.weight.value.shape[1]), type(self).__name__)
        dx, da, db = lora_linear_backward(dy, cache)
        self.a.accumulate(da)
        self.b.accumulate(db)
        return dx


class LoRAProjection(LoRALinear, Projection):
    """A projection to queries, keys or values with a frozen weight and a learned change (see LoRALinear)."""


class Adapter(Module):
    """The matrices a and b of all layers of a model: the parameters that an optimizer updates.

    Args:
        layers: The layers.
    """

    def __init__(self, layers: list[LoRALinear]) -> None:
        self.pairs = [(layer.a, layer.b) for layer in layers]


def add_lora(
    model: Any, rank: int, *, scale: float = 1.0, rng: np.random.Generator | None = None
) -> tuple[Any, Adapter]:
    """Return a copy of a model in which each linear layer has a frozen weight and a learned change.

    The copy shares the weights of the model. Its embeddings and norms are frozen, too.

    Args:
        model: The model.
        rank: The rank R of the changes.
        scale: A factor of the changes.
        rng: The generator of the initial matrices a.

    Returns:
        The copy, and its learned matrices, for an optimizer such as Adam.

    Source: Hu et al. 2021, section 4.
    """
    rng = default_rng(rng)
    adapted: Any = model.shared_copy(fixed_parameters(model))
    layers = []
    for module in adapted.modules():
        for name, part in vars(module).items():
            if type(part) in (Linear, Projection):
                kind = LoRAProjection if isinstance(part, Projection) else LoRALinear
                layers.append(kind(part, rank, scale=scale, rng=rng))
                setattr(module, name, layers[-1])
    return adapted, Adapter(layers)


def merge_lora(model: Any, adapted: Any) -> Any:
    """Return a copy of a model whose weights contain the changes: weight + scale a b.

    It computes what the adapted model does, as fast as the model without changes.

    Args:
        model: The model that add_lora was given.
        adapted: The copy that it returned.
    """
    merged = copy.deepcopy(model)
    parts = dict(merged.named_modules())
    for name, layer in adapted.named_modules():
        if isinstance(layer, LoRALinear):
            parts[name].weight.value += layer.scale * (layer.a.value @ layer.b.value)
    return merged
