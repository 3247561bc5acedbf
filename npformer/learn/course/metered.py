"""A GPT that counts the multiplications of its matrix products, and the bytes that these read."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from npformer.backend import Array
from npformer.models.gpt import GPT, GPTConfig
from npformer.nn import PreallocatedKVCache


class ProductCost(NamedTuple):
    """The cost of the matrix products of a computation.

    The bytes are those of the right factors: weights, keys and values. The left factors are the vectors of
    the new tokens and the attention weights.
    """

    multiplications: int
    bytes_read: int

    @property
    def intensity(self) -> float:
        """The operations for each byte, where a multiplication and an addition are two operations."""
        return 2 * self.multiplications / self.bytes_read


class MeteredArray(np.ndarray[Any, Any]):
    """An array that counts each matrix product in which it is a factor."""

    cost = ProductCost(0, 0)  # of all products since it was last set to 0

    def __matmul__(self, other: Any) -> Any:
        return _product(self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return _product(other, self)


def _product(left: Array, right: Array) -> Array:
    """Return left @ right, and count it. Shapes: (..., M, N), (..., N, P) -> (..., M, P)."""
    y: Array = np.matmul(left, right)
    multiplications, bytes_read = MeteredArray.cost
    MeteredArray.cost = ProductCost(
        multiplications + y.size * left.shape[-1],  # each entry of y is a sum of N products
        bytes_read + right.nbytes,
    )
    return y


class MeteredKVCache(PreallocatedKVCache):
    """A KV cache whose values count their products with the attention weights.

    The queries are MeteredArrays already, and count their products with the keys.
    """

    @property
    def v(self) -> Array:
        return super().v.view(MeteredArray)


class MeteredGPT(GPT):
    """An untrained GPT for `cost_of`: one factor of each of its matrix products is a MeteredArray.

    Args:
        config: The configuration.
    """

    def __init__(self, config: GPTConfig) -> None:
        super().__init__(config, rng=np.random.default_rng(0))
        for parameter in self.parameters():
            parameter.value = parameter.value.view(MeteredArray)

    def empty_kv_cache(self, capacity: int | None = None) -> list[PreallocatedKVCache]:
        return [MeteredKVCache(each.capacity) for each in super().empty_kv_cache(capacity)]


def cost_of(function: Callable[..., Any], *arguments: Any) -> ProductCost:
    """Call a function, such as a method of a MeteredGPT, and return the cost of its matrix products.

    Args:
        function: The function.
        arguments: Its arguments.
    """
    MeteredArray.cost = ProductCost(0, 0)
    function(*arguments)
    return MeteredArray.cost
