"""Sentences for the errors that PyTorch raises in forward and backward passes."""

import re
from collections.abc import Sequence

from npformer.checking.foreign.layer import WrongBackward
from npformer.errors import UserError

_IN_PLACE = (
    "a tensor that was saved for backward was modified in place afterwards: save a copy, or do not modify it"
)


def wrong_backward(error: Exception, inputs: Sequence[tuple[str, tuple[int, ...]]]) -> WrongBackward:
    """Return the sentence about a mistake that PyTorch found in a backward pass.

    Args:
        error: The error that PyTorch or the backward pass raised.
        inputs: The names and the shapes of the inputs that are arrays, in their order.
    """
    text = " ".join(str(error).split())
    if "modified by an inplace operation" in text:
        return WrongBackward(_IN_PLACE)
    count = re.search(r"incorrect number of gradients \(expected (\d+), got (\d+)\)", text)
    if count:
        expected, got = count.groups()
        return WrongBackward(
            f"backward returned {got} gradients and forward took {expected} arguments: return one for each "
            "argument, and None for those without a gradient"
        )
    shape = re.search(r"invalid gradient at index (\d+) - got (\[.*?\]) but expected .* (\[.*\])", text)
    if shape:
        index, got, expected = shape.groups()
        known = inputs[int(index)] if int(index) < len(inputs) else ("", ())
        tensor = known[0] if str(list(known[1])) == expected else "backward"
        return WrongBackward(
            f"the gradient has shape {got} and the tensor {expected}: is it transposed or summed, "
            "or are two gradients exchanged?",
            tensor,
        )
    if "view size is not compatible" in text:
        return WrongBackward(
            "backward needs contiguous tensors: use reshape in place of view, or .contiguous()"
        )
    return WrongBackward(f"backward raised {type(error).__name__}: {_shortened(text)}")


def forward_error(name: str, error: Exception, converted: bool) -> UserError:
    """Return the sentence about an error in a forward pass.

    Args:
        name: The name of the function.
        error: The error that it raised.
        converted: True if the inputs were converted to float64.
    """
    text = _shortened(" ".join(str(error).split()))
    hint = ""
    if "missing" in text and "positional argument" in text:
        hint = ": give one input for each argument (on the command line, one --shape for each)"
    elif converted and re.search(r"dtype|float|Double|Half|BFloat16|scalar type", text):
        hint = (
            ": the check runs in float64, so convert everything that it uses by .double(), or give reference="
        )
    return UserError(f"{name} raised {type(error).__name__} in forward ({text}){hint}")


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:200]}…"
