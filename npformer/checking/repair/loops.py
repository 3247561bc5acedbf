"""Edits of loops: over overlapping pairs, and with steps that are all given the same."""

import ast
import copy
from collections.abc import Iterator

from npformer.checking.repair.edit import Definition, Edit, expression, with_names
from npformer.checking.repair.scope import Scope


def of_loops(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edits of a loop over overlapping pairs, and of a loop whose steps are all given the same."""
    for loop in ast.walk(function):
        if isinstance(loop, ast.For):
            yield from _of_pairs(loop)
            yield from _of_steps(function, loop)


def _of_pairs(loop: ast.For) -> Iterator[Edit]:
    """Yield a loop in which the pair i is 2 i and 2 i + 1, for i and i + 1."""
    i = ast.unparse(loop.target)
    subscripts = [node for node in ast.walk(loop) if isinstance(node, ast.Subscript)]
    paired = {ast.unparse(node.value) for node in subscripts if f"{i} + 1" in _parts(node.slice)}
    own = [node for node in subscripts if ast.unparse(node.value) in paired]
    if own:
        twice = {i: expression(f"2 * {i}")}
        changes = [(node, "slice", with_names(copy.deepcopy(node.slice), twice)) for node in own]
        says = f"the pairs {i} and {i} + 1 overlap: each pair must begin two entries after the last"
        yield Edit(says, min(node.lineno for node in own), tuple(changes))


def _parts(index: ast.expr) -> list[str]:
    """Return the texts of the parts of an index."""
    return [ast.unparse(part) for part in (index.elts if isinstance(index, ast.Tuple) else [index])]


def _of_steps(function: Definition, loop: ast.For) -> Iterator[Edit]:
    """Yield a loop in which each step is given the result of the last, for a sum of the steps' results."""
    for statement in loop.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=total)], value=ast.BinOp(left, ast.Add(), value)):
                adds = ast.unparse(left) == total
            case ast.AugAssign(ast.Name(id=total), ast.Add(), value):
                adds = True
            case _:
                continue
        for given in value.args if adds and isinstance(value, ast.Call) else ():
            if isinstance(given, ast.Name):
                yield _chained(function, statement, total, given.id, value)


def _chained(function: Definition, statement: ast.stmt, total: str, given: str, value: ast.expr) -> Edit:
    """Return the edit of given = value for total = total + value, and of given for total after it."""
    later = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Name) and node.id == total and node.lineno > statement.lineno
    ]
    step = ast.Assign([ast.Name(given, ast.Store())], value)
    says = f"each step is given the same {given}, and must be given the result of the step before"
    changes = (*_replaced(function, statement, step), *((node, "id", given) for node in later))
    return Edit(says, statement.lineno, changes)


def _replaced(
    function: Definition, old: ast.stmt, new: ast.stmt
) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
    """Yield the change that puts another statement in the place of one."""
    for node in ast.walk(function):
        body = getattr(node, "body", None)
        if isinstance(body, list) and any(statement is old for statement in body):
            yield node, "body", [new if statement is old else statement for statement in body]
