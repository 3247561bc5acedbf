"""Edits of formulas: the derivative of a softmax, and a masked gradient."""

import ast
from collections.abc import Iterator

from npformer.checking.repair.edit import Reading, Site, expression, shown
from npformer.checking.repair.scope import Scope

WITHOUT_DIAGONAL = "only the diagonal y (1 - y) of the softmax's derivative is used: its row sum is missing"


def of_formulas(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of a softmax's derivative, and of a masked gradient."""
    match site.node:
        case ast.BinOp(op=ast.Mult()):
            yield from _of_softmax(site.node)
        case ast.BinOp(left=a, op=ast.Add(), right=ast.Call(args=[mask, _, _]) as call):
            if ast.unparse(call.func) == "np.where":
                says = f"{shown(call)} is added, but the result must be 0 where {shown(mask)} is "
                yield says + "false", expression("a * m", a=a, m=mask)
                yield says + "true", expression("a * ~m", a=a, m=mask)


def _of_softmax(product: ast.BinOp) -> Iterator[Reading]:
    """Yield y * (x - (x * y).sum(-1, keepdims=True)) for the product x * y * (1 - y)."""
    factors = list(_factors(product))
    texts = [ast.unparse(factor) for factor in factors]
    for y in texts:
        opposite = f"1 - {y}"
        if len(factors) > 2 and opposite in texts:
            others = [
                factor for factor, text in zip(factors, texts, strict=True) if text not in (y, opposite)
            ]
            x = others[0]
            for other in others[1:]:
                x = ast.BinOp(x, ast.Mult(), other)
            new = expression("y * (x - (x * y).sum(-1, keepdims=True))", x=x, y=expression(y))
            yield WITHOUT_DIAGONAL, new


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the factors of a product."""
    match node:
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            yield from _factors(a)
            yield from _factors(b)
        case _:
            yield node
