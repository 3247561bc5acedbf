"""Explain a wrong result: find a mistake in the correct code that gives the same wrong numbers.

First come the mistakes with names (see plain/). Then the plain solution is parsed into a syntax tree, and the
search makes one common mistake at a time in it: it leaves out a term, a factor or a sign, skips a call, or
sums over another axis. If the changed function gives the same numbers as the learner's function, the message
names this mistake. The message never shows the correct line.
"""

import ast
import copy
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from itertools import combinations, permutations
from types import SimpleNamespace
from typing import Any, TypeAlias

from npformer.learn.exercises.own_lines import own_line
from npformer.learn.exercises.plain import Mistake
from npformer.learn.exercises.time_limit import TimeLimit

Function: TypeAlias = Callable[..., Any]
Changed: TypeAlias = tuple[str, dict[str, Function]]  # a mistake in words, and the solution with it
Change: TypeAlias = tuple[str, ast.AST]  # the mistake in words, and the node that replaces another
Names: TypeAlias = dict[str, list[str]]  # the variables of a function, under "", and the attributes of each

STEP = ", in the step that computes "
Changes: TypeAlias = Callable[[Any, Names], Iterator[Change]]

SHORT = 20  # characters of the longest expression that a message shows
SECONDS = 1.5  # the limit of the search, in processor time: the result does not depend on other processes


def explain(
    solution: dict[str, Function],
    mistakes: Sequence[Mistake],
    agrees: Callable[[SimpleNamespace], bool],
    *,
    search: str = "likely",
    repair: str = "",
    file: str = "",
) -> str:
    """Return a sentence about the change of the solution that gives all of the learner's results, or "".

    A mistake with a name is preferred to a repair, and a repair to another change. A change that gives only
    the first wrong result is not named: it is often not the mistake that the learner made.

    Args:
        solution: The plain solution: functions by name.
        mistakes: The mistakes with names.
        agrees: Returns whether changed functions give the learner's results in all trials.
        search: "named" tries the mistakes with names, and "likely" also other common changes and pairs of
            named mistakes. "rare" tries only the other changes.
        repair: What is wrong in the learner's own code, or "" if this is unknown.
        file: The learner's file. The sentence names the line in which it computes the same variable.
    """
    for text, functions in _changes(solution, mistakes, search, bool(repair)):
        if agrees(SimpleNamespace(**functions)):
            where = _own_lines(solution, file, functions)
            return (text.partition(STEP)[0] if where else text) + where
    return repair


def _changes(
    solution: dict[str, Function], mistakes: Sequence[Mistake], search: str, only_named: bool
) -> Iterator[Changed]:
    """Yield the changes that `explain` tries."""
    if search == "rare":
        yield from _timed(_unnamed(solution, (unusual,)))
        return
    yield from ((one.says, with_mistakes(solution, [one])) for one in mistakes)
    if search == "likely" and not only_named:
        yield from _timed(_unnamed(solution, (likely, mix_ups)))
        yield from _timed(_pairs(solution, mistakes))


def _own_lines(solution: dict[str, Function], file: str, changed: dict[str, Function]) -> str:
    """Return a phrase with the line of the learner's file that belongs to the change, or ""."""
    return "".join(
        own_line(_formatted(source_of(function)), changed_source(changed[name]), file, list(solution))
        for name, function in solution.items()
        if changed[name] is not function
    )


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


def _unnamed(solution: dict[str, Function], kinds: Iterable[Changes]) -> Iterator[Changed]:
    """Yield the changes that mutants makes, in words, and the changed solutions."""
    for changes in kinds:
        for name, function in solution.items():
            for text, mutant in mutants(function, changes):
                yield f"the correct function gives the same numbers {text}", solution | {name: mutant}


def _pairs(solution: dict[str, Function], mistakes: Sequence[Mistake]) -> Iterator[Changed]:
    """Yield the pairs of mistakes with names: first those that are special to the exercise."""
    pairs = combinations(mistakes, 2)
    for one, other in sorted(pairs, key=lambda pair: pair[0].is_shared + pair[1].is_shared):
        with suppress(SyntaxError):  # the two may change the same line
            yield f"{one.says}; and {other.says}", with_mistakes(solution, [one, other])


