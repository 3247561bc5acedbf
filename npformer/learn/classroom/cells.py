"""The solutions in the cells of a notebook."""

import ast
import re
from collections.abc import Sequence

from npformer.errors import UserError
from npformer.language import say
from npformer.learn.exercises import Exercise
from npformer.storage.json_files import parse_json


def solution_among(cells: Sequence[str], exercise: Exercise) -> str | None:
    """Return the text of the last cell that defines the functions of an exercise, or None if there is none.

    A solution is one cell: with its imports and with all functions that it needs.

    Args:
        cells: The texts of the cells.
        exercise: The exercise.
    """
    return next((text for text in reversed(cells) if defines(text, exercise.functions)), None)


def defines(text: str, functions: Sequence[str]) -> bool:
    """Return whether a text defines all functions, as far as one can tell without running it."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return all(re.search(rf"^def {re.escape(name)}\b", text, re.MULTILINE) for name in functions)
    defined = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return set(functions) <= defined | {target.id for target in targets if isinstance(target, ast.Name)}


def code_cells(text: str, what: str) -> list[str]:
    """Return the texts of the cells of code of a notebook, without lines of magic commands.

    Args:
        text: The text of the .ipynb file.
        what: The noun for the file, for messages.

    Raises:
        UserError: If this is not a notebook.
    """
    refusal = UserError(say("{what} is not a notebook: submit the notebook as Jupyter saves it", what=what))
    try:
        content = parse_json(text, what, "", infinite=True)
    except UserError:
        raise refusal from None
    cells = content.get("cells") if isinstance(content, dict) else None
    found = []
    for cell in cells if isinstance(cells, list) else [None]:
        match cell:
            case {"cell_type": "code", "source": str() | list() as source}:
                found.append(without_magics("".join(map(str, source))))
            case {"cell_type": str()}:
                pass
            case _:
                raise refusal
    return found


def without_magics(text: str) -> str:
    """Return the text of a cell with empty lines instead of magic commands."""
    lines = text.splitlines(keepends=True)
    return "".join("\n" if line.startswith(("%", "!")) else line for line in lines)
