"""Edits of expressions: operations, signs, comparisons, numbers, formulas, and what is missing in a value."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from npformer.language import GRADER, later, phrase, say
from npformer.mistakes.operators import (
    COMPARISONS,
    DERIVATIVES,
    ENTRY_BY_ENTRY,
    MISSING,
    MISSING_VALUES,
    OFTEN_MISSING,
    OPERATIONS,
    TERMS,
    Change,
    repairs,
)
from npformer.mistakes.scope import Scope
from npformer.mistakes.syntax import (
    Definition,
    Edit,
    Reading,
    Site,
    expression,
    filled,
    is_value,
    matched,
    shown,
    sites,
)

WITH_AXIS = ("sum", "mean", "max", "min", "argmax", "argmin", "argsort", "var", "std", "concatenate",
             "cumsum", "cumprod", "swapaxes")  # fmt: skip
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
SMALL = (0, 1, -1, 2, -2)


def of_operations(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of an operation, a sign or a comparison, and of what a call is applied to."""
    node = site.node
    match node:
        case ast.BinOp():
            yield from repairs(OPERATIONS, node)
            yield from _with_other_parentheses(node)
            yield from _with_more_inside(node)
        case ast.Call(func=func, args=[ast.BinOp(left=a, op=op, right=b)], keywords=[]):
            says = say(
                "{b} must not be inside the parentheses of {function}", b=shown(b), function=ast.unparse(func)
            )
            yield says, ast.BinOp(ast.Call(func, [a], []), op, b)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield say("the sign of {operand} is wrong", operand=shown(operand)), operand
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            yield say("the condition {operand} is reversed", operand=shown(operand)), operand
        case ast.BoolOp():
            yield from _of_conditions(node)
        case ast.Compare(ops=[_]):
            yield from _of_comparison(node)


def _with_other_parentheses(node: ast.BinOp) -> Iterator[Reading]:
    """Yield (a + b) * c as a + b * c, and a + b * c as (a + b) * c."""
    says = say("the parentheses are wrong, or missing")
    match node:
        case ast.BinOp(left=ast.BinOp(left=a, op=first, right=b), op=second, right=c):
            yield says, ast.BinOp(a, first, ast.BinOp(b, second, c))
    match node:
        case ast.BinOp(left=a, op=first, right=ast.BinOp(left=b, op=second, right=c)):
            yield says, ast.BinOp(ast.BinOp(a, first, b), second, c)


def _with_more_inside(node: ast.BinOp) -> Iterator[Reading]:
    """Yield f(a) + b as f(a + b)."""
    match node:
        case ast.BinOp(left=ast.Call(func=func, args=[a], keywords=[]), op=op, right=b):
            says = say(
                "{b} must be inside the parentheses of {function}", b=shown(b), function=ast.unparse(func)
            )
            yield says, ast.Call(func, [ast.BinOp(a, op, b)], [])


def _of_conditions(node: ast.BoolOp) -> Iterator[Reading]:
    """Yield the edits of a and b, and a or b."""
    wrong, due = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    yield (
        say("{wrong} is used instead of {due}", wrong=wrong, due=due),
        ast.BoolOp(ast.Or() if wrong == "and" else ast.And(), node.values),
    )
    if len(node.values) == 2:
        for one, other in (node.values, node.values[::-1]):
            yield say("the condition {one} should not be there", one=shown(one)), other


def _of_comparison(node: ast.Compare) -> Iterator[Reading]:
    """Yield the edits of a < b, a == b, a in b and a is b."""
    left, (right,), (op,) = node.left, node.comparators, node.ops
    if isinstance(op, ORDERS):
        for other in ORDERS:
            strict, less = isinstance(op, (ast.Lt, ast.Gt)), isinstance(op, (ast.Lt, ast.LtE))
            if other is type(op):
                continue
            same_direction = less == (other in (ast.Lt, ast.LtE))
            edge = say("must be true") if strict else say("must be false")
            says = say("the comparison {node} {edge} in the case of equality", node=shown(node), edge=edge)
            yield (
                says if same_direction else say("the comparison {node} is reversed", node=shown(node)),
                ast.Compare(left, [other()], [right]),
            )
        for op_text in ("+", "-"):
            moved = expression(f"b {op_text} 1", b=right)
            yield (
                say("the comparison {node} is wrong by one", node=shown(node)),
                ast.Compare(left, [op], [moved]),
            )
    if isinstance(op, ast.Eq):
        for other in ORDERS:
            says = say(
                "the comparison {node} must be true not only in the case of equality", node=shown(node)
            )
            yield says, ast.Compare(left, [other()], [right])
    if not isinstance(op, ORDERS):
        new = ast.Compare(left, [COMPARISONS[type(op)][0]()], [right])
        yield say("the condition {node} is reversed", node=shown(node)), new


