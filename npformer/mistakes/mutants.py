"""Mutants: functions with one mistake of the table made in their source."""

import ast
import copy
import inspect
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import permutations
from typing import Any, TypeAlias

from npformer.mistakes.operators import COMPARISONS, TABLE, Operator
from npformer.mistakes.syntax import filled, kind_of, matched, parsed
from npformer.mistakes.tables import Mistake

Function: TypeAlias = Callable[..., Any]
Change: TypeAlias = tuple[str, ast.AST]  # the mistake in words, and the node that replaces another
Names: TypeAlias = dict[str, list[str]]  # the variables of a function, under "", and the attributes of each
Changes: TypeAlias = Callable[[Any, Names], Iterator[Change]]

STEP = ", in the step that computes "
SHORT = 20  # characters of the longest expression that a message shows


def with_mistakes(solution: dict[str, Function], mistakes: Sequence[Mistake]) -> dict[str, Function]:
    """Return the solution with these mistakes, or without some if one removed the code of another.

    Raises:
        ValueError: If the only mistake does not fit the source.
    """
    changed = dict(solution)
    for name, function in solution.items():
        text = plain = source_of(function)
        for old, new in (change for mistake in mistakes for change in mistake.changes):
            text = text.replace(old, new)
        if text != plain:
            changed[name] = _compiled(ast.parse(text), function)
    if changed == solution:
        raise ValueError(f"no function of the solution contains {mistakes[0].changes[0][0]!r}")
    return changed


@cache
def source_of(function: Function) -> str:
    """Return the source text of a function without its decorators, its docstring and its indentation."""
    text = textwrap.dedent(inspect.getsource(function))
    definition = _definition(ast.parse(text))
    first = definition.body[0]
    docstring = range(first.lineno, (first.end_lineno or 0) + 1) if ast.get_docstring(definition) else ()
    lines = enumerate(text.splitlines(keepends=True), 1)
    return "".join(line for n, line in lines if n >= definition.lineno and n not in docstring)


def _definition(tree: ast.Module) -> ast.FunctionDef:
    """Return the definition of the function that a module consists of.

    Raises:
        TypeError: If the module begins with something else, such as a class.
    """
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"a solution must be a function that is written with def: {ast.unparse(definition)}")
    return definition


def mutants(function: Function, changes: Changes) -> Iterator[tuple[str, Function]]:
    """Yield pairs of a mistake in words and the function with this mistake.

    Args:
        function: A function written in Python.
        changes: `likely` or `mix_ups`.
    """
    tree = ast.parse(source_of(function))
    nodes = list(ast.walk(tree))
    if not isinstance(nodes[1], ast.FunctionDef) or any(isinstance(node, ast.While) for node in nodes):
        return  # a changed while loop might never end
    steps, names = _steps(tree), _names(nodes[1])
    for index, node in enumerate(nodes):
        for text, new in changes(node, names):
            where = steps.get(id(node), "")
            changed = copy.deepcopy(tree)
            target = list(ast.walk(changed))[index]
            changed = ast.fix_missing_locations(_Replace(target, new).visit(changed))
            yield f"when {text}{where}", _compiled(changed, function)


class _Replace(ast.NodeTransformer):
    """Puts one node in the place of another."""

    def __init__(self, target: ast.AST, new: ast.AST) -> None:
        self.target, self.new = target, new

    def visit(self, node: ast.AST) -> Any:
        return self.new if node is self.target else super().visit(node)


def _compiled(tree: ast.Module, function: Function) -> Function:
    """Return the function of a changed tree, in the namespace of another function."""
    namespace = dict(function.__globals__)
    exec(compile(tree, "<changed>", "exec"), namespace)
    changed = namespace[_definition(tree).name]
    changed.tree = tree
    return changed


def changed_source(changed: Any) -> str:
    """Return the source of a function that `_compiled` returned, in the format of ast.unparse."""
    return ast.unparse(changed.tree)


def _steps(tree: ast.Module) -> dict[int, str]:
    """Return, for the id of every node, a description of the statement that the node belongs to."""
    steps: dict[int, str] = {}
    for statement in ast.walk(tree):
        if isinstance(statement, (ast.Assign, ast.AugAssign)):
            target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
            text = f"{STEP}{ast.unparse(target).strip('()')}"
        elif isinstance(statement, ast.Return):
            text = ", in the returned value"
        else:
            continue
        steps.update({id(node): text for node in ast.walk(statement)})
    return steps


