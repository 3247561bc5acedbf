"""The changes that make mutants, as a walk over the syntax tree.

Docstrings, annotations, decorators, messages (f-strings, and what is raised), methods that make text for
people, and settings outside of functions are left out.
"""

import ast
import itertools

from npformer.mistakes.operators import COMPARISONS, OPPOSITE

# the exchange of both matrices is a change of its own, and // for / is seldom noticed
ARITHMETIC = OPPOSITE | {ast.FloorDiv: ast.Mult, ast.LShift: ast.RShift}
del ARITHMETIC[ast.MatMult]
REDUCTIONS = {"sum", "mean", "max", "min", "any", "all", "argmax", "prod", "cumsum", "concatenate", "split"}
# the order of these arguments is no matter of mathematics: exchanged, they raise an error at once
ORDERED = {"isinstance", "issubclass", "getattr", "hasattr", "setattr", "cast"}
# the first two arguments of these may be exchanged: np.add(a, b, out=c) = np.add(b, a, out=c). np.vecdot
# conjugates its first argument, but the kernels that use it get real numbers only
SYMMETRIC = {"add", "array_equal", "maximum", "minimum", "multiply", "result_type", "vecdot"}
FOR_PEOPLE = {"__repr__", "__str__"}
COMPOUND = ("body", "orelse", "finalbody", "handlers")
INFIX = (ast.BinOp, ast.BoolOp, ast.Compare, ast.UnaryOp, ast.IfExp)


def changes(tree):
    """Yield every change of a module as (function, around, node, operator, new text of the node).

    `around` is the statement with the node, or the expression if the statement has a body.
    """
    yield from _body(tree.body, "", inside=False)


def _body(statements, function, inside):
    for statement in statements:
        yield from _statement(statement, function, inside)


def _statement(statement, function, inside):
    """Yield the changes of a statement. `inside` is True in the body of a function."""
    if isinstance(statement, ast.FunctionDef):
        if statement.name not in FOR_PEOPLE:
            name = function if inside else f"{function}.{statement.name}".lstrip(".")
            defaults = [*statement.args.defaults, *filter(None, statement.args.kw_defaults)]
            for default in defaults:
                yield from _expression(default, name, default)
            yield from _body(statement.body, name, inside=True)
    elif isinstance(statement, ast.ClassDef):
        name = function if inside else f"{function}.{statement.name}".lstrip(".")
        yield from _body(statement.body, name, inside)
    elif not inside:
        return  # tables of settings, and names for them
    elif isinstance(statement, ast.Raise):
        yield function, statement, statement, "statement", "pass"
    elif hasattr(statement, "body"):
        yield from _compound(statement, function, inside)
    else:
        yield from _simple(statement, function)


def _compound(statement, function, inside):
    """Yield the changes of if, for, while, with and try: of their expressions, and of their bodies."""
    if isinstance(statement, ast.If | ast.While):
        for new in _negated(statement.test):
            yield function, statement.test, statement.test, "condition", new
    for name, value in ast.iter_fields(statement):
        if name in COMPOUND:
            for part in value:
                if isinstance(part, ast.ExceptHandler):
                    yield from _body(part.body, function, inside)
                else:
                    yield from _statement(part, function, inside)
        elif isinstance(value, ast.expr):
            yield from _expression(value, function, value)
        elif name == "items":
            for item in value:
                yield from _expression(item.context_expr, function, item.context_expr)


def _simple(statement, function):
    """Yield the changes of a statement without a body."""
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant | ast.Yield):
        return  # a docstring
    if _can_go(statement):
        yield function, statement, statement, "statement", "pass"
    if isinstance(statement, ast.AugAssign) and type(statement.op) in ARITHMETIC:
        new = ast.AugAssign(statement.target, ARITHMETIC[type(statement.op)](), statement.value)
        yield function, statement, statement, "arithmetic", ast.unparse(new)
    if isinstance(statement, ast.Return) and isinstance(statement.value, ast.Tuple):
        yield from _exchanged(statement.value, statement.value.elts, ast.Tuple, function, statement)
    value = getattr(statement, "value", None)
    if isinstance(value, ast.expr):
        yield from _expression(value, function, statement)


def _can_go(statement):
    """Return True if the statement without effect on names can be deleted: a call, += or x = f(x)."""
    if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
        names = {node.id for node in ast.walk(statement.value) if isinstance(node, ast.Name)}
        return statement.targets[0].id in names
    is_call = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
    return is_call or isinstance(statement, ast.AugAssign)


