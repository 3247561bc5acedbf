"""Edits of calls, indices and slices: another function, other axes, other arguments, other bounds."""

import ast
from collections.abc import Iterator
from itertools import combinations, permutations

from npformer.language import GRADER, later, phrase, say
from npformer.mistakes.scope import Scope
from npformer.mistakes.syntax import (
    Change,
    Definition,
    Edit,
    Reading,
    Site,
    expression,
    is_module,
    shown,
    sites,
)

ALIKE = (
    ("sum", "mean", "max", "min", "prod"),
    ("sum", "cumsum"),
    ("rfft", "irfft"),
    ("argmax", "argmin"),
    ("maximum", "minimum", "fmax", "fmin"),
    ("sin", "cos", "tan"),
    ("exp", "log", "log2", "log10", "sqrt", "square", "abs", "tanh", "expm1", "log1p"),
    ("real", "imag", "abs"),
    ("tril", "triu"),
    ("zeros", "ones"),
    ("zeros_like", "ones_like"),
    ("any", "all"),
    ("floor", "ceil", "round"),
    ("rjust", "ljust"),
    ("append", "extend"),
    ("index", "rindex"),
    ("var", "std"),
    ("stack", "concatenate"),
    ("hstack", "vstack"),
    ("outer", "dot", "multiply"),
    ("argsort", "sort"),
    ("startswith", "endswith"),
    ("keys", "values", "items"),
)
REDUCTIONS = ("sum", "mean", "max", "min", "var", "std")
AXES = ("-1, keepdims=True", "-1", "0", "-2", "0, keepdims=True", "", "(0, 1)", "(-2, -1)")
MOST_COPIES = 8  # of an array side by side, instead of np.repeat
ONE_BY_ONE = later("the copies come entry by entry (a a b b), and must come one after the other (a b a b)")
SIDE_BY_SIDE = later("the copies come one after the other (a b a b), and must come entry by entry (a a b b)")


def called(node: ast.Call) -> str:
    """Return the name of the function that is called, without its module or object."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def of_function_and_axes(node: ast.Call) -> Iterator[Reading]:
    """Yield a call of another function, or over other axes."""
    yield from _of_function(node)
    yield from of_reduction(node)
    yield from _of_copies(node)


def _of_function(node: ast.Call) -> Iterator[Reading]:
    """Yield other functions instead of the one that is called."""
    name = called(node)
    for group in ALIKE:
        for other in group if name in group else ():
            if other != name:
                func = (
                    ast.Attribute(node.func.value, other, ast.Load())
                    if isinstance(node.func, ast.Attribute)
                    else ast.Name(other, ast.Load())
                )
                yield (
                    say("{name} is used instead of {other}", name=name, other=other),
                    ast.Call(func, node.args, node.keywords),
                )


def of_reduction(node: ast.Call) -> Iterator[Reading]:
    """Yield a sum, mean, maximum or minimum that keeps its axis or not, or runs over other axes."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in REDUCTIONS:
        return
    others = [keyword for keyword in node.keywords if keyword.arg != "keepdims"]
    if len(others) < len(node.keywords):
        yield (
            say("the {call} must not keep its axis", call=node.func.attr),
            ast.Call(node.func, node.args, others),
        )
    else:
        kept = [*others, ast.keyword("keepdims", ast.Constant(True))]
        yield say("the {call} must keep its axis", call=node.func.attr), ast.Call(node.func, node.args, kept)
    values = node.args[:1] if is_module(node.func.value) else []
    yield from _of_axes(node, len(values))
    for axes in AXES:
        other = expression(f"f({axes})")
        assert isinstance(other, ast.Call)
        new = ast.Call(node.func, [*values, *other.args], other.keywords)
        if ast.unparse(new) != ast.unparse(node):
            yield say("the {call} runs over the wrong axes, or must keep its axis", call=node.func.attr), new


