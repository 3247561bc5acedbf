"""Edits of a factor that stands in the wrong place: in another statement, or around too little."""

import ast
from collections.abc import Iterator

from npformer.checking.repair.edit import Definition, Edit, Site, is_value, shown, sites
from npformer.checking.repair.scope import Scope

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
    what = f"the {'division by' if isinstance(site.node.op, ast.Div) else 'factor'} {shown(factor)}"
    is_outer = target.statement is site.statement and is_value(target) and _contains(target, site)
    if is_outer and not _is_product(target.node):
        assert isinstance(target.node, ast.expr)
        product = ast.BinOp(target.node, site.node.op, factor)
        (put,) = target.edit("", product).changes
        says = f"{what} belongs to a larger part of the expression"
        yield Edit(says, site.line, (taken, put))
    if isinstance(target.node, Valued) and target.node is not site.statement and target.node.value:
        product = ast.BinOp(target.node.value, site.node.op, factor)
        says = f"{what} belongs to another step, that of line {target.line}"
        yield Edit(says, site.line, (taken, (target.node, "value", product)))


def _contains(outer: Site, inner: Site) -> bool:
    """Return whether a place is inside another one."""
    return outer.node is not inner.node and any(node is inner.node for node in ast.walk(outer.node))


def _is_product(node: ast.AST) -> bool:
    """Return whether a node is a product or a quotient, in which factors may stand anywhere."""
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div)