def _expression(node, function, around):
    """Yield the changes of an expression and of its parts."""
    if isinstance(node, ast.JoinedStr):
        return
    for operator, part, new in _of_node(node):
        yield function, around, part, operator, new
    if isinstance(node, ast.Call):
        yield from _exchanged(node, node.args, None, function, around)
    for child in ast.iter_child_nodes(node):
        if _is_free_axis(child, node):
            continue
        if isinstance(child, ast.expr):
            yield from _expression(child, function, around)
        elif isinstance(child, ast.keyword):
            if not _is_guard(child, node):
                yield from _expression(child.value, function, around)
        elif isinstance(child, ast.comprehension):
            for part in (child.iter, *child.ifs):
                yield from _expression(part, function, around)


def _is_free_axis(child, node):
    """Return True for the -1 of reshape: NumPy takes every negative number as the axis that it computes."""
    is_reshape = isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "reshape"
    return is_reshape and isinstance(child, ast.UnaryOp)


def _is_guard(keyword, call):
    """Return True for `strict` of zip, which changes nothing where the lengths are equal, as they must be."""
    return keyword.arg == "strict" and getattr(call.func, "id", "") == "zip"


def _is_symmetric(call, first):
    """Return True if a call does not depend on the order of its arguments number `first` and the next."""
    if isinstance(call.func, ast.Name):
        return call.func.id in ("min", "max")
    method = getattr(call.func, "attr", "")
    if method == "swapaxes":
        return len(call.args) == 2  # of the method: np.swapaxes begins with the array
    return first == 0 and method in SYMMETRIC


def _of_node(node):
    """Yield the changes of one node as (operator, node, new text)."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        yield "arithmetic", node, _text(ast.BinOp(node.left, ARITHMETIC[type(node.op)](), node.right))
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
        yield "sign or not", node, _text(node.operand)
    elif isinstance(node, ast.Compare) and len(node.ops) == 1:
        new = COMPARISONS[type(node.ops[0])][0]()
        yield "comparison", node, _text(ast.Compare(node.left, [new], node.comparators))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and, or", node, _text(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.IfExp):
        for new in _negated(node.test):
            yield "condition", node.test, new
    elif isinstance(node, ast.ListComp | ast.GeneratorExp | ast.SetComp | ast.DictComp):
        for condition in itertools.chain(*(part.ifs for part in node.generators)):
            for new in _negated(condition):
                yield "condition", condition, new
    elif isinstance(node, ast.Constant):
        yield from _of_constant(node)
    elif isinstance(node, ast.Call):
        yield from _of_call(node)


def _of_constant(node):
    """Yield another number, or the other bool."""
    if isinstance(node.value, bool):
        yield "constant", node, str(not node.value)
    elif isinstance(node.value, int):
        yield "constant", node, str(node.value + 1)
    elif isinstance(node.value, float):
        yield "constant", node, repr(2 * node.value or 1.0)


def _of_call(node):
    """Yield the call without each of its keyword arguments, and over another axis."""
    for keyword in node.keywords:
        if keyword.arg is not None and not _is_guard(keyword, node):
            others = [other for other in node.keywords if other is not keyword]
            yield "keyword", node, _text(ast.Call(node.func, node.args, others))
    if isinstance(node.func, ast.Attribute) and node.func.attr in REDUCTIONS:
        axes = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "axis")]
        for axis in axes:
            text = ast.unparse(axis)
            if text in ("0", "-1"):
                yield "axis", axis, "0" if text == "-1" else "-1"


def _exchanged(node, parts, kind, function, around):
    """Yield a call or a tuple with its first two different neighbours exchanged."""
    name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
    for i in range(len(parts) - 1):
        pair = parts[i : i + 2]
        texts = [ast.unparse(part) for part in pair]
        if name in ORDERED or texts[0] == texts[1] or any(isinstance(part, ast.Starred) for part in pair):
            continue
        if isinstance(node, ast.Call) and _is_symmetric(node, i):
            continue
        order = [*parts[:i], *pair[::-1], *parts[i + 2 :]]
        new = ast.Call(node.func, order, node.keywords) if kind is None else kind(order, ast.Load())
        yield function, around, node, "exchanged", _text(new)
        return


def _negated(condition):
    """Yield the negation of a condition, unless the change of a comparison or of a `not` negates it."""
    if not isinstance(condition, ast.Compare | ast.UnaryOp):
        yield f"(not {_text(condition)})"


def _text(node):
    """Return the code of an expression, in parentheses if it has an operator."""
    code = ast.unparse(node)
    return f"({code})" if isinstance(node, INFIX) and not code.startswith("(") else code