def _of_axes(node: ast.Call, position: int) -> Iterator[Reading]:
    """Yield a reduction over several axes with one axis less.

    Args:
        node: The call.
        position: The index of the axes among the arguments without keyword.
    """
    says = say("the {call} runs over an axis too many", call=called(node))
    for index, argument in enumerate(node.args):
        if index == position and isinstance(argument, ast.Tuple):
            for axes in _with_one_less(argument):
                yield says, ast.Call(node.func, [*node.args[:index], axes], node.keywords)
    for index, keyword in enumerate(node.keywords):
        if keyword.arg == "axis" and isinstance(keyword.value, ast.Tuple):
            for axes in _with_one_less(keyword.value):
                others = [*node.keywords[:index], *node.keywords[index + 1 :]]
                yield says, ast.Call(node.func, node.args, [*others, ast.keyword("axis", axes)])


def _with_one_less(axes: ast.Tuple) -> Iterator[ast.Tuple]:
    """Yield a tuple without one of its elements."""
    for index in range(len(axes.elts)):
        yield ast.Tuple([*axes.elts[:index], *axes.elts[index + 1 :]], ast.Load())


def _of_copies(node: ast.Call) -> Iterator[Reading]:
    """Yield copies of entries one by one for copies of the whole, and the reverse."""
    match node:
        case ast.Call(
            func=ast.Attribute(attr="repeat"),
            args=[x, ast.Constant(value=int(number)), *axis],
            keywords=keywords,
        ) if number <= MOST_COPIES:
            copies = ast.List([x] * number, ast.Load())
            func = expression("np.concatenate")
            yield phrase(ONE_BY_ONE, GRADER), ast.Call(func, [copies, *axis], keywords)
        case ast.Call(func=ast.Attribute(attr="concatenate"), args=[ast.List(elts=[x, *more]), *axis]):
            if more and all(ast.dump(other) == ast.dump(x) for other in more):
                number_of_copies = ast.Constant(1 + len(more))
                repeat = expression("np.repeat")
                yield (
                    phrase(SIDE_BY_SIDE, GRADER),
                    ast.Call(repeat, [x, number_of_copies, *axis], node.keywords),
                )
        case ast.Call(func=ast.Attribute(attr="tile"), args=[x, reps]):
            last = reps.elts[-1] if isinstance(reps, ast.Tuple) and reps.elts else reps
            yield phrase(SIDE_BY_SIDE, GRADER), expression("np.repeat(x, n, -1)", x=x, n=last)


# ---------------------------------------------------------------------------------------------------------
# Arguments, indices and slices


FROM_ZERO: tuple[tuple[str, str], ...] = (  # other ranges than 0, ..., b - 1, and what must change
    ("1, b", later("begin with 1")),
    ("1, b + 1", later("begin with 1 and end one later")),
    ("b + 1", later("end one later")),
    ("b - 1", later("end one earlier")),
)
FROM_START: tuple[tuple[str, str], ...] = (  # other ranges than a, ..., b - 1
    ("a, b + 1", later("end one later")),
    ("a, b - 1", later("end one earlier")),
    ("a + 1, b", later("begin one later")),
    ("a - 1, b", later("begin one earlier")),
    ("a + 1, b + 1", later("begin and end one later")),
    ("b", later("begin with 0")),
)


