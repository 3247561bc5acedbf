"""Concepts: the mistakes that many solutions share, found wherever a solution has code of their form.

The table of sentences has changes such as "A * B => A", whose letters stand for parts of the code. Each of
them is made at every place with this form. So a mistake has a name also where nobody has thought of it.
"""

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations
from typing import Any, NamedTuple, TypeAlias, TypeGuard

from npformer.language import GRADER, phrase, say
from npformer.mistakes.sentences import SENTENCES
from npformer.mistakes.syntax import (
    Parts,
    any_expression,
    is_letter,
    is_module,
    kind_of,
    ways,
    with_names,
    with_signed_numbers,
)
from npformer.mistakes.tables import rows_of

Text: TypeAlias = tuple[str, str]  # a text of the source, and the text in its place
Place: TypeAlias = tuple[ast.stmt, ast.AST, Any]  # a statement, a node in it, and the node in its place
Named: TypeAlias = tuple[str, Place]  # the sentence of a mistake at a place

SHORT = 36  # characters of the longest expression that a sentence shows
MOST_AT_ONCE = 4  # places of a mistake that a learner makes at once
STATISTICS = ("sum", "mean", "var", "std", "max")
NO_FUNCTIONS = (*STATISTICS, "reshape", "swapaxes", "transpose", "len", "range", "arange")
WHOLE = "result = "


class Form(NamedTuple):
    """The right and the wrong code of a mistake, as syntax trees with letters."""

    right: Any
    wrong: Any
    is_whole: bool  # True for the whole value of a line


@dataclass(frozen=True)
class Role:
    """The role of a node in a solution.

    Args:
        target: The variable that its line computes, or "" in a returned value.
        names: The arguments of the function and the variables that are computed before its line.
        arguments: The arguments of the function.
        is_whole: True if the node is the whole value of the line.
    """

    target: str
    names: tuple[str, ...]
    arguments: tuple[str, ...]
    is_whole: bool

    def fits(self, letter: str, node: Any) -> bool:
        """Return whether a letter can stand for a node."""
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else ""
        match letter:
            case "C":
                return isinstance(node, ast.Constant) and type(node.value) in (int, float)
            case "F":
                text = words_of(node)
                return text.replace(".", "").isidentifier() and text.split(".")[-1] not in NO_FUNCTIONS
            case "G":
                return bool(self.gradient) and words_of(node).split("[")[0] == self.gradient
            case "M":
                return node in STATISTICS
            case "P":
                return name in self.arguments
            case "V" | "W":
                return name in self.names
        return any_expression(letter, node)

    @property
    def gradient(self) -> str:
        """The incoming gradient if the line computes a gradient, or ""."""
        given = next((name for name in self.arguments if name.startswith("d")), "")
        target = self.target or given
        return given if target.startswith("d") or target.endswith(".grad") else ""


def concepts_in(source: str) -> Iterator[tuple[str, tuple[Text, ...]]]:
    """Yield the mistakes in a function: a sentence, and the changes of lines of the source.

    A change that a learner can make in several places is yielded for each place, then for all places at once,
    and a change of whole values also for two results of the function at once.
    A row with several changes is yielded for all places of all its changes in a statement at once.

    Args:
        source: The source of one function, not indented.
    """
    tree: ast.Module = _Folded().visit(ast.parse(source))
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef) or any(isinstance(n, ast.While) for n in ast.walk(tree)):
        return  # a changed while loop might never end
    nodes = list(_roles(function))
    for forms, template in concepts():
        groups: dict[tuple[str, ast.stmt | None], list[Named]] = defaultdict(list)
        for form in forms:
            for other, (says, place) in _places(form, template, nodes):
                groups[other, place[0] if len(forms) > 1 else None].append((says, place))
        for group in groups.values():
            chosen = [[change] for change in group] if len(forms) == 1 else []
            results = [change for change in group if forms[0].is_whole and _is_result(change[1][0])]
            for several in (group, *combinations(results, 2)):
                if 2 <= len(several) <= MOST_AT_ONCE and _are_apart([place for _, place in several]):
                    chosen.append([*several])
            for together in chosen:
                texts = _texts(source, [place for _, place in together])
                if texts:
                    yield say("; and ").join(dict.fromkeys(says for says, _ in together)), texts