def _timed(changes: Iterable[Changed]) -> Iterator[Changed]:
    """Yield the changes until the time of the search is over."""
    limit = TimeLimit(SECONDS)
    for change in changes:
        yield change
        if limit.is_over():
            return


def mutants(function: Function, changes: Changes) -> Iterator[tuple[str, Function]]:
    """Yield pairs of a mistake in words and the function with this mistake.

    Args:
        function: A function written in Python.
        changes: `likely`, `mix_ups` or `unusual`.
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
    """Return the function of a changed tree, in the namespace of its module."""
    namespace = dict(vars(sys.modules[function.__module__]))
    exec(compile(tree, "<changed>", "exec"), namespace)
    changed = namespace[_definition(tree).name]
    changed.tree = tree
    return changed


def _formatted(source: str) -> str:
    """Return a source in the format of ast.unparse."""
    return ast.unparse(ast.parse(source))


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
    if isinstance(node, ast.BinOp):
        yield from _of_operation(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert, ast.Not)):
        what = "the sign is left out" if isinstance(node.op, ast.USub) else "a condition is reversed"
        yield what, node.operand
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.AugAssign):
        yield from _of_addition(node)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and _is_read(node):
        yield (
            f"{_thing(node.value)} is used without its slice",
            node.value,
        )
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield from _of_scatter(node.value)
        yield "a step is left out", ast.Pass()
    elif isinstance(node, ast.If) and not node.orelse:
        yield "a case is left out", ast.Pass()
    elif isinstance(node, ast.Attribute) and node.attr == "T":
        yield f"{_thing(node.value)} is not transposed", node.value
    elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
        for order in list(permutations(node.value.elts))[1:]:
            yield "the gradients are returned in another order", ast.Return(_tuple(order))
    elif isinstance(node, ast.List) and len(node.elts) == 2:
        yield "two elements of a list are in the wrong order", ast.List(node.elts[::-1], ast.Load())
    elif isinstance(node, ast.Compare):
        yield from _of_comparison(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value is not True:
        for step, text in ((1, "one more"), (-1, "one less")):
            yield f"a number is {text} than it should be", ast.Constant(node.value + step)


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


def unusual(node: ast.AST, names: Names) -> Iterator[Change]:
    """Yield rarer mistakes: wrong operations, powers and numbers, and functions applied once too often."""
    if isinstance(node, ast.BinOp):
        yield from _of_other_operations(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value not in (0, 1):
        yield "a number is twice as large as it should be", ast.Constant(2 * node.value)
        yield "a number is half as large as it should be", ast.Constant(node.value / 2)
    elif isinstance(node, ast.Name) and _is_read(node) and node.id in names[""]:
        yield f"1 - {node.id} is used instead of {node.id}", ast.BinOp(ast.Constant(1), ast.Sub(), node)
        for method in ("mean", "sum"):
            call = ast.Call(ast.Attribute(node, method, ast.Load()), [], [])
            yield f"the {method} of {node.id} is used instead of {node.id} itself", call
    elif isinstance(node, (ast.Assign, ast.AugAssign, ast.Return)) and isinstance(node.value, ast.expr):
        for text, value in _of_value(node.value, names):
            changed = copy.deepcopy(node)
            changed.value = value
            yield text, changed


def _of_other_operations(node: ast.BinOp) -> Iterator[Change]:
    """Yield the mistakes in which an operation is another one."""
    left, right = node.left, node.right
    if isinstance(node.op, ast.Mult):
        yield (
            f"{_thing(left)} and {_thing(right)} are added instead of multiplied",
            ast.BinOp(left, ast.Add(), right),
        )
    elif isinstance(node.op, (ast.Add, ast.Sub)):
        yield (
            f"{_thing(left)} and {_thing(right)} are multiplied instead of added or subtracted",
            ast.BinOp(left, ast.Mult(), right),
        )
    if isinstance(node.op, ast.Sub):
        yield (
            f"{_thing(left)} and {_thing(right)} are exchanged in a difference",
            ast.BinOp(right, node.op, left),
        )
        yield f"{_thing(right)} is used instead of {_thing(node)}", right
    if isinstance(node.op, ast.Pow):
        for power in (-2.0, -1.5, -1.0, -0.5, 0.5, 1.5, 2.0, 3.0):
            yield f"the power of {_thing(left)} is {power:g}", ast.BinOp(left, ast.Pow(), ast.Constant(power))


def _of_value(value: ast.expr, names: Names) -> Iterator[tuple[str, ast.expr]]:
    """Yield the mistakes in which the value of a statement is multiplied or changed once too often."""
    for name in names[""]:
        factor = ast.Name(name, ast.Load())
        yield f"it is multiplied by {name} once too often", ast.BinOp(value, ast.Mult(), factor)
        yield f"it is divided by {name} once too often", ast.BinOp(value, ast.Div(), factor)
    for function in ("log", "exp", "sqrt", "abs", "square"):
        called = ast.parse(f"np.{function}", mode="eval").body
        yield f"np.{function} is applied once too often", ast.Call(called, [value], [])


def _is_read(node: ast.Name | ast.Attribute | ast.Subscript) -> bool:
    return isinstance(node.ctx, ast.Load)


def _of_addition(node: ast.AugAssign) -> Iterator[Change]:
    """Yield the mistakes in x += y and x -= y."""
    minus = isinstance(node.op, ast.Sub)
    value = ast.UnaryOp(ast.USub(), node.value) if minus else node.value
    yield "it is overwritten (=) instead of added (+=)", ast.Assign([node.target], value)
    yield "a step is left out", ast.Pass()
    yield (
        "the sign of a step is wrong",
        ast.AugAssign(node.target, ast.Add() if minus else ast.Sub(), node.value),
    )


def _of_operation(node: ast.BinOp) -> Iterator[Change]:
    """Yield the mistakes in x + y, x - y, x * y, x / y, x ** y and x & y."""
    left, right = node.left, node.right
    is_product = isinstance(node.op, (ast.Mult, ast.Div))
    if is_product and isinstance(left, ast.BinOp) and isinstance(left.op, (ast.Add, ast.Sub)):
        inner = ast.BinOp(left.right, node.op, right)
        yield "the parentheses around a sum are missing", ast.BinOp(left.left, left.op, inner)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        yield f"the term {_named(right)} is left out", left
        negative = isinstance(node.op, ast.Sub)
        yield f"the term {_named(left)} is left out", ast.UnaryOp(ast.USub(), right) if negative else right
        other: ast.operator = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield f"the sign of the term {_named(right)} is wrong", ast.BinOp(left, other, right)
        yield f"the term {_named(right)} appears twice", ast.BinOp(node, node.op, right)
        yield f"the term {_named(left)} appears twice", ast.BinOp(left, ast.Add(), node)
    elif isinstance(node.op, (ast.Mult, ast.Div)):
        what = "factor" if isinstance(node.op, ast.Mult) else "divisor"
        yield f"the {what} {_named(right)} is left out", left
        if isinstance(node.op, ast.Mult):
            yield f"the factor {_named(left)} is left out", right
        yield f"the {what} {_named(right)} appears twice", ast.BinOp(node, node.op, right)
        turned: ast.operator = ast.Div() if isinstance(node.op, ast.Mult) else ast.Mult()
        wrong, correct = ("divides", "multiplying") if what == "factor" else ("multiplies", "dividing")
        yield (
            f"it {wrong} by {_thing(right)} instead of {correct}",
            ast.BinOp(left, turned, right),
        )
        if isinstance(node.op, ast.Div):
            yield "the numerator and the denominator are exchanged", ast.BinOp(right, node.op, left)
    elif isinstance(node.op, ast.Pow):
        yield "a power has the wrong sign", ast.BinOp(left, ast.Pow(), ast.UnaryOp(ast.USub(), right))
        yield "a power is left out", left
    elif isinstance(node.op, ast.BitAnd):
        yield f"the condition {_named(right)} is left out", left
        yield f"the condition {_named(left)} is left out", right


def _of_call(node: ast.Call) -> Iterator[Change]:
    """Yield the mistakes in f(x, ...) and x.method(...)."""
    name = _last_name(node.func)
    if isinstance(node.func, ast.Attribute) and name in ("sum", "mean"):
        other = "mean" if name == "sum" else "sum"
        yield (
            f"it is {'averaged' if name == 'sum' else 'summed'} where it should be a {name}",
            ast.Call(ast.Attribute(node.func.value, other, ast.Load()), node.args, node.keywords),
        )
        if name == "sum":
            first = ast.Subscript(node.func.value, ast.Constant(0), ast.Load())
            yield "only the first entry is used instead of the sum over all entries", first
        for axis in ("None", "0", "-1", "-2", "(0, 1)"):
            new = ast.Call(node.func, [ast.parse(axis, mode="eval").body], node.keywords)
            over = "all entries" if axis == "None" else f"axis {axis}"
            yield f"the {name} over {over} is computed instead of that over another axis", new
    if isinstance(node.func, ast.Attribute) and name in ("sum", "mean", "swapaxes", "reshape", "max"):
        what = "not transposed" if name == "swapaxes" else f"used without its {name}"
        yield f"{_thing(node.func.value)} is {what}", node.func.value
    for argument in node.args:
        if not isinstance(argument, (ast.Constant, ast.Starred)):
            yield f"{_called(node)} is skipped, so that {_thing(argument)} is used directly", argument
    yield from _of_arguments(node, name)


def _of_arguments(node: ast.Call, name: str) -> Iterator[Change]:
    """Yield the mistakes in which an argument, or the function itself, is another one."""
    if name == "where" and len(node.args) == 3:
        condition, one, other = node.args
        yield "the two cases are exchanged", ast.Call(node.func, [condition, other, one], node.keywords)
    for index, argument in enumerate(node.args):
        if isinstance(argument, ast.Name):
            args = [*node.args[:index], ast.Constant(None), *node.args[index + 1 :]]
            yield (
                f"{argument.id} is not passed to {_called(node)}",
                ast.Call(node.func, args, node.keywords),
            )
    if len(node.args) == 1:
        first: ast.AST = ast.Subscript(node.args[0], ast.Constant(0), ast.Load())
        yield f"only the first of {_thing(node.args[0])} is used instead of {_called(node)}", first
    if len(node.args) == 2 and not node.keywords:
        exchanged = ast.Call(node.func, node.args[::-1], [])
        yield f"the two arguments of {_called(node)} are exchanged", exchanged
    if len(node.args) == 2 and name.endswith("backward"):
        yield f"{_called(node)} is replaced by a product", ast.BinOp(node.args[0], ast.Mult(), node.args[1])
    for right, wrong in (("min", "max"), ("sin", "cos"), ("max", "min"), ("cos", "sin")):
        if name == right:
            new = ast.parse(ast.unparse(node.func).removesuffix(right) + wrong, mode="eval").body  # np.cos
            yield f"{wrong} is used instead of {right}", ast.Call(new, node.args, node.keywords)


def _of_scatter(call: ast.Call) -> Iterator[Change]:
    """Yield the mistakes in add.at(table, index, values), where an assignment keeps one of equal indices."""
    if _last_name(call.func) == "at" and len(call.args) == 3:
        table, index, values = call.args
        target = ast.Subscript(table, index, ast.Store())
        yield (
            "a row whose index occurs twice keeps only one gradient, because it is overwritten",
            ast.Assign([target], values),
        )
        yield (
            "a row whose index occurs twice keeps only one gradient, because table[ids] += adds once",
            ast.AugAssign(target, ast.Add(), values),
        )


def _of_comparison(node: ast.Compare) -> Iterator[Change]:
    """Yield the mistakes in a > b: a >= b and so on."""
    others = {
        ast.Gt: (ast.GtE, ast.Lt, ast.LtE), ast.GtE: (ast.Gt, ast.LtE, ast.Lt),
        ast.Lt: (ast.LtE, ast.Gt, ast.GtE), ast.LtE: (ast.Lt, ast.GtE, ast.Gt),
        ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    }  # fmt: skip
    texts = ("a comparison is wrong by the case of equality (< or <=, > or >=)", "a comparison is reversed")
    for index, other in enumerate(others.get(type(node.ops[0]), ())):
        text = texts[1 if index or isinstance(node.ops[0], (ast.Eq, ast.NotEq)) else 0]
        yield text, ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators)


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


def _tuple(elements: Sequence[ast.expr]) -> ast.Tuple:
    return ast.Tuple(list(elements), ast.Load())
