"""Edits of operations, signs, comparisons and numbers."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from itertools import combinations

from npformer.checking.repair.edit import Definition, Edit, Reading, Site, expression, shown, sites
from npformer.checking.repair.scope import Scope

POWERS = (-2.0, -1.5, -1.0, -0.5, 0.5, 1.5, 2.0, 3.0)
WITH_AXIS = ("sum", "mean", "max", "min", "argmax", "argmin", "argsort", "var", "std", "concatenate",
             "cumsum", "cumprod", "swapaxes")  # fmt: skip
EXCHANGED_AND_TRANSPOSED = (
    "in the product of {a} and {b}, the matrices are exchanged, and one is not transposed"
)
CONDITIONS = (("a", "the condition {b} is too much"), ("b", "the condition {a} is too much"))
ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
SMALL = (0, 1, -1, 2, -2)


# for each operator of a and b: what may be right instead, and what is then wrong
OPERATIONS: dict[type[ast.operator], tuple[tuple[str, str], ...]] = {
    ast.Add: (
        ("a - b", "the sign of the term {b} is wrong"),
        ("a", "the term {b} is too much"),
        ("b", "the term {a} is too much"),
        ("b - a", "the sign of the term {a} is wrong"),
        ("a * b", "{a} and {b} are added instead of multiplied"),
    ),
    ast.Sub: (
        ("a + b", "the sign of the term {b} is wrong"),
        ("a", "the term {b} is too much"),
        ("-b", "the term {a} is too much"),
        ("b - a", "{a} and {b} are exchanged in the difference"),
        ("-a - b", "the sign of {a} is wrong"),
        ("a * b", "{a} and {b} are subtracted instead of multiplied"),
    ),
    ast.Mult: (
        ("a", "the factor {b} is too much"),
        ("b", "the factor {a} is too much"),
        ("a / b", "it is multiplied by {b} instead of divided"),
        ("b / a", "it is multiplied by {a} instead of divided"),
        ("a + b", "{a} and {b} are multiplied instead of added"),
        ("a - b", "{a} and {b} are multiplied instead of subtracted"),
        ("a @ b", "{a} and {b} are multiplied entry by entry instead of as matrices"),
        ("a ** b", "{a} and {b} are multiplied instead of used as base and power"),
    ),
    ast.Div: (
        ("a", "the division by {b} is too much"),
        ("a * b", "it is divided by {b} instead of multiplied"),
        ("b / a", "the numerator and the denominator are exchanged"),
        ("a // b", "the quotient of {a} and {b} must be rounded down"),
    ),
    ast.MatMult: (
        ("b @ a", "in the product of {a} and {b}, the two matrices are exchanged"),
        ("a.swapaxes(-1, -2) @ b", "in the product of {a} and {b}, the first matrix is not transposed"),
        ("a @ b.swapaxes(-1, -2)", "in the product of {a} and {b}, the second matrix is not transposed"),
        ("b.swapaxes(-1, -2) @ a", EXCHANGED_AND_TRANSPOSED),
        ("b @ a.swapaxes(-1, -2)", EXCHANGED_AND_TRANSPOSED),
        ("b.swapaxes(-1, -2) @ a.swapaxes(-1, -2)", "the product of {a} and {b} is transposed"),
        ("a", "the product with {b} is too much"),
        ("b", "the product with {a} is too much"),
        ("a * b", "in the product of {a} and {b}, matrices are multiplied instead of entries"),
    ),
    ast.Pow: (
        ("a", "the power of {a} is too much"),
        ("a ** -b", "the power of {a} has the wrong sign"),
        *((f"a ** {power}", "{a} is raised to the wrong power") for power in POWERS),
        ("b ** a", "{a} and {b} are exchanged in the power"),
        ("a * b", "a power is used instead of a product"),
    ),
    ast.FloorDiv: (
        ("a / b", "// rounds the quotient of {a} and {b} down, and the exact quotient is needed"),
        ("a % b", "// is used instead of %"),
    ),
    ast.Mod: (("a // b", "% is used instead of //"),),
    ast.BitAnd: (("a | b", "& is used instead of |"), *CONDITIONS),
    ast.BitOr: (("a & b", "| is used instead of &"), *CONDITIONS),
}


def of_operations(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of an operation, a sign or a comparison, and of what a call is applied to."""
    node = site.node
    match node:
        case ast.BinOp(left=a, op=op, right=b):
            names = {"a": shown(a), "b": shown(b)}
            for text, says in OPERATIONS.get(type(op), ()):
                yield says.format(**names), expression(text, a=a, b=b)
            yield from _with_other_parentheses(node)
            yield from _with_more_inside(node)
        case ast.Call(func=func, args=[ast.BinOp(left=a, op=op, right=b)], keywords=[]):
            says = f"{shown(b)} must not be inside the parentheses of {ast.unparse(func)}"
            yield says, ast.BinOp(ast.Call(func, [a], []), op, b)
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield f"the sign of {shown(operand)} is wrong", operand
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            yield f"the condition {shown(operand)} is reversed", operand
        case ast.BoolOp():
            yield from _of_conditions(node)
        case ast.Compare(ops=[_]):
            yield from _of_comparison(node)


