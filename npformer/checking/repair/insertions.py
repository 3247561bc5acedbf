"""Edits that insert what is missing: a factor, a term, a sum, a sign, or the call of a function."""

import ast
from collections.abc import Iterable, Iterator
from itertools import combinations

from npformer.checking.repair.edit import Reading, Site, expression, is_value, shown
from npformer.checking.repair.scope import Scope

TERMS = (
    ("a + v", "the term {v} is missing"),
    ("a - v", "the term {v} is missing, or is not subtracted"),
)
ENTRY_BY_ENTRY = (
    ("a * v", "the factor {v} is missing"),
    ("a / v", "the division by {v} is missing"),
    *TERMS,
)
OPERATIONS = (
    *ENTRY_BY_ENTRY,
    ("a & v", "the condition {v} is missing"),
    ("a @ v", "the product with {v} is missing"),
    ("a @ v.swapaxes(-1, -2)", "the product with {v} is missing"),
    ("v @ a", "the product with {v} is missing"),
    ("v.swapaxes(-1, -2) @ a", "the product with {v} is missing"),
    ("a * v[..., None]", "the factor {v} is missing"),
    ("a + v[..., None]", "the term {v} is missing"),
)
DERIVATIVES = (
    ("a * (1 - v)", "the factor 1 - {v} is missing"),
    ("a * (1 - v**2)", "the factor 1 - {v}² is missing"),
)
OFTEN_MISSING = (
    ("-a", "the sign of {a} is wrong"),
    ("not a", "the opposite of {a} is needed"),
    ("~a", "the opposite of {a} is needed"),
    ("1 - a", "1 minus {a} is needed"),
    ("a.swapaxes(-1, -2)", "{a} is not transposed"),
    ("a.sum(-1, keepdims=True)", "the sum of {a} over the last axis is missing"),
    ("a.sum(-1)", "the sum of {a} over the last axis is missing"),
    ("a.T", "{a} is not transposed"),
    ("a.sum(1)", "the sum of {a} over axis 1 is missing"),
    ("a.sum(0, keepdims=True)", "the sum of {a} over the first axis is missing"),
    ("a.sum(0)", "the sum of {a} over the first axis is missing"),
    ("a.sum()", "the sum of {a} is missing"),
    ("a / 2", "{a} is twice as large as it should be"),
    ("2 * a", "{a} is half as large as it should be"),
)
MISSING = (
    ("a.conj()", "{a} is not conjugated"),
    ("a.mean(-1, keepdims=True)", "the mean of {a} over the last axis is missing"),
    ("a.mean()", "the mean of {a} is missing"),
    ("a.max(-1, keepdims=True)", "the maximum of {a} over the last axis is missing"),
    ("np.sqrt(a)", "the square root of {a} is missing"),
    ("a**2", "the square of {a} is missing"),
    ("1 / a", "1 divided by {a} is needed"),
    ("np.exp(a)", "exp of {a} is missing"),
    ("np.log(a)", "the logarithm of {a} is missing"),
    ("np.abs(a)", "the absolute value of {a} is missing"),
    ("np.tanh(a)", "tanh of {a} is missing"),
    ("np.maximum(a, 0)", "{a} may be negative"),
    ("min(a, 1)", "{a} may be larger than 1"),
    ("a + 1", "{a} is one less than it should be"),
    ("a - 1", "{a} is one more than it should be"),
    ("100 * a", "the factor 100 is missing"),
    ("a[::-1]", "{a} must be in the reverse order"),
    ("reversed(a)", "{a} must be in the reverse order"),
    ("a[1:]", "the first entry of {a} must be left out"),
    ("a[:-1]", "the last entry of {a} must be left out"),
    ("a[..., None]", "{a} lacks an axis at the end"),
    ("a[:, None]", "{a} lacks an axis"),
    ("a[None]", "{a} lacks an axis at the beginning"),
    ("a.copy()", "{a} is not copied before it is changed"),
    ("list(a)", "{a} must be made a list"),
    ("a.tolist()", "{a} must be made a list"),
    ("float(a)", "{a} must be made a number"),
    ("int(a)", "{a} must be made a whole number"),
    ("a > 0", "it must be compared with 0"),
)
SIZES = ("len(v)", "v.size", "v.shape[-1]", "v.shape[-2]", "math.sqrt(v.shape[-1])")

STATEMENTS = (ast.Assign, ast.AugAssign, ast.Return, ast.Tuple, ast.List, ast.Lambda)


def of_signs_and_sums(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a value with another sign, transposed, summed, doubled or halved."""
    if is_value(site):
        yield from _with_calls(site.node, OFTEN_MISSING)


def of_missing_in_statements(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the whole value of a statement, or a part of a tuple in it, with something more."""
    node = site.node
    if not _is_whole_value(site):
        return
    yield from _with_more(node, scope)
    for name in scope.variables if scope.has_real_results else ():
        for size in SIZES:
            says = f"{shown(node)} is not divided by a number of entries"
            yield says, expression(f"a / {size}", a=node, v=expression(name))
    for function in scope.unused:
        for name in scope.values:
            yield f"the call of {function} is missing", expression(f"{function}(a, {name})", a=node)


def of_missing_ends(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield only the first entries of a variable that is returned."""
    if isinstance(site.node, ast.Name) and isinstance(site.parent, ast.Return):
        for name in scope.variables:
            says = f"only the first {name} entries of {site.node.id} are needed"
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
    yield from _with_calls(node, MISSING)
    if scope.has_real_results:
        operations = (*OPERATIONS, *DERIVATIVES) if scope.has_gradients else OPERATIONS
        yield from _with_operations(node, scope.values, operations)


def _with_calls(node: ast.AST, operations: Iterable[tuple[str, str]]) -> Iterator[Reading]:
    """Yield a value with an operation that needs no other value."""
    for text, says in operations:
        yield says.format(a=shown(node)), expression(text, a=node)


def _with_operations(
    node: ast.AST, values: Iterable[str], operations: Iterable[tuple[str, str]]
) -> Iterator[Reading]:
    """Yield a value with an operation with another value."""
    for value in values:
        v = expression(value)
        for text, says in operations:
            yield f"{says.format(v=value)} at {shown(node)}", expression(text, a=node, v=v)
