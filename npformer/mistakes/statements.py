"""Edits of statements: too many, in the wrong place, or of the wrong kind, and edits of whole functions."""

import ast
import copy
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from npformer.language import say
from npformer.mistakes.calls import called, of_function_and_axes
from npformer.mistakes.operators import OPERATIONS, STEPS, Change, repairs
from npformer.mistakes.scope import Scope
from npformer.mistakes.syntax import (
    SHORT,
    Definition,
    Edit,
    Reading,
    Site,
    expression,
    is_value,
    kind_of,
    shown,
    sites,
    with_names,
)

Block = ast.For | ast.While | ast.If


def of_opposites(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a -= b for a += b, and so on."""
    yield from repairs(STEPS, site.node)


def of_conditions(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of if, of a if b else c, and of the condition in a comprehension."""
    match site.node:
        case ast.If() | ast.IfExp():
            yield from _of_condition(site.node)
        case ast.comprehension(target=target, iter=values, ifs=[condition]):
            says = say("the condition {condition} leaves out too much", condition=shown(condition))
            yield says, ast.comprehension(target, values, [], 0)


def of_statements(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of a statement."""
    node = site.node
    if isinstance(node, (ast.AugAssign, ast.Assign, ast.Expr, ast.If, ast.Break, ast.Continue, ast.For)):
        text = ast.unparse(node)
        step = say("this step") if "\n" in text or len(text) > SHORT else say("the step {text}", text=text)
        yield say("{step} should not be there", step=step), ast.Pass()
    match node:
        case ast.AugAssign():
            yield (
                say("{target} must be set (=) and not changed", target=shown(node.target)),
                ast.Assign([node.target], node.value),
            )
        case ast.Assign(targets=[target]):
            yield from _of_assignment(node, target)


def _of_assignment(node: ast.Assign, target: ast.expr) -> Iterator[Reading]:
    """Yield the edits of a = b."""
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        new = ast.AugAssign(target, ast.Add(), node.value)
        yield say("{target} is overwritten (=), and must be added to (+=)", target=shown(target)), new
        where = ast.Subscript(expression(ast.unparse(target)), ast.Constant(...), ast.Store())
        says = say("{target} becomes a new array, and must be changed in place", target=shown(target))
        yield says, ast.Assign([where], node.value)


def _of_condition(node: ast.If | ast.IfExp) -> Iterator[Reading]:
    """Yield the edits of if and of a if b else c."""
    test = node.test
    condition = shown(test)

    def with_test(new: ast.expr) -> ast.AST:
        if isinstance(node, ast.If):
            return ast.If(new, node.body, node.orelse)
        return ast.IfExp(new, node.body, node.orelse)

    if isinstance(test, (ast.Name, ast.Attribute, ast.Subscript)):
        says = say(
            "{condition} may be 0, which counts as false: the test must be whether it is None",
            condition=condition,
        )
        yield says, with_test(expression("a is not None", a=test))
    yield (
        say("the condition {condition} is reversed", condition=condition),
        with_test(ast.UnaryOp(ast.Not(), test)),
    )
    yield (
        say("the condition {condition} should not be there: this case is always right", condition=condition),
        with_test(ast.Constant(True)),
    )
    if isinstance(node, ast.IfExp):
        yield (
            say(
                "the case {condition} should not be there: the other case is always right",
                condition=condition,
            ),
            node.orelse,
        )


def of_order(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edits that move a statement within its block, into a loop, or out of it."""
    for node in ast.walk(function):
        for field in ("body", "orelse"):
            block = getattr(node, field, None)
            if isinstance(block, list) and not isinstance(node, ast.Lambda):
                yield from _moves(node, field, block)
                yield from _over_the_border(node, field, block)


def _moves(node: ast.AST, field: str, block: list[ast.stmt]) -> Iterator[Edit]:
    """Yield the edits that move one statement of a block."""
    for old, statement in enumerate(block):
        others = [*block[:old], *block[old + 1 :]]
        for new in range(len(block)):
            if new != old:
                moved = [*others[:new], statement, *others[new:]]
                when = say("late") if new < old else say("early")
                yield Edit(
                    say("this step comes too {when}", when=when), statement.lineno, ((node, field, moved),)
                )


def _over_the_border(node: ast.AST, field: str, block: list[ast.stmt]) -> Iterator[Edit]:
    """Yield the edits that move a statement out of a block inside, or the next one into it."""
    for index, inner in enumerate(block):
        if not isinstance(inner, Block):
            continue
        *rest, last = inner.body
        if rest:
            moved = [*block[: index + 1], last, *block[index + 1 :]]
            says = say("this step must come after the block, and not in it (is its indentation wrong?)")
            yield Edit(says, last.lineno, ((inner, "body", rest), (node, field, moved)))
            first, *others = inner.body
            moved = [*block[:index], first, *block[index:]]
            says = say("this step must come before the block, and not in it")
            yield Edit(says, first.lineno, ((inner, "body", others), (node, field, moved)))
        for following in block[index + 1 : index + 2]:
            says = say("this step must come in the block before it (is its indentation wrong?)")
            shorter = [*block[: index + 1], *block[index + 2 :]]
            changes = ((inner, "body", [*inner.body, following]), (node, field, shorter))
            yield Edit(says, following.lineno, changes)


# ---------------------------------------------------------------------------------------------------------
# Loops: over overlapping pairs, and with steps that are all given the same


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
        changes = [(node, "slice", with_names(node.slice, twice)) for node in own]
        says = say("the pairs {i} and {i} + 1 overlap: each pair must begin two entries after the last", i=i)
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
    says = say(
        "each step is given the same {given}, and must be given the result of the step before", given=given
    )
    changes = (*_replaced(function, statement, step), *((node, "id", given) for node in later))
    return Edit(says, statement.lineno, changes)


def _replaced(
    function: Definition, old: ast.stmt, new: ast.stmt
) -> Iterator[tuple[ast.AST, str, list[ast.stmt]]]:
    """Yield the change that replaces a statement by another."""
    for node in ast.walk(function):
        body = getattr(node, "body", None)
        if isinstance(body, list) and any(statement is old for statement in body):
            yield node, "body", [new if statement is old else statement for statement in body]


# ---------------------------------------------------------------------------------------------------------
# Factors that stand in the wrong place: in another statement, or around too little


Valued = ast.Assign | ast.AugAssign | ast.Return


def of_misplaced_factors(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edits that move a factor or a divisor to an outer expression, or to another statement."""
    if not scope.has_real_results:
        return
    found = list(sites(function))
    for site in found:
        match site.node:
            case ast.BinOp(left=a, op=ast.Mult() | ast.Div() as op, right=b):
                moves = [(b, a)] if isinstance(op, ast.Div) else [(b, a), (a, b)]
                for factor, rest in moves:
                    for target in found:
                        yield from _moved(site, factor, rest, target)


def _moved(site: Site, factor: ast.expr, rest: ast.expr, target: Site) -> Iterator[Edit]:
    """Yield the edit that takes a factor out of a product and multiplies another value by it.

    Args:
        site: The product, or the quotient.
        factor: The factor, or the divisor.
        rest: What remains of the product without it.
        target: The place of the other value.
    """
    assert isinstance(site.node, ast.BinOp)
    (taken,) = site.edit("", rest).changes
    is_divisor = isinstance(site.node.op, ast.Div)
    what = (
        say("the division by {factor}", factor=shown(factor))
        if is_divisor
        else say("the factor {factor}", factor=shown(factor))
    )
    is_outer = target.statement is site.statement and is_value(target) and _contains(target, site)
    if is_outer and not _is_product(target.node):
        assert isinstance(target.node, ast.expr)
        product = ast.BinOp(target.node, site.node.op, factor)
        (put,) = target.edit("", product).changes
        says = say("{what} belongs to a larger part of the expression", what=what)
        yield Edit(says, site.line, (taken, put))
    if isinstance(target.node, Valued) and target.node is not site.statement and target.node.value:
        product = ast.BinOp(target.node.value, site.node.op, factor)
        says = say("{what} belongs to another step, that of line {line}", what=what, line=target.line)
        yield Edit(says, site.line, (taken, (target.node, "value", product)))


def _contains(outer: Site, inner: Site) -> bool:
    """Return whether a place is inside another one."""
    return outer.node is not inner.node and any(node is inner.node for node in ast.walk(outer.node))


def _is_product(node: ast.AST) -> bool:
    """Return whether a node is a product or a quotient, in which factors may stand anywhere."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)


# ---------------------------------------------------------------------------------------------------------
# Mistakes that were made at all places of a function


Rewrite: TypeAlias = Callable[[ast.AST], ast.AST | None]  # returns another node, or None to keep the node


def of_all_operations(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edits of all operations of one kind in a function, such as all products."""
    places: dict[tuple[type, type], list[ast.BinOp]] = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp):
            places[kind_of(node)].append(node)
    for nodes in places.values():
        for row in OPERATIONS if len(nodes) > 1 else ():
            for says, _ in repairs([row], nodes[0]):
                yield _at_all(function, nodes, says, _as_operation(row))


def _as_operation(row: Change) -> Rewrite:
    """Return the rewrite of the wrong code of a row as the right one."""

    def rewrite(node: ast.AST) -> ast.AST | None:
        return next((new for _, new in repairs([row], node)), None)

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
    also = say(" at all places")
    if lines[1:]:
        also = say(", also in line {names}", names=say(" and ").join(map(str, lines[1:])))
    return Edit(says + also, lines[0], ((function, "body", parts if isinstance(body, list) else parts[0]),))


class _Rewriting(ast.NodeTransformer):
    """Rewrites the nodes from the inside to the outside."""

    def __init__(self, rewrite: Rewrite) -> None:
        self.rewrite = rewrite

    def visit(self, node: ast.AST) -> ast.AST:
        inner = super().generic_visit(node)
        return self.rewrite(inner) or inner
