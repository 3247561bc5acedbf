"""The scope of a function: the names and expressions that an edit of it may use."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from npformer.mistakes.syntax import Definition, is_value, sites

Numbers = ast.Name | ast.Attribute | ast.Subscript


@dataclass(frozen=True)
class Scope:
    """The names and expressions that an edit of a function may use.

    Args:
        variables: The arguments and the variables, without self.
        values: The variables, and attributes such as "cache.weights".
        parts: Longer expressions that may be missing in the function, the shortest first.
        attributes: The names of the attributes that are used of each expression, by its text.
        strings: The strings in the function.
        unused: The functions that are imported and that the function does not call.
        counters: The variables that count the steps of a loop.
        has_real_results: True if the results are real numbers. Whole numbers, lists and masks are right by
            chance after many changes, so that fewer changes are tried.
        has_gradients: True if the results are gradients. In other results a factor 1 - x, which is the
            derivative of a sigmoid, is right by chance: it only makes some entries smaller.
    """

    variables: tuple[str, ...]
    values: tuple[str, ...]
    parts: tuple[str, ...] = ()
    attributes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    strings: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    has_real_results: bool = True
    has_gradients: bool = True


def scope_of(
    function: Definition,
    others: Sequence[Definition],
    *,
    imported: Iterable[str] = (),
    with_parts: bool = False,
    has_real_results: bool = True,
    has_gradients: bool = True,
) -> Scope:
    """Return the scope of a function.

    Args:
        function: The function.
        others: Further functions, such as the forward pass: their attributes may be used too.
        imported: The names of functions that may be called.
        with_parts: True if longer expressions of this function and of the others may be used.
        has_real_results: True if the results are real numbers.
        has_gradients: True if the results are gradients.
    """
    nodes = list(ast.walk(function))
    variables = _variables(function)
    arguments = [node.arg for node in nodes if isinstance(node, ast.arg)]
    attributes = _attributes([node for one in (function, *others) for node in ast.walk(one)])
    dotted = [f"{base}.{name}" for base, names in attributes.items() if base in arguments for name in names]
    expressions = _expressions(function, others) if with_parts else {}
    values = [text for text, node in expressions.items() if isinstance(node, Numbers)] or dotted
    strings = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
    called = {ast.unparse(n) for n in nodes if isinstance(n, ast.Name | ast.Attribute)}
    return Scope(
        variables,
        tuple(dict.fromkeys((*variables, *values))),
        tuple(text for text, node in expressions.items() if not isinstance(node, Numbers)),
        attributes,
        tuple(dict.fromkeys(text for text in strings if "\n" not in text)),
        tuple(name for name in imported if name not in called),
        tuple(dict.fromkeys(_counters(nodes))),
        has_real_results,
        has_gradients,
    )


def _variables(function: Definition) -> tuple[str, ...]:
    """Return the names of the arguments and of the variables of a function, without self."""
    nodes = list(ast.walk(function))
    arguments = [node.arg for node in nodes if isinstance(node, ast.arg)]
    stored = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return tuple(name for name in dict.fromkeys((*arguments, *stored)) if name != "self")


def _counters(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the variables of loops over range(...), and the first variables of loops over enumerate(...)."""
    for loop in nodes:
        match loop:
            case ast.For(target=target, iter=steps) | ast.comprehension(target=target, iter=steps):
                match target, _forwards(steps):
                    case ast.Name(id=name), ast.Call(func=ast.Name(id="range")):
                        yield name
                    case ast.Tuple(elts=[ast.Name(id=name), *_]), ast.Call(func=ast.Name(id="enumerate")):
                        yield name


def _forwards(steps: ast.expr) -> ast.expr:
    """Return the steps of reversed(steps)."""
    match steps:
        case ast.Call(func=ast.Name(id="reversed"), args=[inner]):
            return inner
    return steps


def _attributes(nodes: Iterable[ast.AST]) -> dict[str, tuple[str, ...]]:
    """Return the names of the attributes of each expression, by its text."""
    found: dict[str, list[str]] = defaultdict(list)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, (ast.Name, ast.Attribute)):
            found[ast.unparse(node.value)].append(node.attr)
    return {base: tuple(dict.fromkeys(names)) for base, names in found.items() if base not in ("np", "math")}


def _expressions(function: Definition, others: Sequence[Definition]) -> dict[str, ast.expr]:
    """Return the expressions in these functions that may be used in the first, by their text.

    Each uses a variable of the first function, and no variable that only another function has.
    """
    known = {*_variables(function), "self"}
    found: dict[str, ast.expr] = {}
    for one in (function, *others):
        foreign = {*_variables(one)} - known
        for site in sites(one):
            node = site.node
            if not isinstance(node, ast.expr) or isinstance(node, ast.List) or not is_value(site):
                continue
            names = {item.id for item in ast.walk(node) if isinstance(item, ast.Name)}
            if names & known and not names & foreign:
                found.setdefault(ast.unparse(node), node)
    return dict(sorted(found.items(), key=lambda item: sum(1 for _ in ast.walk(item[1]))))
