"""Edits of names: one name or expression instead of another, and names in the wrong order."""

import ast
from collections import Counter
from collections.abc import Iterator
from itertools import combinations, permutations

from npformer.language import say
from npformer.mistakes.scope import Numbers, Scope
from npformer.mistakes.syntax import (
    Definition,
    Edit,
    Reading,
    Site,
    expression,
    is_module,
    is_value,
    shown,
    with_names,
)

LONGEST = 4  # elements of a tuple whose orders are all tried


def of_names(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of a name, an attribute, or a tuple or list of several values."""
    match site.node:
        case ast.Name(id=name, ctx=ast.Load()) if name in scope.variables and not _is_test(site):
            for other in scope.values:
                if other != name:
                    yield say("{name} is used instead of {other}", name=name, other=other), expression(other)
        case ast.Attribute(value=base, attr=name, ctx=context):
            for other in scope.attributes.get(ast.unparse(base), ()):
                if other != name:
                    says = say(
                        "{node} is used instead of {base}.{other}",
                        node=shown(site.node),
                        base=shown(base),
                        other=other,
                    )
                    yield says, ast.Attribute(base, other, context)
            if isinstance(context, ast.Load) and ast.unparse(site.node) in scope.values:
                for other in scope.variables:
                    yield (
                        say("{node} is used instead of {other}", node=shown(site.node), other=other),
                        expression(other),
                    )
        case ast.Tuple(elts=elements, ctx=context) if 1 < len(elements) <= LONGEST:
            returned = isinstance(site.parent, ast.Return)
            what = (
                say("the returned values")
                if returned
                else say("the parts of ({parts})", parts=shown(site.node).strip("()"))
            )
            for order in list(permutations(elements))[1:]:
                yield say("{what} are in the wrong order", what=what), ast.Tuple(list(order), context)
        case ast.List(elts=elements, ctx=ast.Load() as context) if 1 < len(elements) <= LONGEST:
            for order in list(permutations(elements))[1:]:
                yield (
                    say("the parts of {node} are in the wrong order", node=shown(site.node)),
                    ast.List(list(order), context),
                )


def _is_test(site: Site) -> bool:
    """Return whether a name is the condition of an if: many others would be true or false as well."""
    return site.field == "test" or isinstance(site.parent, ast.UnaryOp | ast.BoolOp)


def of_variables(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a variable instead of a longer expression."""
    if is_value(site) and not isinstance(site.node, Numbers) and scope.has_real_results:
        for name in scope.variables:
            yield say("{node} is used instead of {name}", node=shown(site.node), name=name), expression(name)


def of_expressions(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a longer expression, or an attribute, instead of a value."""
    if not is_value(site) or not scope.parts:
        return
    text = ast.unparse(site.node)
    for other in (*scope.values[len(scope.variables) :], *scope.parts):
        if other != text:
            yield (
                say("{node} is used instead of {other}", node=shown(site.node), other=other),
                expression(other),
            )


def of_all_uses(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edits of all uses of a variable in a function, or of two variables in one statement."""
    found = [node for node in ast.walk(function) if isinstance(node, ast.Name)]
    arguments = {argument.arg for argument in function.args.args}
    for name in scope.variables:
        for other in scope.variables:
            own = [node for node in found if node.id == name]
            if name != other and name not in arguments and own:
                first = min(node.lineno for node in own)
                says = say("{name} must be the same variable as {other}", name=name, other=other)
                yield Edit(says, first, tuple((node, "id", other) for node in own))
    for statement, value in _values_in(function):
        for one, other in combinations(_names_in(value), 2):
            exchanged = {one: expression(other), other: expression(one)}
            yield _renamed(
                statement, value, say("{one} and {other} are exchanged", one=one, other=other), exchanged
            )


def of_repeated_names(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield another variable at all places, or all but the first, where a statement repeats a variable."""
    for statement, value, name in _repeated_names(function):
        for other in scope.values:
            if other != name:
                says = say("{name} is used instead of {other}", name=name, other=other)
                yield _renamed(statement, value, says, {name: expression(other)})
        uses = [node for node in ast.walk(value) if isinstance(node, ast.Name) and node.id == name]
        _, *later = sorted(uses, key=lambda node: (node.lineno, node.col_offset))
        if later[1:]:  # as in attend(x, x, x), where attend(x, memory, memory) is right
            for other in scope.variables:
                says = say(
                    "only the first {name} is right, and the others must be {other}", name=name, other=other
                )
                yield Edit(says, statement.lineno, tuple((n, "id", other) for n in later), statement)


def of_repeated_uses(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield longer expressions at all places of a statement that uses a variable more than once."""
    for statement, value, name in _repeated_names(function):
        yield _renamed(
            statement,
            value,
            say("the opposite of {name} is needed", name=name),
            {name: expression(f"~{name}")},
        )
        for other in scope.parts:
            says = say("{name} is used instead of {other}", name=name, other=other)
            yield _renamed(statement, value, says, {name: expression(other)})
        for other in (*scope.values, *scope.parts):
            says = say("the factor {other} of {name} is missing", other=other, name=name)
            yield _renamed(statement, value, says, {name: expression(f"{name} * ({other})")})


def _repeated_names(function: Definition) -> Iterator[tuple[ast.stmt, ast.expr, str]]:
    """Yield the variables that a statement uses more than once, with the statement and its value."""
    for statement, value in _values_in(function):
        for name in [name for name, times in _names_in(value).items() if times > 1]:
            yield statement, value, name


def of_two_uses(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the exchanges of one use of a variable with one use of another in the same statement."""
    for statement, value in _values_in(function):
        uses = [node for node in ast.walk(value) if isinstance(node, ast.Name) and node.id in scope.variables]
        for one, other in combinations(uses, 2):
            if one.id != other.id:
                says = say("one {name} and one {other} are exchanged", name=one.id, other=other.id)
                changes = (one, "id", other.id), (other, "id", one.id)
                yield Edit(says, statement.lineno, changes, statement)


def _values_in(function: Definition) -> Iterator[tuple[ast.stmt, ast.expr]]:
    """Yield the statements that have a value, with the value."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.Return | ast.Expr) and node.value:
            yield node, node.value


def _names_in(value: ast.expr) -> Counter[str]:
    """Count the variables in an expression, without the names of modules and those of its own loops."""
    names = [node for node in ast.walk(value) if isinstance(node, ast.Name) and not is_module(node)]
    own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    return Counter(node.id for node in names if node.id not in ("self", *own))


def _renamed(statement: ast.stmt, value: ast.expr, says: str, new: dict[str, ast.expr]) -> Edit:
    """Return the edit of a statement whose value has other expressions in the places of names."""
    changed = with_names(value, new)
    return Edit(says, statement.lineno, ((statement, "value", changed),), statement)
