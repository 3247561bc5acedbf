"""The graph behind an output of PyTorch: its Functions and the tensors that they saved."""

from collections.abc import Iterator, Sequence
from typing import Any

import torch

from npformer.checking.trees import leaves


def saved_tensors(outputs: Any, inputs: Sequence[torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield pairs (name, tensor) of what the autograd.Functions of a graph saved, inputs excepted.

    Args:
        outputs: The outputs of a forward pass.
        inputs: The leaves of the graph, and their copies that the function received.
    """
    known = {t.data_ptr() for t in inputs}
    for node in function_nodes(outputs):
        for name, tensor in _saved(node):
            if tensor.data_ptr() not in known:
                known.add(tensor.data_ptr())
                yield name, tensor


def saves_numbers(outputs: Any) -> bool:
    """Return whether a Function of the graph saved Python numbers that it may have computed."""
    return any(isinstance(x, float) for node in function_nodes(outputs) for x in vars(node).values())


def function_nodes(outputs: Any) -> Iterator[Any]:
    """Yield the nodes of the graph that belong to a torch.autograd.Function."""
    pending = [part.grad_fn for part in leaves(outputs) if isinstance(part, torch.Tensor)]
    seen = set()
    while pending:
        node = pending.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            yield node
        pending += [following for following, _ in node.next_functions]


def _saved(node: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of floats that a Function saved by save_for_backward and in attributes of ctx."""
    try:
        saved = node.saved_tensors
    except RuntimeError:  # one was modified in place, which the backward pass will say
        saved = ()
    named = [(f"saved_tensors[{i}]", t) for i, t in enumerate(saved)] + list(vars(node).items())
    for name, tensor in named:
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point() and tensor.numel():
            yield f"ctx.{name}", tensor
