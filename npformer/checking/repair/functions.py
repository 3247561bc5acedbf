"""Edits of the function that is called: another function, other axes, and copies in another order."""

import ast
from collections.abc import Iterator

from npformer.checking.repair.edit import Reading, expression, is_module

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
MOST_COPIES = 8  # of an array side by side, in the place of np.repeat
ONE_BY_ONE = "the copies come entry by entry (a a b b), and must come one after the other (a b a b)"
SIDE_BY_SIDE = "the copies come one after the other (a b a b), and must come entry by entry (a a b b)"


def called(node: ast.Call) -> str:
    """Return the name of the function that is called, without its module or object."""
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def of_function_and_axes(node: ast.Call) -> Iterator[Reading]:
    """Yield a call of another function, or over other axes."""
    yield from _of_function(node)
    yield from of_reduction(node)
    yield from _of_copies(node)


def _of_function(node: ast.Call) -> Iterator[Reading]:
    """Yield other functions in the place of the one that is called."""
    name = called(node)
    for group in ALIKE:
        for other in group if name in group else ():
            if other != name:
                func = (
                    ast.Attribute(node.func.value, other, ast.Load())
                    if isinstance(node.func, ast.Attribute)
                    else ast.Name(other, ast.Load())
                )
                yield f"{name} is used instead of {other}", ast.Call(func, node.args, node.keywords)


def of_reduction(node: ast.Call) -> Iterator[Reading]:
    """Yield a sum, mean, maximum or minimum that keeps its axis or not, or runs over other axes."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr not in REDUCTIONS:
        return
    others = [keyword for keyword in node.keywords if keyword.arg != "keepdims"]
    if len(others) < len(node.keywords):
        yield f"the {node.func.attr} must not keep its axis", ast.Call(node.func, node.args, others)
    else:
        kept = [*others, ast.keyword("keepdims", ast.Constant(True))]
        yield f"the {node.func.attr} must keep its axis", ast.Call(node.func, node.args, kept)
    values = node.args[:1] if is_module(node.func.value) else []
    yield from _of_axes(node, len(values))
    for axes in AXES:
        other = expression(f"f({axes})")
        assert isinstance(other, ast.Call)
        new = ast.Call(node.func, [*values, *other.args], other.keywords)
        if ast.unparse(new) != ast.unparse(node):
            yield f"the {node.func.attr} runs over the wrong axes, or must keep its axis", new


def _of_axes(node: ast.Call, position: int) -> Iterator[Reading]:
    """Yield a reduction over several axes with one axis less.

    Args:
        node: The call.
        position: The index of the axes among the arguments without keyword.
    """
    says = f"the {called(node)} runs over an axis too many"
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
            yield ONE_BY_ONE, ast.Call(func, [copies, *axis], keywords)
        case ast.Call(func=ast.Attribute(attr="concatenate"), args=[ast.List(elts=[x, *more]), *axis]):
            if more and all(ast.dump(other) == ast.dump(x) for other in more):
                number_of_copies = ast.Constant(1 + len(more))
                repeat = expression("np.repeat")
                yield SIDE_BY_SIDE, ast.Call(repeat, [x, number_of_copies, *axis], node.keywords)
        case ast.Call(func=ast.Attribute(attr="tile"), args=[x, reps]):
            last = reps.elts[-1] if isinstance(reps, ast.Tuple) and reps.elts else reps
            yield SIDE_BY_SIDE, expression("np.repeat(x, n, -1)", x=x, n=last)
