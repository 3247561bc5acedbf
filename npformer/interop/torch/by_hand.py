"""Attention that a module computes by itself: a softmax over the keys, and a product with the values."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

PRODUCTS = ("matmul", "__matmul__", "bmm")
UNCHANGED = ("dropout", "to", "type_as", "float", "half")  # what is recorded are the weights before these
RESHAPED = ("__getitem__", "view", "reshape", "squeeze", "unsqueeze")


class Followed(NamedTuple):
    """A tensor that holds attention weights."""

    tensor: Tensor  # kept, so that no other tensor gets its id
    weights: Tensor  # (..., T, S)
    is_turned: bool  # True if the tensor is (..., S, T)
    origin: int  # the number of the softmax


class SoftmaxTrace:
    """The results of softmax in a forward pass, followed until values are summed with them."""

    def __init__(self) -> None:
        self.followed: dict[int, Followed] = {}  # by the ids of the tensors
        self.count = 0

    def weights_of(self, func: Any, args: Any, kwargs: Any, result: Any) -> Tensor | None:
        """Return the weights (..., T, S) that a call of a function multiplies by values, or None.

        It is to see all calls of the forward pass, in their order.

        Args:
            func: The function.
            args: Its positional arguments.
            kwargs: Its keyword arguments.
            result: What it returned.
        """
        if not isinstance(result, Tensor) or result.is_nested:
            return None
        name = getattr(func, "__name__", "")
        if name == "softmax":
            self._begin(result, kwargs.get("dim", args[1] if len(args) > 1 else None))
            return None
        given = [each for each in _tensors(args) if id(each) in self.followed]
        if not given:
            return None
        found = self.followed[id(given[0])]
        if name in PRODUCTS or name == "einsum":
            return self._end(found) if _sums_values(found, name, args, kwargs) else None
        self._go_on(found, func, args, kwargs, result)
        return None

    def _begin(self, result: Tensor, dim: Any) -> None:
        """Follow the result of a softmax, if it is one over the last axis or the one before."""
        axis = None if dim is None else dim % result.dim() - result.dim()
        if result.dim() > 1 and axis in (-1, -2):
            self.count += 1
            weights = (result if axis == -1 else result.mT).clone()
            self.followed[id(result)] = Followed(result, weights, axis == -2, self.count)

    def _go_on(self, found: Followed, func: Any, args: Any, kwargs: Any, result: Tensor) -> None:
        """Follow the result of a function of weights, if it still holds weights."""
        name, turned = getattr(func, "__name__", ""), found.tensor.mT
        if result.shape == turned.shape and torch.equal(result, turned):
            after = found._replace(is_turned=not found.is_turned)
        elif name in RESHAPED and result.dim() > 1 and not found.is_turned:
            # many modules make one axis of the batch and the heads before the product
            keeps = found.weights.dim() == 4 and result.shape[-2:] == found.weights.shape[-2:]
            after = found if keeps else found._replace(weights=func(found.weights, *args[1:], **kwargs))
        elif result.shape != found.tensor.shape:
            return
        elif name in UNCHANGED:
            after = found
        else:  # a mask after the softmax, for example
            after = found._replace(weights=result.mT if found.is_turned else result)
        self.followed[id(result)] = after._replace(tensor=result)

    def _end(self, found: Followed) -> Tensor:
        """Return weights that were used, and follow them no longer: they count once."""
        self.followed = {i: each for i, each in self.followed.items() if each.origin != found.origin}
        return found.weights.to(torch.promote_types(found.weights.dtype, torch.float32))


def _tensors(args: Any) -> list[Tensor]:
    """Return the tensors among the arguments of a function, also those in a list."""
    nested = [each if isinstance(each, (list, tuple)) else [each] for each in args]
    return [each for part in nested for each in part if isinstance(each, Tensor)]


def _sums_values(found: Followed, name: str, args: Any, kwargs: Any) -> bool:
    """Return whether a product sums values over the keys. A matrix of parameters is no values."""
    operands = [*_tensors(args), *_tensors(kwargs.values())]
    index = next(i for i, each in enumerate(operands) if each is found.tensor)
    if any(isinstance(each, nn.Parameter) for each in operands):
        return False
    if name == "einsum":
        inputs, _, output = args[0].replace(" ", "").partition("->")
        letters = inputs.split(",")[index]
        return (letters[-2] if found.is_turned else letters[-1]) not in output
    return index == int(found.is_turned)
