"""What single change of the right function gives the learner's result? Tried out, change by change.

The package's function is taken as a syntax tree, and each mistake that people make is made in it in turn:
a term left out, a factor, a sign, a call skipped, a sum over another axis. One that gives the very numbers
that the learner got names the mistake. It is told without showing the line that would be right.
"""

import ast
import copy
import inspect
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

from npformer.exercises.mistakes import likely, mix_ups

SECONDS = 1.5  # no longer is looked for a change


def explain(solution: dict[str, Callable], agrees: Callable[[SimpleNamespace], bool]) -> str:
    """The first change with which `agrees`, given functions to run, says that the result is the learner's."""
    end = time.perf_counter() + SECONDS
    for changes in (likely, mix_ups):  # the likely ones first
        for name, function in solution.items():
            for text, mutant in mutants(function, changes):
                if time.perf_counter() > end:
                    return ""
                if not agrees(SimpleNamespace(**(solution | {name: mutant}))):
                    continue
                return f"the package's own function gives these very numbers {text}"
    return ""


def mutants(function: Callable, changes: Callable) -> Iterator[tuple[str, Callable]]:
    """Pairs (what was changed, the function with this change)."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    nodes = list(ast.walk(tree))
    if not isinstance(nodes[1], ast.FunctionDef) or any(isinstance(node, ast.While) for node in nodes):
        return  # changed, a while loop might never end
    steps, mixed = _steps(tree), _names(tree)
    for index, node in enumerate(nodes):
        for text, new in changes(node, mixed):
            where = steps.get(id(node), "")
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[index]
            changed = ast.fix_missing_locations(_Replace(target, new).visit(changed))
            yield f"when {text}{where}", _compiled(changed, function)


class _Replace(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, target, new):
        self.target, self.new = target, new

    def visit(self, node):
        return self.new if node is self.target else super().visit(node)


def _compiled(tree, function):
    space = dict(vars(sys.modules[function.__module__]))
    exec(compile(tree, "<changed>", "exec"), space)
    return space[tree.body[0].name]


def _steps(tree) -> dict[int, str]:
    """For every node the statement that it stands in, as words."""
    steps = {}
    for statement in ast.walk(tree):
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            text = f", in the step that makes {ast.unparse(target).strip('()')}"
        elif isinstance(statement, ast.Return):
            text = ", in what is returned"
        else:
            continue
        steps.update({id(node): text for node in ast.walk(statement)})
    return steps


def _names(tree) -> dict[str, list[str]]:
    """The function's variables, under "", and the attributes that it takes of each."""
    function = tree.body[0]
    found = [argument.arg for argument in function.args.args]
    found += [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    names = {"": [name for name in dict.fromkeys(found) if name not in ("self", "xp")]}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.setdefault(node.value.id, []).append(node.attr)
    return {base: list(dict.fromkeys(attributes)) for base, attributes in names.items()}