def _with_other_parentheses(node: ast.BinOp) -> Iterator[Reading]:
    """Yield (a + b) * c as a + b * c, and a + b * c as (a + b) * c."""
    says = "the parentheses are wrong, or missing"
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
            says = f"{shown(b)} must be inside the parentheses of {ast.unparse(func)}"
            yield says, ast.Call(func, [ast.BinOp(a, op, b)], [])


def _of_conditions(node: ast.BoolOp) -> Iterator[Reading]:
    """Yield the edits of a and b, and a or b."""
    wrong, due = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
    yield (
        f"{wrong} is used instead of {due}",
        ast.BoolOp(ast.Or() if wrong == "and" else ast.And(), node.values),
    )
    if len(node.values) == 2:
        for one, other in (node.values, node.values[::-1]):
            yield f"the condition {shown(one)} is too much", other


def _of_comparison(node: ast.Compare) -> Iterator[Reading]:
    """Yield the edits of a < b, a == b, a in b and a is b."""
    left, (right,), (op,) = node.left, node.comparators, node.ops
    if isinstance(op, ORDERS):
        for other in ORDERS:
            strict, less = isinstance(op, (ast.Lt, ast.Gt)), isinstance(op, (ast.Lt, ast.LtE))
            if other is type(op):
                continue
            same_direction = less == (other in (ast.Lt, ast.LtE))
            edge = "must be true" if strict else "must be false"
            says = f"the comparison {shown(node)} {edge} in the case of equality"
            yield (
                says if same_direction else f"the comparison {shown(node)} is reversed",
                ast.Compare(left, [other()], [right]),
            )
        for op_text in ("+", "-"):
            moved = expression(f"b {op_text} 1", b=right)
            yield f"the comparison {shown(node)} is wrong by one", ast.Compare(left, [op], [moved])
    if isinstance(op, ast.Eq):
        for other in ORDERS:
            says = f"the comparison {shown(node)} must be true not only in the case of equality"
            yield says, ast.Compare(left, [other()], [right])
    opposite = {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.In: ast.NotIn, ast.NotIn: ast.In,
                ast.Is: ast.IsNot, ast.IsNot: ast.Is}  # fmt: skip
    if type(op) in opposite:
        new = ast.Compare(left, [opposite[type(op)]()], [right])
        yield f"the condition {shown(node)} is reversed", new


def of_shifted_comparisons(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a - v < b for a < b: a cumulative sum, for example, that must not contain the entry itself."""
    match site.node:
        case ast.Compare(left=left, ops=[op], comparators=[right]) if isinstance(op, ORDERS):
            if not scope.has_real_results:
                return
            less = isinstance(op, (ast.Lt, ast.LtE))
            for name in scope.variables:
                says = f"{name} must be subtracted in the comparison {shown(site.node)}"
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
            yield f"{value} is the opposite of what is needed", ast.Constant(not value)
        case ast.Constant(value=int() | float() as number) if not isinstance(site.parent, ast.UnaryOp):
            yield from _of_number(site, number)
        case ast.Constant(value=str() as value) if "->" in value:
            yield from _of_einsum(value)
        case ast.Constant(value=str() as value):
            for other in scope.strings:
                if other != value:
                    yield f"the string {value!r} is the wrong one", ast.Constant(other)


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
            yield f"the indices {value!r} are in the wrong order", ast.Constant("".join(letters))


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
                yield from _renumbered(f"{says} at all places", value, within, statement)
        lines = " and ".join(dict.fromkeys(str(site.line) for site in equal[1:]))
        if len(equal) > 1:
            yield from _renumbered(f"{says}, also in line {lines}", value, equal, None)


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
    return f"axis {number} is the wrong axis" if is_axis(site) else f"the number {number} is wrong"


def is_axis(site: Site) -> bool:
    """Return whether a constant is an axis: axis=0, or the first argument of x.sum(0)."""
    parent = site.parent
    if isinstance(parent, ast.keyword):
        return parent.arg == "axis"
    match parent:
        case ast.Call(func=ast.Attribute(attr=name)):
            return name in WITH_AXIS and site.field == "args"
    return False
