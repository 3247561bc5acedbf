"""Edits of a mistake that was made at all places of a function: the same operation or call is wrong."""

import ast
import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from npformer.checking.repair.edit import Definition, Edit, expression, shown
from npformer.checking.repair.functions import called, of_function_and_axes
from npformer.checking.repair.operations import OPERATIONS
from npformer.checking.repair.scope import Scope

Rewrite: TypeAlias = Callable[[ast.AST], ast.AST | None]  # returns another node, or None to keep the node


def of_all_operations(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edits of all operations of one kind in a function, such as all products."""
    places: dict[type[ast.operator], list[ast.BinOp]] = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp):
            places[type(node.op)].append(node)
    for operator, nodes in places.items():
        for text, says in OPERATIONS.get(operator, ()) if len(nodes) > 1 else ():
            sentence = says.format(a=shown(nodes[0].left), b=shown(nodes[0].right))
            yield _at_all(function, nodes, sentence, _as_operation(operator, text))


def _as_operation(operator: type[ast.operator], text: str) -> Rewrite:
    """Return the rewrite of an operation of a and b as another one."""

    def rewrite(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.BinOp) and isinstance(node.op, operator):
            return expression(text, a=node.left, b=node.right)
        return None

    return rewrite


def of_all_calls(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edits of all calls of one function, such as all sums: another function, or other axes."""
    places: dict[str, list[ast.Call]] = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.Call):
            places[called(node)].append(node)
    for name, nodes in places.items():
        if len(nodes) > 1:
            for number, (says, _) in enumerate(of_function_and_axes(nodes[0])):
                yield _at_all(function, nodes, says, _as_call(name, number))


def _as_call(name: str, number: int) -> Rewrite:
    """Return the rewrite of the calls of a function, with the edit of this number."""

    def rewrite(node: ast.AST) -> ast.AST | None:
        if isinstance(node, ast.Call) and called(node) == name:
            others = [new for _, new in of_function_and_axes(node)]
            return others[number] if number < len(others) else None
        return None

    return rewrite


def _at_all(function: Definition, nodes: Sequence[ast.expr], says: str, rewrite: Rewrite) -> Edit:
    """Return the edit that rewrites all places of a function."""
    body = copy.deepcopy(function.body)
    parts = [_Rewriting(rewrite).visit(part) for part in (body if isinstance(body, list) else [body])]
    parts = [ast.fix_missing_locations(part) for part in parts]
    lines = sorted({node.lineno for node in nodes})
    also = f", also in line {' and '.join(map(str, lines[1:]))}" if lines[1:] else " at all places"
    return Edit(says + also, lines[0], ((function, "body", parts if isinstance(body, list) else parts[0]),))


class _Rewriting(ast.NodeTransformer):
    """Rewrites the nodes from the inside to the outside."""

    def __init__(self, rewrite: Rewrite) -> None:
        self.rewrite = rewrite

    def visit(self, node: ast.AST) -> ast.AST:
        inner = super().generic_visit(node)
        return self.rewrite(inner) or inner
