"""The line of the learner's file that a mistake belongs to, found by the names of the learner's variables.

A mistake is known as a change of the plain solution. If the changed line computes a variable, and the
learner's function computes a variable of this name in one line, the message names that line.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from difflib import ndiff
from pathlib import Path

RETURNED = "return"


def own_line(before: str, after: str, file: str, functions: list[str]) -> str:
    """Return a phrase such as " (line 9 computes m_hat in your file)", or "" if no line fits.

    Args:
        before: The source of the plain function.
        after: The source with the mistake.
        file: The learner's file.
        functions: The names of the learner's functions.
    """
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
        own = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in functions]
        lines = defaultdict(set)
        for function in own:
            for name, line in _computed(function):
                lines[name].add(line)
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return ""
    changed = dict.fromkeys(name for name in _changed(before, after) if len(lines[name]) == 1)
    phrases = [
        f"line {min(lines[name])} " + ("returns the result" if name == RETURNED else f"computes {name}")
        for name in changed
    ]
    return f" ({' and '.join(phrases)} in your file)" if phrases else ""


def _changed(before: str, after: str) -> Iterator[str]:
    """Yield what the changed lines of the plain function compute: names of variables, or RETURNED."""
    computed = defaultdict(list)
    for name, line in _computed(ast.parse(before)):
        computed[line].append(name)
    line = 0
    for difference in ndiff(before.splitlines(), after.splitlines()):
        line += difference[0] in " -"
        if difference[0] == "-":
            yield from computed[line]


def _computed(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Yield (name, line) for each variable that is assigned, and (RETURNED, line) for each return."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Assign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                parts = target.elts if isinstance(target, ast.Tuple) else [target]
                yield from ((ast.unparse(part).split("[")[0], node.lineno) for part in parts)
        elif isinstance(node, ast.Return):
            yield RETURNED, node.lineno
