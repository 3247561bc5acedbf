"""The lines of npformer's source that the explorer shows: for each step, those of forward and of backward.

A step of the explorer names its lines by a key, such as "scores". The table `step_lines` says in which
function they are and how they begin, and here they are found in the source. The rest of a line may change.
"""

import ast
import re
from functools import cache
from pathlib import Path
from typing import Any

from npformer.explorer.step_lines import STEP_LINES, VARIANTS, Lines, StepLines

PACKAGE = Path(__file__).resolve().parents[1]


def code_of_steps(*variants: str) -> dict[str, dict[str, Any]]:
    """Return what a page shows of the source for each key of a step, as values for JSON.

    Args:
        variants: The names in VARIANTS of the settings of the model that change lines.

    Returns:
        A dict from each key to the code, the gradient lines, and for each of the two passes the file, the
        function, its source, the number of the first line, and the lesson.
    """
    steps = dict(STEP_LINES)
    for name in variants:
        steps |= VARIANTS[name]
    return {key: _as_data(step) for key, step in steps.items()}


def _as_data(step: StepLines) -> dict[str, Any]:
    lines, place = quote(step.forward)
    data: dict[str, Any] = {"code": "\n".join(lines), "gradient": [], **place, "lesson": step.lesson}
    if step.backward is not None:
        data["gradient"], place = quote(step.backward)
        data |= {f"gradient_{name}": value for name, value in place.items()}
        data["gradient_lesson"] = step.backward_lesson
    return data


def quote(lines: Lines) -> tuple[list[str], dict[str, Any]]:
    """Return the text of lines without their indentation, and their place: file, function, line and source.

    Raises:
        LookupError: If there is no such function, if a beginning is not that of exactly one of its lines, or
            if the lines are in another order.
    """
    (file, name), beginnings = lines[0].split("::"), lines[1:]
    text, node = _parsed(file)
    for part in name.split("."):
        node = next((member for member in node.body if getattr(member, "name", "") == part), None)
        if node is None:
            raise LookupError(f"{file} has no function {name}: write the new name in step_lines")
    source = [line[node.col_offset :] for line in text.splitlines()[node.lineno - 1 : node.end_lineno]]
    indices = []
    for beginning in beginnings:
        pattern = rf"\s*{re.escape(beginning)}(?!\w)"  # "dx" begins no line "dxhat = ..."
        found = [index for index, line in enumerate(source) if re.match(pattern, line)]
        if len(found) != 1:
            raise LookupError(
                f"{name} in {file} has {len(found)} lines that begin with {beginning!r}, and one is needed: "
                "write in step_lines how it begins"
            )
        indices += found
    if indices != sorted(indices):
        raise LookupError(f"{name} in {file} has its lines in another order: list them so in step_lines")
    place = {
        "file": f"npformer/{file}",
        "function": name,
        "line": node.lineno + indices[0],
        "source": "\n".join(source),
    }
    return [source[index].strip() for index in indices], place


@cache
def _parsed(file: str) -> tuple[str, Any]:
    """Return the text of a file of the package, and its syntax tree."""
    text = (PACKAGE / file).read_text(encoding="utf-8")
    return text, ast.parse(text)
