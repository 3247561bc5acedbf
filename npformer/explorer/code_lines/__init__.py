"""The lines of npformer's source that the explorer shows: for each step, its line of forward and of backward.

A step of the explorer names its lines by a key, such as "scores". The lines are quoted here by their text, in
one module for each topic, and found in the plain versions of npformer.functional and npformer.nn, with their
file, their line number and the function that contains them. If a quoted line is changed in the source, it is
not found, and a test fails.
"""

from typing import Any

from npformer.explorer.code_lines import (
    activations,
    attention,
    embedding,
    heads,
    linear,
    loss,
    norm,
    relative,
)
from npformer.explorer.code_lines.quotes import Quote, StepLines, find_function, line_numbers
from npformer.explorer.code_lines.variants import VARIANTS

_TOPICS = (embedding, linear, attention, heads, relative, norm, activations, loss)
STEP_LINES: dict[str, StepLines] = {key: lines for topic in _TOPICS for key, lines in topic.LINES.items()}


def code_of_steps(*variants: str) -> dict[str, dict[str, Any]]:
    """Return what a page shows of the source for each key of a step, as plain values for JSON.

    Args:
        variants: The names in VARIANTS of the settings of the model that change lines.

    Returns:
        A dict from each key to the code, the gradient lines, and for each of the two passes the file, the
        function, its source, the number of the first quoted line, and the lesson.
    """
    steps = dict(STEP_LINES)
    for name in variants:
        steps |= VARIANTS[name]
    return {key: _as_data(step) for key, step in steps.items()}


def _as_data(step: StepLines) -> dict[str, Any]:
    forward, backward = step.forward, step.backward
    data: dict[str, Any] = {
        "code": "\n".join(forward.lines),
        "gradient": [] if backward is None else list(backward.lines),
        **_place(forward, ""),
        "lesson": step.lesson,
    }
    if backward is not None:
        data |= _place(backward, "gradient_") | {"gradient_lesson": step.backward_lesson}
    return data


def _place(quote: Quote, prefix: str) -> dict[str, Any]:
    """Return where a quotation stands, with a prefix before the names."""
    return {
        f"{prefix}file": f"npformer/{quote.file}",
        f"{prefix}function": quote.function,
        f"{prefix}line": line_numbers(quote)[0],
        f"{prefix}source": find_function(quote.file, quote.function).source,
    }