def _names(function: ast.FunctionDef) -> Names:
    """Return the function's variables, under "", and the attributes that it reads of each."""
    found = [argument.arg for argument in function.args.args]
    found += [n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    names = {"": [name for name in dict.fromkeys(found) if name not in ("self", "xp")]}
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names.setdefault(node.value.id, []).append(node.attr)
    return {base: list(dict.fromkeys(attributes)) for base, attributes in names.items()}


# ---------------------------------------------------------------------------------------------------------
# The mistakes. Each generator yields a mistake in words and the node that replaces the given one.
# The words never show the correct code.


def likely(node: ast.AST, names: Names) -> Iterator[Change]:
    """Yield the common mistakes at a node: wrong terms, factors, signs or axes, and missing calls."""
    yield from _of_table(node)
    match node:
        case ast.Call():
            yield from _of_arguments(node)
        case ast.If(orelse=[]):
            yield "a case is left out", ast.Pass()
        case ast.Return(value=ast.Tuple(elts=elements)):
            for order in list(permutations(elements))[1:]:
                returned = ast.Return(ast.Tuple(list(order), ast.Load()))
                yield "the gradients are returned in another order", returned
        case ast.Compare(ops=[op, *others]):
            for other in COMPARISONS[type(op)] if isinstance(op, ORDERED) else ():
                at_equality = "a comparison is wrong by the case of equality (< or <=, > or >=)"
                is_reversed = other is not COMPARISONS[type(op)][0] or isinstance(op, (ast.Eq, ast.NotEq))
                new = ast.Compare(node.left, [other(), *others], node.comparators)
                yield "a comparison is reversed" if is_reversed else at_equality, new
        case ast.Constant(value=int() | float() as value) if value is not True:
            yield "a number is one more than it should be", ast.Constant(value + 1)
            yield "a number is one less than it should be", ast.Constant(value - 1)


def mix_ups(node: ast.AST, names: Names) -> Iterator[Change]:
    """Yield the mistakes in which one name is used instead of another, such as dy instead of dx."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        yield f"the result of {_called(node.value)} is not used", ast.Expr(node.value)
    elif isinstance(node, ast.Name) and _is_read(node) and node.id in names[""]:
        for other in names[""]:
            if other != node.id:
                yield f"{other} is used instead of {node.id}", ast.Name(other, ast.Load())
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and _is_read(node):
        for other in names.get(node.value.id, ()):
            if other != node.attr:
                text = f"{node.value.id}.{other} is used instead of {ast.unparse(node)}"
                yield text, ast.Attribute(node.value, other, ast.Load())


ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)

_BY_KIND: dict[tuple[type, type], list[Operator]] = defaultdict(list)
for _row in TABLE:
    if _row.made:
        _BY_KIND[kind_of(parsed(_row.right))].append(_row)
_STATEMENTS = [row for row in TABLE if row.made and isinstance(parsed(row.wrong), ast.stmt)]


def _of_table(node: ast.AST) -> Iterator[Change]:
    """Yield the mistakes of the table."""
    if not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return
    is_step = isinstance(node, ast.Expr)  # such as np.add.at(table, ids, dy)
    right = node.value if isinstance(node, ast.Expr) else node
    for row in _BY_KIND[kind_of(right)]:
        if isinstance(right, ast.Call) and is_step != (row in _STATEMENTS):
            continue
        if (parts := matched(row.right, right)) is not None:
            words = {letter: _named(part) for letter, part in parts.items() if isinstance(part, ast.AST)}
            words |= {letter.upper(): _thing(parts[letter]) for letter in words}
            words["CALLED"] = _called(right) if isinstance(right, ast.Call) else ""
            yield row.made.format(**words), filled(row.wrong, parts)


def _of_arguments(node: ast.Call) -> Iterator[Change]:
    """Yield the mistakes in which an argument is left out, or used in the place of the call."""
    for argument in node.args:
        if not isinstance(argument, (ast.Constant, ast.Starred)):
            yield f"{_called(node)} is skipped, so that {_thing(argument)} is used directly", argument
    for index, argument in enumerate(node.args):
        if isinstance(argument, ast.Name):
            args = [*node.args[:index], ast.Constant(None), *node.args[index + 1 :]]
            yield f"{argument.id} is not passed to {_called(node)}", ast.Call(node.func, args, node.keywords)
    if len(node.args) == 2 and _last_name(node.func).endswith("backward"):
        yield f"{_called(node)} is replaced by a product", ast.BinOp(node.args[0], ast.Mult(), node.args[1])


def _is_read(node: ast.Name | ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Load)


def _named(node: ast.AST) -> str:
    """Return a name or a short expression unchanged, and for another the names that it contains."""
    text = ast.unparse(node)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)) or len(text) <= SHORT:
        return text
    names = [
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id not in ("xp", "np", "math", "self")
    ]
    return f"with {' and '.join(dict.fromkeys(names))}" if names else "in front"


def _thing(node: ast.AST) -> str:
    """Return the name of a node, or a description of an expression, as the subject of a sentence."""
    name = _named(node)
    return f"the expression {name}" if name.startswith(("with ", "in ")) else name


def _called(call: ast.Call) -> str:
    """Return the name of the function that is called, such as feed_forward.backward."""
    name = ast.unparse(call.func).removeprefix("self.")
    return name if name.replace(".", "").isidentifier() else _last_name(call.func)


def _last_name(node: ast.AST) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)
