"""Edits of statements: too many, in the wrong place, or of the wrong kind."""

import ast
from collections.abc import Iterator

from npformer.checking.repair.edit import SHORT, Definition, Edit, Reading, Site, expression, shown
from npformer.checking.repair.scope import Scope

OPPOSITE = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
Block = ast.For | ast.While | ast.If


def of_opposites(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a -= b for a += b, and so on."""
    match site.node:
        case ast.AugAssign(target=target, op=op, value=value) if type(op) in OPPOSITE:
            says = f"the wrong operation changes {shown(target)}: the opposite is needed"
            yield says, ast.AugAssign(target, OPPOSITE[type(op)](), value)


def of_conditions(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of if, of a if b else c, and of the condition in a comprehension."""
    match site.node:
        case ast.If() | ast.IfExp():
            yield from _of_condition(site.node)
        case ast.comprehension(target=target, iter=values, ifs=[condition]):
            says = f"the condition {shown(condition)} leaves out too much"
            yield says, ast.comprehension(target, values, [], 0)


def of_statements(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of a statement."""
    node = site.node
    if isinstance(node, (ast.AugAssign, ast.Assign, ast.Expr, ast.If, ast.Break, ast.Continue, ast.For)):
        text = ast.unparse(node)
        step = "this step" if "\n" in text or len(text) > SHORT else f"the step {text}"
        yield f"{step} is too much", ast.Pass()
    match node:
        case ast.AugAssign():
            yield from _of_step(node)
        case ast.Assign(targets=[target]):
            yield from _of_assignment(node, target)


def _of_step(node: ast.AugAssign) -> Iterator[Reading]:
    """Yield the edits of a += b and so on."""
    yield f"{shown(node.target)} must be set (=) and not changed", ast.Assign([node.target], node.value)
    if isinstance(node.target, ast.Subscript) and isinstance(node.op, ast.Add):
        add = expression("np.add.at(a, i, v)", a=node.target.value, i=node.target.slice, v=node.value)
        yield "of equal indices only one is added by [...] +=", ast.Expr(add)


def _of_assignment(node: ast.Assign, target: ast.expr) -> Iterator[Reading]:
    """Yield the edits of a = b."""
    if isinstance(target, (ast.Name, ast.Attribute, ast.Subscript)):
        new = ast.AugAssign(target, ast.Add(), node.value)
        yield f"{shown(target)} is overwritten (=), and must be added to (+=)", new
        where = ast.Subscript(expression(ast.unparse(target)), ast.Constant(...), ast.Store())
        says = f"{shown(target)} becomes a new array, and must be changed in place"
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
        says = f"{condition} may be 0, which counts as false: the test must be whether it is None"
        yield says, with_test(expression("a is not None", a=test))
    yield f"the condition {condition} is reversed", with_test(ast.UnaryOp(ast.Not(), test))
    yield f"the condition {condition} is too much: this case is right always", with_test(ast.Constant(True))
    if isinstance(node, ast.IfExp):
        yield f"the case {condition} is too much: the other one is right always", node.orelse


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
                when = "late" if new < old else "early"
                yield Edit(f"this step comes too {when}", statement.lineno, ((node, field, moved),))


def _over_the_border(node: ast.AST, field: str, block: list[ast.stmt]) -> Iterator[Edit]:
    """Yield the edits that move a statement out of a block inside, or the next one into it."""
    for index, inner in enumerate(block):
        if not isinstance(inner, Block):
            continue
        *rest, last = inner.body
        if rest:
            moved = [*block[: index + 1], last, *block[index + 1 :]]
            says = "this step must come after the block, and not in it (is its indentation wrong?)"
            yield Edit(says, last.lineno, ((inner, "body", rest), (node, field, moved)))
            first, *others = inner.body
            moved = [*block[:index], first, *block[index:]]
            says = "this step must come before the block, and not in it"
            yield Edit(says, first.lineno, ((inner, "body", others), (node, field, moved)))
        for following in block[index + 1 : index + 2]:
            says = "this step must come in the block before it (is its indentation wrong?)"
            shorter = [*block[: index + 1], *block[index + 2 :]]
            changes = ((inner, "body", [*inner.body, following]), (node, field, shorter))
            yield Edit(says, following.lineno, changes)