def _is_result(statement: ast.stmt) -> bool:
    """Return whether a statement returns values or changes the gradient of a parameter."""
    return isinstance(statement, ast.Return) or _target(statement).endswith(".grad")


def _places(
    form: Form, template: str, nodes: list[tuple[ast.stmt, ast.AST, Role]]
) -> Iterator[tuple[str, Named]]:
    """Yield the places of a form with their sentences, each after the variable that W stands for, or ""."""
    for statement, node, role in nodes:
        if (form.is_whole and not role.is_whole) or not (
            isinstance(form.right, ast.Name) or kind_of(form.right) == kind_of(node)
        ):
            continue
        if words_of(form.wrong) == "W" and _is_assigned(statement, node):
            continue  # a target is not computed from a variable
        for found in ways(form.right, node, fits=role.fits):
            for parts in _completed(form.right, form.wrong, found, role):
                words = {letter: words_of(part) for letter, part in parts.items()}
                where = say(" in {target}", target=role.target) if role.target else ""
                result = role.target or say("the result")
                says = phrase(template, GRADER, where=where, result=result, **words)
                yield words.get("W", ""), (says, (statement, node, with_names(form.wrong, parts)))


class _Folded(ast.NodeTransformer):
    """Makes one number of a sign and a number."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return with_signed_numbers(node)


def _are_apart(places: list[Place]) -> bool:
    """Return whether no statement or node is a part of another."""
    for nodes in ({id(s): s for s, _, _ in places}.values(), [node for _, node, _ in places]):
        chosen = {id(node) for node in nodes}
        if any(sum(id(part) in chosen for part in ast.walk(node)) > 1 for node in nodes):
            return False
    return True


@cache
def concepts() -> tuple[tuple[list[Form], str], ...]:
    """Return the forms of each row, and its sentence."""

    def read(change: tuple[str, str]) -> Form:
        right, wrong = (_Folded().visit(ast.parse(code.removeprefix(WHOLE))).body[0] for code in change)
        if isinstance(right, ast.Expr) and isinstance(wrong, ast.Expr):
            right, wrong = right.value, wrong.value
        return Form(right, wrong, change[0].startswith(WHOLE))

    return tuple(([*map(read, row.changes)], row.says) for row in rows_of(SENTENCES))


def _roles(function: ast.FunctionDef) -> Iterator[tuple[ast.stmt, ast.AST, Role]]:
    """Yield the nodes of a function, each with its statement and its role."""
    given = tuple(argument.arg for argument in (*function.args.args, *function.args.kwonlyargs))
    known = dict.fromkeys(given)
    todo: list[ast.stmt] = list(function.body)
    while todo:
        statement = todo.pop(0)
        inner = [s for name in ("body", "orelse") for s in getattr(statement, name, ())]
        todo = inner + todo
        target, value = _target(statement), getattr(statement, "value", None)
        is_returned = isinstance(statement, ast.Return)
        wholes = value.elts if is_returned and isinstance(value, ast.Tuple) else [value]
        is_used = isinstance(statement, ast.Return | ast.AugAssign)
        wholes = [node for node in wholes if is_used or not isinstance(node, ast.Name | ast.Tuple)]
        skipped = {id(node) for s in inner for node in ast.walk(s)}
        skipped |= {id(node.value) for node in ast.walk(statement) if _is_shape(node)}
        for node in ast.walk(statement):
            if id(node) not in skipped:
                is_whole = any(node is whole for whole in wholes) and "Cache(" not in ast.unparse(node)
                own = node.id if is_whole and isinstance(node, ast.Name) else ""
                yield statement, node, Role(target or own, tuple(known), given, is_whole)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id != "_":
                    known[node.id] = None


def _is_assigned(statement: ast.stmt, node: ast.AST) -> bool:
    """Return whether a node is the target of a statement, or the variable whose part is the target."""
    targets: list[Any] = list(statement.targets) if isinstance(statement, ast.Assign) else []
    for target in targets:  # the list grows while it is read
        targets += [target.value] if isinstance(target, ast.Subscript | ast.Attribute) else []
    return any(node is target for target in targets)


def _is_shape(node: ast.AST) -> TypeGuard[ast.Attribute]:
    """Return whether a node reads the shape or the dtype of an array, and none of its numbers."""
    return isinstance(node, ast.Attribute) and node.attr in ("shape", "dtype", "size", "ndim")


def _target(statement: ast.stmt) -> str:
    """Return the variable that a statement computes, or ""."""
    if isinstance(statement, ast.Assign | ast.AugAssign):
        target = statement.targets[0] if isinstance(statement, ast.Assign) else statement.target
        text = ast.unparse(target).removesuffix("[...]")
        return text[1:-1] if isinstance(target, ast.Tuple) else text
    return ""


def _completed(form: ast.AST, wrong: ast.AST, found: Parts, role: Role) -> Iterator[Parts]:
    """Yield the parts of a form, with those that stand in the wrong code only."""
    names = (n.id for n in ast.walk(wrong) if isinstance(n, ast.Name))
    letters = {name for name in names if is_letter(name)} - found.keys()
    if "F" not in found and isinstance(form, ast.Call):
        found = found | {"F": with_names(form.func, found)}
    if "G" in letters:
        if role.gradient:
            yield found | {"G": ast.Name(role.gradient, ast.Load())}
    elif "P" in letters:
        arrays = (name for name in role.arguments if name not in ("cache", "layer"))
        yield from (found | {"P": ast.Name(name, ast.Load())} for name in arrays)
    elif "W" in letters:
        for name in role.names:
            if name not in (words_of(found.get("V", "")), role.target):
                yield found | {"W": ast.Name(name, ast.Load())}
    else:
        yield found


def words_of(part: Any) -> str:
    """Return the words for a part of the code: its text if it is short, without what only arranges axes."""
    if isinstance(part, list | str):
        return part if isinstance(part, str) else ""
    text = ast.unparse(part)
    if isinstance(part, ast.Attribute) and part.attr == "T":
        return words_of(part.value)
    if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        if part.func.attr in ("reshape", "swapaxes", "transpose"):
            return words_of(part.func.value)
        if part.func.attr in STATISTICS:
            return f"{part.func.attr}({words_of(part.func.value)})"
    for left_out in ("np.", "math.", "F.", "[..., None]"):
        text = text.replace(left_out, "")
    text = text.replace(" ** 2", "²").replace(" * ", " · ")
    if len(text) <= SHORT:
        return text
    if isinstance(part, ast.Call) and len(function := words_of(part.func)) <= SHORT:
        return f"{function}(...)"
    names = dict.fromkeys(n.id for n in ast.walk(part) if isinstance(n, ast.Name) and not is_module(n))
    return say("with {names}", names=say(" and ").join(names))


def _texts(source: str, places: list[Place]) -> tuple[Text, ...]:
    """Return the changes of the lines of the source when each node is replaced."""
    lines, texts = source.splitlines(keepends=True), {}
    for statement in {id(s): s for s, _, _ in places}.values():
        new_of = {id(node): new for s, node, new in places if s is statement}
        indent = " " * statement.col_offset
        code = ast.unparse(ast.fix_missing_locations(_replaced(statement, new_of)))
        if code != _text_of(statement):
            old = "".join(lines[statement.lineno - 1 : statement.end_lineno])
            texts[old] = "".join(f"{indent}{line}\n" for line in code.splitlines())
    return tuple(texts.items())


def _replaced(node: Any, new_of: dict[int, Any]) -> Any:
    """Return a copy of a node with new nodes instead of others."""
    if isinstance(node, list):
        return [_replaced(part, new_of) for part in node]
    if not isinstance(node, ast.AST):
        return node
    if id(node) in new_of:
        return new_of[id(node)]
    return type(node)(**{name: _replaced(getattr(node, name, None), new_of) for name in node._fields})


@lru_cache
def _text_of(statement: ast.stmt) -> str:
    return ast.unparse(statement)
