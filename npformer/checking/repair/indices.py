"""Edits of indices: a fixed index where the counter of a loop is needed, such as 0 instead of i."""

import ast
from collections.abc import Iterator

from npformer.checking.repair.edit import Reading, Site, expression
from npformer.checking.repair.scope import Scope


def of_counters(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield x[i] for x[0], and x[2 * i : 2 * i + 2] for x[:2]."""
    match site.node:
        case ast.Constant(value=int() as number) if isinstance(site.parent, ast.Subscript | ast.Tuple):
            for counter in scope.counters:
                yield f"the index {number} is used instead of {counter}", expression(counter)
        case ast.Slice(lower=None | ast.Constant(value=0), upper=ast.Constant(value=int() as n), step=None):
            for counter in scope.counters:
                start = counter if n == 1 else f"{n} * {counter}"
                part = ast.Slice(expression(start), expression(f"{start} + {n}"))
                yield f"the part :{n} is used instead of the one that belongs to {counter}", part