def of_shifted_comparisons(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a - v < b for a < b: a cumulative sum, for example, that must not contain the entry itself."""
    match site.node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, ORDERS):
            if not scope.has_real_results:
                return
            less = isinstance(op, (ast.Lt, ast.LtE))
            for name in scope.variables:
                says = say(
                    "{name} must be subtracted in the comparison {node}", name=name, node=shown(site.node)
                )
                for other in (ast.Lt, ast.LtE) if less else (ast.Gt, ast.GtE):
                    smaller = expression(f"a - {name}", a=left)
                    yield says, ast.Compare(smaller, [other()], [right])
                    smaller = expression(f"a - {name}", a=right)
                    yield says, ast.Compare(left, [other()], [smaller])


def of_constants(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of a number and its sign, of True and False, and of a string."""
    match site.node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            yield from _of_number(site, -number)
        case ast.Constant(value=bool() as value):
            yield say("{value} is the opposite of what is needed", value=value), ast.Constant(not value)
        case ast.Constant(value=int() | float() as number) if not isinstance(site.parent, ast.UnaryOp):
            yield from _of_number(site, number)
        case ast.Constant(value=str() as value) if "->" in value:
            yield from _of_einsum(value)
        case ast.Constant(value=str() as value):
            for other in scope.strings:
                if other != value:
                    yield say("the string {value!r} is the wrong one", value=value), ast.Constant(other)


def _of_number(site: Site, number: int | float) -> Iterator[Reading]:
    """Yield the edits of a number."""
    for other in _other_numbers(number):
        yield _wrong_number(site, number), ast.Constant(other)
    if is_axis(site):
        yield _wrong_number(site, number), ast.Constant(None)


def _of_einsum(value: str) -> Iterator[Reading]:
    """Yield the indices of np.einsum with two letters exchanged."""
    for a, b in combinations(range(len(value)), 2):
        if value[a].isalpha() and value[b].isalpha() and value[a] != value[b]:
            letters = list(value)
            letters[a], letters[b] = value[b], value[a]
            yield (
                say("the indices {value!r} are in the wrong order", value=value),
                ast.Constant("".join(letters)),
            )


def of_equal_numbers(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edits of a number that occurs several times, in all places of a statement or a function."""
    found: dict[tuple[str, int | float], list[Site]] = defaultdict(list)
    for site in sites(function):
        match site.node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                found[_wrong_number(site, value), value].append(site)
    for (says, value), equal in found.items():
        for statement in dict.fromkeys(site.statement for site in equal):
            within = [site for site in equal if site.statement is statement]
            if 1 < len(within) < len(equal):
                yield from _renumbered(say("{says} at all places", says=says), value, within, statement)
        lines = say(" and ").join(dict.fromkeys(str(site.line) for site in equal[1:]))
        if len(equal) > 1:
            yield from _renumbered(
                say("{says}, also in line {lines}", says=says, lines=lines), value, equal, None
            )


def _renumbered(
    says: str, value: int | float, places: list[Site], statement: ast.AST | None
) -> Iterator[Edit]:
    """Yield the edits of a number in several places."""
    for number in _other_numbers(value):
        changes = tuple((site.node, "value", number) for site in places)
        yield Edit(says, places[0].line, changes, statement)


def _other_numbers(value: int | float) -> list[int | float]:
    """Return the numbers that may be meant instead of another one."""
    near = dict.fromkeys((value + 1, value - 1, *SMALL, -value, 2 * value, value / 2))
    if isinstance(value, float):
        return [number for number in near if number != value]
    return [int(number) for number in near if number != value and number == int(number)]


def _wrong_number(site: Site, value: int | float) -> str:
    """Return a sentence that says that a number is wrong."""
    number = f"-{value}" if isinstance(site.parent, ast.UnaryOp) else str(value)
    return (
        say("axis {number} is the wrong axis", number=number)
        if is_axis(site)
        else say("the number {number} is wrong", number=number)
    )


def is_axis(site: Site) -> bool:
    """Return whether a constant is an axis: axis=0, or the first argument of x.sum(0)."""
    parent = site.parent
    if isinstance(parent, ast.keyword):
        return parent.arg == "axis"
    match parent:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in WITH_AXIS and site.field == "args"
    return False


# ---------------------------------------------------------------------------------------------------------
# What is missing: a factor, a term, a sum, a sign, or the call of a function


SIZES = ("len(v)", "v.size", "v.shape[-1]", "v.shape[-2]", "math.sqrt(v.shape[-1])")

STATEMENTS = (ast.Assign, ast.AugAssign, ast.Return, ast.Tuple, ast.List, ast.Lambda)


def of_signs_and_sums(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a value with another sign, transposed, summed, doubled or halved."""
    if is_value(site):
        yield from repairs(OFTEN_MISSING, site.node)


def of_missing_in_statements(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the whole value of a statement, or a part of a tuple in it, with something more."""
    node = site.node
    if not _is_whole_value(site):
        return
    yield from _with_more(node, scope)
    for name in scope.variables if scope.has_real_results else ():
        for size in SIZES:
            says = say("{node} is not divided by a number of entries", node=shown(node))
            yield says, expression(f"a / {size}", a=node, v=expression(name))
    for function in scope.unused:
        for name in scope.values:
            yield (
                say("the call of {function} is missing", function=function),
                expression(f"{function}(a, {name})", a=node),
            )


def of_missing_ends(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield only the first entries of a variable that is returned."""
    if isinstance(site.node, ast.Name) and isinstance(site.parent, ast.Return):
        for name in scope.variables:
            says = say(
                "only the first {name} entries of {variable} are needed", name=name, variable=site.node.id
            )
            yield says, expression(f"a[:{name}]", a=site.node)


def of_missing_inside(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a value inside an expression with something more."""
    if is_value(site) and not _is_whole_value(site):
        yield from _with_more(site.node, scope)


def of_missing_expressions(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the whole value of a statement with a longer expression more."""
    if _is_whole_value(site):
        yield from _with_operations(site.node, scope.parts, ENTRY_BY_ENTRY)


def of_missing_expressions_inside(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a value inside an expression with a longer expression more."""
    if is_value(site) and not _is_whole_value(site):
        yield from _with_operations(site.node, scope.parts, ENTRY_BY_ENTRY)


def of_missing_products(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the whole value of a statement with one more term, the product of two values."""
    if _is_whole_value(site) and scope.has_real_results:
        products = [f"{a} * {b}" for a, b in combinations(scope.values, 2)]
        yield from _with_operations(site.node, products, TERMS)


def _is_whole_value(site: Site) -> bool:
    """Return whether a node is the value of a statement, or a part of a tuple or an argument in it."""
    statement = site.statement
    is_argument = isinstance(statement, ast.Expr) and site.parent is statement.value
    return is_value(site) and (isinstance(site.parent, STATEMENTS) or is_argument)


def _with_more(node: ast.AST, scope: Scope) -> Iterator[Reading]:
    """Yield a value with an operation more."""
    yield from repairs(MISSING, node)
    if scope.has_real_results:
        operations = (*MISSING_VALUES, *DERIVATIVES) if scope.has_gradients else MISSING_VALUES
        yield from _with_operations(node, scope.values, operations)


def _with_operations(node: ast.AST, values: Iterable[str], operations: Iterable[Change]) -> Iterator[Reading]:
    """Yield a value with an operation with another value."""
    for value in values:
        v = expression(value)
        for row in operations:
            yield (
                say("{says} at {node}", says=phrase(row.says, GRADER, V=value), node=shown(node)),
                filled(row.right, {"A": node, "V": v}),
            )


# ---------------------------------------------------------------------------------------------------------
# Formulas: the derivative of a softmax, and a masked gradient


JACOBIAN_CODE = "np.diag(A) - np.outer(A, A)"
PRODUCTS = ("J @ D", "D @ J", "J * D", "D * J")
JACOBIAN_PRODUCTS = [code.replace("J", f"({JACOBIAN_CODE})") for code in PRODUCTS]
JACOBIAN = later(
    "np.diag(y) - np.outer(y, y) is the Jacobian of one row: the product with dy is needed for each row"
)
OF_SOFTMAX = "A * (D - (D * A).sum(-1, keepdims=True))"
WITHOUT_DIAGONAL = later(
    "only the diagonal y (1 - y) of the softmax's derivative is used: its row sum is missing"
)


def of_jacobians(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the derivative of a softmax along each row for np.diag(y) - np.outer(y, y)."""
    found = list(sites(function))
    for site in found:
        for code in JACOBIAN_PRODUCTS:
            if parts := matched(code, site.node):
                yield site.edit(phrase(JACOBIAN, GRADER), filled(OF_SOFTMAX, parts))
        if parts := matched(JACOBIAN_CODE, site.node):
            for name in scope.variables:
                yield site.edit(phrase(JACOBIAN, GRADER), filled(OF_SOFTMAX, parts | {"D": expression(name)}))
            match site.parent:
                case ast.Assign(targets=[ast.Name(id=jacobian)]):
                    yield from _where_used(site, jacobian, parts["A"], found)


def _where_used(site: Site, jacobian: str, y: ast.expr, found: list[Site]) -> Iterator[Edit]:
    """Yield the same edit where the Jacobian is a variable, at the place of its product."""
    for use in found:
        for code in PRODUCTS:
            parts = matched(code, use.node)
            if parts and ast.unparse(parts["J"]) == jacobian:
                used = use.edit(phrase(JACOBIAN, GRADER), filled(OF_SOFTMAX, {"A": y, "D": parts["D"]}))
                yield replace(used, line=site.line, changes=(*used.changes, *site.edit("", y).changes))


def of_formulas(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of a softmax's derivative, and of a masked gradient."""
    match site.node:
        case ast.BinOp(op=ast.Mult()):
            yield from _of_softmax(site.node)
        case ast.BinOp(left=a, op=ast.Add(), right=ast.Call(args=[mask, _, _]) as call):
            if ast.unparse(call.func) == "np.where":
                values = {"call": shown(call), "mask": shown(mask)}
                says = say("{call} is added, but the result must be 0 where {mask} is false", **values)
                yield says, expression("a * m", a=a, m=mask)
                says = say("{call} is added, but the result must be 0 where {mask} is true", **values)
                yield says, expression("a * ~m", a=a, m=mask)


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
            yield phrase(WITHOUT_DIAGONAL, GRADER), new


def _factors(node: ast.expr) -> Iterator[ast.expr]:
    """Yield the factors of a product."""
    match node:
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            yield from _factors(a)
            yield from _factors(b)
        case _:
            yield node


# ---------------------------------------------------------------------------------------------------------
# Indices: a fixed index where the counter of a loop is needed


def of_counters(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield x[i] for x[0], and x[2 * i : 2 * i + 2] for x[:2]."""
    match site.node:
        case ast.Constant(value=int() as number) if isinstance(site.parent, ast.Subscript | ast.Tuple):
            for counter in scope.counters:
                yield (
                    say("the index {number} is used instead of {counter}", number=number, counter=counter),
                    expression(counter),
                )
        case ast.Slice(lower=None | ast.Constant(value=0), upper=ast.Constant(value=int() as n), step=None):
            for counter in scope.counters:
                start = counter if n == 1 else f"{n} * {counter}"
                part = ast.Slice(expression(start), expression(f"{start} + {n}"))
                yield (
                    say(
                        "the part :{n} is used instead of the one that belongs to {counter}",
                        n=n,
                        counter=counter,
                    ),
                    part,
                )
