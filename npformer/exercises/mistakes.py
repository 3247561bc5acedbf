"""The mistakes that people make, as changes of a syntax tree: of one node at a time.

Each generator yields pairs (words, the node to put in its place). The words tell what kind of mistake it
is, and never the code that would be right.
"""

import ast
from collections.abc import Iterator
from itertools import permutations


def likely(node, names) -> Iterator[tuple[str, ast.AST]]:
    """Pairs (words, node to put in its place) of the mistakes that can be made at a node."""
    if isinstance(node, ast.BinOp):
        yield from _of_operation(node)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert, ast.Not)):
        what = (
            "the sign is left out" if isinstance(node.op, ast.USub) else "a condition is the wrong way round"
        )
        yield what, node.operand
    elif isinstance(node, ast.Call):
        yield from _of_call(node)
    elif isinstance(node, ast.AugAssign):
        yield from _of_addition(node)
    elif isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice) and _is_read(node):
        yield (
            f"{_thing(node.value)} is taken whole, or in its own order, and not cut or turned round",
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
        yield "two things stand in the wrong order", ast.List(node.elts[::-1], ast.Load())
    elif isinstance(node, ast.Compare):
        yield from _of_comparison(node)
    elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and node.value is not True:
        for step, text in ((1, "one more"), (-1, "one less")):
            yield f"a number is {text} than it should be", ast.Constant(node.value + step)


def mix_ups(node, names) -> Iterator[tuple[str, ast.AST]]:
    """A name in the place of another: dy for dx, one layer's cache for another's."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
        yield f"the result of {_called(node.value)} is not used", ast.Expr(node.value)
    elif isinstance(node, ast.Name) and _is_read(node) and node.id in names[""]:
        for other in names[""]:
            if other != node.id:
                yield f"{other} stands where another array belongs", ast.Name(other, ast.Load())
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and _is_read(node):
        for other in names.get(node.value.id, ()):
            if other != node.attr:
                text = f"{node.value.id}.{other} stands where another one belongs"
                yield text, ast.Attribute(node.value, other, ast.Load())


def _is_read(node) -> bool:
    return isinstance(node.ctx, ast.Load)


def _of_addition(node):
    """x += y, x -= y."""
    minus = isinstance(node.op, ast.Sub)
    value = ast.UnaryOp(ast.USub(), node.value) if minus else node.value
    yield "it is overwritten (=) instead of added (+=)", ast.Assign([node.target], value)
    yield "a step is left out", ast.Pass()
    yield (
        "the sign of a step is wrong",
        ast.AugAssign(node.target, ast.Add() if minus else ast.Sub(), node.value),
    )


def _of_operation(node):
    """x + y, x - y, x * y, x / y, x @ y, x ** y."""
    left, right = node.left, node.right
    is_product = isinstance(node.op, (ast.Mult, ast.Div))
    if is_product and isinstance(left, ast.BinOp) and isinstance(left.op, (ast.Add, ast.Sub)):
        inner = ast.BinOp(left.right, node.op, right)
        yield "the brackets round a sum are missing", ast.BinOp(left.left, left.op, inner)
    if isinstance(node.op, (ast.Add, ast.Sub)):
        yield f"the term {_named(right)} is left out", left
        negative = isinstance(node.op, ast.Sub)
        yield f"the term {_named(left)} is left out", ast.UnaryOp(ast.USub(), right) if negative else right
        other: ast.operator = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
        yield f"the sign of the term {_named(right)} is wrong", ast.BinOp(left, other, right)
        yield f"the term {_named(right)} is there twice", ast.BinOp(node, node.op, right)
        yield f"the term {_named(left)} is there twice", ast.BinOp(left, ast.Add(), node)
    elif isinstance(node.op, (ast.Mult, ast.Div)):
        what = "factor" if isinstance(node.op, ast.Mult) else "divisor"
        yield f"the {what} {_named(right)} is left out", left
        if isinstance(node.op, ast.Mult):
            yield f"the factor {_named(left)} is left out", right
        yield f"the {what} {_named(right)} is there twice", ast.BinOp(node, node.op, right)
        turned: ast.operator = ast.Div() if isinstance(node.op, ast.Mult) else ast.Mult()
        yield (
            f"the {what} {_named(right)} is on the wrong side of the fraction",
            ast.BinOp(left, turned, right),
        )
        if isinstance(node.op, ast.Div):
            yield "a fraction is upside down", ast.BinOp(right, node.op, left)
    elif isinstance(node.op, ast.Pow):
        yield "a power has the wrong sign", ast.BinOp(left, ast.Pow(), ast.UnaryOp(ast.USub(), right))
        yield "a power is left out", left
    elif isinstance(node.op, ast.BitAnd):
        yield f"the condition {_named(right)} is left out", left
        yield f"the condition {_named(left)} is left out", right


def _of_call(node):
    """f(x, ...), x.method(...)."""
    name = _last_name(node.func)
    if isinstance(node.func, ast.Attribute) and name in ("sum", "mean"):
        other = "mean" if name == "sum" else "sum"
        yield (
            f"it is {'averaged' if name == 'sum' else 'summed'} where it should be a {name}",
            ast.Call(ast.Attribute(node.func.value, other, ast.Load()), node.args, node.keywords),
        )
        if name == "sum":
            first = ast.Subscript(node.func.value, ast.Constant(0), ast.Load())
            yield "only the first is taken, where a sum over all is due", first
        for axis in ("None", "0", "-1", "-2", "(0, 1)"):
            new = ast.Call(node.func, [ast.parse(axis, mode="eval").body], node.keywords)
            yield "a sum runs over the wrong axis", new
    if isinstance(node.func, ast.Attribute) and name in ("sum", "mean", "swapaxes", "reshape", "max"):
        what = "not transposed" if name == "swapaxes" else f"taken without its {name}"
        yield f"{_thing(node.func.value)} is {what}", node.func.value
    for argument in node.args:
        if not isinstance(argument, (ast.Constant, ast.Starred)):
            way = {"dh": ": the way round is missing", "dx": ": the way through the sublayer is missing"}
            more = way.get(_thing(argument), "") if name == "enter_backward" else ""
            yield f"{_called(node)} is skipped, and {_thing(argument)} taken as it is{more}", argument
    yield from _of_arguments(node, name)


def _of_arguments(node, name):
    """What is handed to a function, or the function itself, is another one."""
    if name == "where" and len(node.args) == 3:
        condition, one, other = node.args
        yield "the two cases are exchanged", ast.Call(node.func, [condition, other, one], node.keywords)
    for index, argument in enumerate(node.args):
        if isinstance(argument, ast.Name):
            args = [*node.args[:index], ast.Constant(None), *node.args[index + 1 :]]
            yield (
                f"{argument.id} is not handed on to {_called(node)}",
                ast.Call(node.func, args, node.keywords),
            )
    if len(node.args) == 1:
        first: ast.AST = ast.Subscript(node.args[0], ast.Constant(0), ast.Load())
        yield f"only the first of {_thing(node.args[0])} is taken, and not {_called(node)}", first
    if len(node.args) == 2 and name.endswith("backward"):
        yield f"{_called(node)} is a mere product", ast.BinOp(node.args[0], ast.Mult(), node.args[1])
    for one, other in (("min", "max"), ("sin", "cos"), ("max", "min"), ("cos", "sin")):
        if name == one:
            new = ast.parse(ast.unparse(node.func).removesuffix(one) + other, mode="eval").body  # np.cos
            yield f"{other} stands where another function belongs", ast.Call(new, node.args, node.keywords)


def _of_scatter(call):
    """add.at(table, index, values): entries that occur twice overwrite each other in a plain assignment."""
    if _last_name(call.func) == "at" and len(call.args) == 3:
        table, index, values = call.args
        target = ast.Subscript(table, index, ast.Store())
        yield "a row that is named twice keeps only one gradient: overwritten", ast.Assign([target], values)
        yield (
            "a row that is named twice keeps only one gradient (table[ids] += adds once)",
            ast.AugAssign(target, ast.Add(), values),
        )


def _of_comparison(node):
    """a > b becomes a >= b, and so on."""
    others = {
        ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE), ast.Lt: (ast.LtE, ast.Gt),
        ast.LtE: (ast.Lt, ast.GtE), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    }  # fmt: skip
    for other in others.get(type(node.ops[0]), ()):
        yield (
            "a comparison is another one (> for >=, or the wrong way round)",
            ast.Compare(node.left, [other(), *node.ops[1:]], node.comparators),
        )


def _named(node) -> str:
    """A name as it is; of an expression only the names in it."""
    if isinstance(node, (ast.Name, ast.Attribute, ast.Constant)):
        return ast.unparse(node)
    names = [
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and n.id not in ("xp", "np", "math", "self")
    ]
    return f"with {', '.join(dict.fromkeys(names))}" if names else "in front"


def _thing(node) -> str:
    """The same where it is what a sentence is about."""
    name = _named(node)
    return f"the expression {name}" if name.startswith(("with ", "in ")) else name


def _called(call) -> str:
    """What a call calls: softmax_backward, or feed_forward.backward."""
    name = ast.unparse(call.func).removeprefix("self.")
    return name if name.replace(".", "").isidentifier() else _last_name(call.func)


def _last_name(node) -> str:
    return node.attr if isinstance(node, ast.Attribute) else ast.unparse(node)


def _tuple(elements):
    return ast.Tuple(list(elements), ast.Load())