def of_calls(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of a call, an attribute such as .T, or a subscript."""
    node = site.node
    match node:
        case ast.Call():
            yield from of_function_and_axes(node)
            yield from _without_call(node)
            yield from _of_arguments(node)
            yield from _of_keywords(node)
            yield from _of_range(node)
        case ast.Attribute(attr="T", value=value):
            yield say("{value} is transposed, and must not be", value=shown(value)), value
            says = say(
                ".T reverses all axes of {value}, and only the last two must be exchanged", value=shown(value)
            )
            yield says, expression("a.swapaxes(-1, -2)", a=value)
        case ast.Subscript(ctx=ast.Load()):
            yield from _of_subscript(node, scope)
        case ast.Slice():
            yield from _of_slice(node)


def _of_subscript(node: ast.Subscript, scope: Scope) -> Iterator[Reading]:
    """Yield the edits of an index or a slice."""
    value, index = node.value, node.slice
    yield (
        say(
            "{node} is only a part of {value}, and all of it is needed", node=shown(node), value=shown(value)
        ),
        value,
    )
    if ast.unparse(index) == "::-1":
        yield from _of_reversed(value)
    if isinstance(index, ast.Name | ast.Compare | ast.UnaryOp) and scope.has_real_results:
        says = say(
            "the index {index} removes entries of {value}: it must set them to 0",
            index=shown(index),
            value=shown(value),
        )
        yield says, expression("a * i", a=value, i=index)
    if isinstance(index, ast.Name):
        yield (
            say("the index {name} is one too small", name=index.id),
            expression("a[i + 1]", a=value, i=index),
        )
        yield (
            say("the index {name} is one too large", name=index.id),
            expression("a[i - 1]", a=value, i=index),
        )
    if isinstance(value, ast.Call) and "None" in ast.unparse(index):
        yield from of_reduction(value)


def _without_call(node: ast.Call) -> Iterator[Reading]:
    """Yield the arguments, or the object, of a call that should not be there."""
    name = called(node)
    for argument in node.args:
        if not isinstance(argument, (ast.Constant, ast.Starred)):
            yield (
                say("the call of {name} should not be there: its argument itself is needed", name=name),
                argument,
            )
    if isinstance(node.func, ast.Attribute) and not is_module(node.func.value):
        yield (
            say(
                "the call of {name} should not be there: {value} itself is needed",
                name=name,
                value=shown(node.func.value),
            ),
            node.func.value,
        )
        if name == "transpose":
            says = say(
                "{node} fits only one number of axes, and only the last two must be exchanged",
                node=shown(node),
            )
            yield says, expression("a.swapaxes(-1, -2)", a=node.func.value)


def of_all_transposes(function: Definition, scope: Scope) -> Iterator[Edit]:
    """Yield the edit of all transposes of all axes in a function, where only the last two are exchanged."""
    changes: list[Change] = []
    lines: list[int] = []
    for site in sites(function):
        match site.node:
            case (
                ast.Call(func=ast.Attribute(value=value, attr="transpose"))
                | ast.Attribute(value=value, attr="T")
            ):
                new = expression("a.swapaxes(-1, -2)", a=value)
                changes += site.edit("", new).changes
                lines.append(site.line)
    if len(lines) > 1:
        others = say(" and ").join(map(str, dict.fromkeys(lines[1:])))
        says = say("only the last two axes must be exchanged, also in line {others}", others=others)
        yield Edit(says, lines[0], tuple(changes))


def _of_arguments(node: ast.Call) -> Iterator[Reading]:
    """Yield the arguments in another order, and one left out."""
    name = ast.unparse(node.func).rpartition(".")[2]
    if name in ("reshape", "transpose") and len(node.args) <= 4:
        for order in list(permutations(node.args))[1:]:
            says = say("the axes are in the wrong order in the arguments of {name}", name=name)
            yield says, ast.Call(node.func, list(order), node.keywords)
    else:
        for i, j in combinations(range(len(node.args)), 2):
            args = list(node.args)
            args[i], args[j] = args[j], args[i]
            says = say(
                "{one} and {other} are exchanged in the call of {name}",
                one=shown(node.args[i]),
                other=shown(node.args[j]),
                name=name,
            )
            yield says, ast.Call(node.func, args, node.keywords)
    if node.args and not any(isinstance(argument, ast.Starred) for argument in node.args):
        backwards = [expression("reversed(a)", a=argument) for argument in node.args]
        yield (
            say("the arguments of {name} must be in the reverse order", name=name),
            ast.Call(node.func, backwards, node.keywords),
        )
    for index, argument in enumerate(node.args[1:], 1):
        args = [*node.args[:index], *node.args[index + 1 :]]
        says = say(
            "the argument {argument} of {name} should not be there", argument=shown(argument), name=name
        )
        yield says, ast.Call(node.func, args, node.keywords)


def of_scans(site: Site, scope: Scope) -> Iterator[Reading]:
    """Yield a call along an axis, such as a cumulative sum, that begins at the other end."""
    match site.node:
        case ast.Call(func=func, args=[values, *others], keywords=keywords):
            for axis in range(3):
                before = ":, " * axis + "::-1"
                scan = ast.Call(func, [expression(f"a[{before}]", a=values), *others], keywords)
                says = say(
                    "{call} must run backwards along axis {axis}",
                    call=ast.unparse(func).rpartition(".")[2],
                    axis=axis,
                )
                yield says, expression(f"a[{before}]", a=scan)


def _of_keywords(node: ast.Call) -> Iterator[Reading]:
    """Yield the call without one of its keyword arguments."""
    name = ast.unparse(node.func).rpartition(".")[2]
    for index, keyword in enumerate(node.keywords):
        others = [*node.keywords[:index], *node.keywords[index + 1 :]]
        says = say("the argument {arg} of {name} should not be there", arg=keyword.arg, name=name)
        yield says, ast.Call(node.func, node.args, others)


def _of_range(node: ast.Call) -> Iterator[Reading]:
    """Yield range and np.arange from 1, and with one number more or less."""
    name = called(node)
    if name not in ("range", "arange"):
        return
    match node.args:
        case [end]:
            ranges, parts = FROM_ZERO, {"b": end}
        case [start, end]:
            ranges, parts = FROM_START, {"a": start, "b": end}
        case _:
            return
    for text, due in ranges:
        other = expression(f"f({text})", **parts)
        assert isinstance(other, ast.Call)
        yield (
            say("{name} must {due}", name=name, due=phrase(due, GRADER)),
            ast.Call(node.func, other.args, node.keywords),
        )


def _of_reversed(value: ast.expr) -> Iterator[Reading]:
    """Yield f(-x) for f(x)[::-1], which has equal entries in the reverse order."""
    match value:
        case ast.Call(func=func, args=[first, *others], keywords=keywords):
            negative = ast.UnaryOp(ast.USub(), first)
            new = ast.Call(func, [negative, *others], keywords)
            yield say("[::-1] also reverses the order of equal entries"), new


def _of_slice(node: ast.Slice) -> Iterator[Reading]:
    """Yield slices with other bounds."""
    lower, upper, step = node.lower, node.upper, node.step
    one: ast.expr = ast.Constant(1)
    if upper is not None:
        yield say("the slice {node} ends too early", node=shown(node)), ast.Slice(lower, None, step)
        yield say("the slice {node} takes the wrong end", node=shown(node)), ast.Slice(upper, lower, step)
        for sign, text in ((ast.Add(), say("early")), (ast.Sub(), say("late"))):
            moved = ast.Slice(lower, ast.BinOp(upper, sign, one), step)
            yield say("the slice {node} ends one too {text}", node=shown(node), text=text), moved
    if lower is not None:
        yield say("the slice {node} begins too late", node=shown(node)), ast.Slice(None, upper, step)
        if upper is None:
            yield say("the slice {node} takes the wrong end", node=shown(node)), ast.Slice(None, lower, step)
        for sign, text in ((ast.Add(), say("early")), (ast.Sub(), say("late"))):
            moved = ast.Slice(ast.BinOp(lower, sign, one), upper, step)
            yield say("the slice {node} begins one too {text}", node=shown(node), text=text), moved
    shifted = {"1:": ":-1", ":-1": "1:"}.get(ast.unparse(node))
    if shifted:
        wrong, due = (say("first"), say("last")) if shifted == ":-1" else (say("last"), say("first"))
        says = say("the {wrong} entry is left out instead of the {due}", wrong=wrong, due=due)
        yield says, _slice(shifted)


def _slice(text: str) -> ast.expr:
    """Return the syntax tree of a slice."""
    whole = expression(f"a[{text}]")
    assert isinstance(whole, ast.Subscript)
    return whole.slice
