"""Concepts: the mistakes that many solutions share, found wherever a solution has code of their form.

The table of sentences has changes such as "A * B => A", whose letters stand for parts of the code. Each of
them is made at every place with this form. So a mistake has a name also where nobody has thought of it.
"""

import ast
import copy
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias, TypeGuard

from npformer.mistakes.sentences import SENTENCES
from npformer.mistakes.tables import rows_of

Found: TypeAlias = dict[str, Any]  # the parts of the code by letter: a node, a list of nodes, or a name
Text: TypeAlias = tuple[str, str]  # a text of the source, and the text in its place
Place: TypeAlias = tuple[ast.stmt, ast.AST, Any]  # a statement, a node in it, and the node in its place

SHORT = 36  # characters of the longest expression that a sentence shows
MOST_AT_ONCE = 4  # places of one change that a learner makes at once
STATISTICS = ("sum", "mean", "var", "std", "max")
NO_FUNCTIONS = (*STATISTICS, "reshape", "swapaxes", "transpose", "len", "range", "arange")
WHOLE = "result = "


@dataclass(frozen=True)
class Concept:
    """A change of code with letters.

    Args:
        says: The template of its sentence.
        old: The form of the correct code.
        new: The form of the wrong code.
        is_whole: True if the code is the whole value of a line.
    """

    says: str
    old: Any
    new: Any
    is_whole: bool


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

    @property
    def gradient(self) -> str:
        """The incoming gradient if the line computes a gradient, or ""."""
        given = next((name for name in self.arguments if name.startswith("d")), "")
        target = self.target or given
        return given if target.startswith("d") or target.endswith(".grad") else ""


def concepts_in(source: str) -> Iterator[tuple[str, tuple[Text, ...]]]:
    """Yield the mistakes in a function: a sentence, and the changes of lines of the source.

    A change that a learner can make in several places is yielded for each place, then for all places at once.

    Args:
        source: The source of one function, not indented.
    """
    tree = _parsed(source)
    function = tree.body[0]
    if not isinstance(function, ast.FunctionDef) or any(isinstance(n, ast.While) for n in ast.walk(tree)):
        return  # a changed while loop might never end
    nodes = list(_roles(function))
    for concept in concepts():
        groups: dict[str, list[tuple[str, Place]]] = defaultdict(list)
        for statement, node, role in nodes:
            if concept.is_whole and not role.is_whole:
                continue
            for found in _matches(concept.old, node, {}, role):
                for parts in _completed(concept, found, role):
                    new = _Filled(parts).visit(copy.deepcopy(concept.new))
                    words = {letter: words_of(part) for letter, part in parts.items()}
                    where, result = f" in {role.target}" * bool(role.target), role.target or "the result"
                    says = concept.says.format(where=where, result=result, **words)
                    groups[words.get("W", "")].append((says, (statement, node, new)))
        for group in groups.values():
            chosen = [[change] for change in group]
            if 2 <= len(group) <= MOST_AT_ONCE and _are_apart([place for _, place in group]):
                chosen.append(group)
            for changes in chosen:
                texts = _texts(source, [place for _, place in changes])
                if texts:
                    yield "; and ".join(dict.fromkeys(says for says, _ in changes)), texts


class _Folded(ast.NodeTransformer):
    """Makes one number of a sign and a number."""

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        number = node.operand.value if isinstance(node.operand, ast.Constant) else None
        if isinstance(node.op, ast.USub) and isinstance(number, int | float):
            return ast.copy_location(ast.Constant(-number), node)
        return node


def _parsed(text: str) -> ast.Module:
    """Return the syntax tree of a text."""
    tree: ast.Module = _Folded().visit(ast.parse(text))
    return tree


def _are_apart(places: list[Place]) -> bool:
    """Return whether no statement or node is a part of another."""
    for nodes in ({id(s): s for s, _, _ in places}.values(), [node for _, node, _ in places]):
        chosen = {id(node) for node in nodes}
        if any(sum(id(part) in chosen for part in ast.walk(node)) > 1 for node in nodes):
            return False
    return True


@cache
def concepts() -> tuple[Concept, ...]:
    """Return the concepts of the table."""
    concepts = []
    for row in rows_of(SENTENCES):
        (texts,) = row.changes
        is_whole = texts[0].startswith(WHOLE)
        forms: list[Any] = [_parsed(text.removeprefix(WHOLE) if is_whole else text).body[0] for text in texts]
        if all(isinstance(form, ast.Expr) for form in forms):
            forms = [form.value for form in forms]
        concepts.append(Concept(row.says, forms[0], forms[1], is_whole))
    return tuple(concepts)


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
        wholes = [node for node in wholes if is_returned or not isinstance(node, ast.Name | ast.Tuple)]
        skipped = {id(node) for s in inner for node in ast.walk(s)}
        skipped |= {id(node.value) for node in ast.walk(statement) if _is_shape(node)}
        for node in ast.walk(statement):
            if id(node) not in skipped:
                is_whole = any(node is whole for whole in wholes) and "Cache(" not in ast.unparse(node)
                yield statement, node, Role(target, tuple(known), given, is_whole)
                if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id != "_":
                    known[node.id] = None


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


# ---------------------------------------------------------------------------------------------------------
# Forms of code


def _is_letter(name: object) -> bool:
    return isinstance(name, str) and len(name) == 1 and name.isupper()


def _matches(form: Any, node: Any, found: Found, role: Role) -> Iterator[Found]:
    """Yield the ways in which code has a form: what was found before, and the parts by letter."""
    letter = form.id if isinstance(form, ast.Name) else form
    if _is_letter(letter):
        if letter in found:
            if words_of(found[letter]) == words_of(node):
                yield found
        elif _fits(letter, node, role):
            yield found | {letter: node}
    elif isinstance(form, list):
        yield from _sequences(form, node, found, role)
    elif isinstance(form, ast.AST):
        if type(form) is type(node):
            ways = [found]
            for part, other in zip(_parts(form), _parts(node), strict=True):
                ways = [new for way in ways for new in _matches(part, other, way, role)]
            yield from ways
    elif form == (node.rstrip("_") if isinstance(node, str) else node):
        yield found


def _parts(node: ast.AST) -> list[Any]:
    """Return the parts of a node. The keywords of a call stand behind its arguments."""
    if isinstance(node, ast.Call):
        return [node.func, [*node.args, *node.keywords]]
    return [getattr(node, name) for name in node._fields if name not in ("ctx", "type_comment", "kind")]


def _sequences(form: list[Any], nodes: list[Any], found: Found, role: Role) -> Iterator[Found]:
    """Yield the ways in which arguments, elements or statements have the form of others."""
    if not form:
        if not nodes:
            yield found
        return
    first, *rest = form
    if isinstance(first, ast.Starred) and isinstance(first.value, ast.Name):
        for count in range(len(nodes) + 1):
            yield from _sequences(rest, nodes[count:], found | {first.value.id: nodes[:count]}, role)
    elif isinstance(first, ast.Expr) and isinstance(first.value, ast.Name):
        yield found | {first.value.id: nodes}  # the statements of a body
    elif nodes:
        for way in _matches(first, nodes[0], found, role):
            yield from _sequences(rest, nodes[1:], way, role)


def _fits(letter: str, node: Any, role: Role) -> bool:
    """Return whether a letter can stand for a node."""
    name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) else ""
    match letter:
        case "C":
            return isinstance(_constant(node), int | float) and not isinstance(_constant(node), bool)
        case "F":
            text = words_of(node)
            return text.replace(".", "").isidentifier() and text.split(".")[-1] not in NO_FUNCTIONS
        case "G":
            return bool(role.gradient) and words_of(node).split("[")[0] == role.gradient
        case "M":
            return node in STATISTICS
        case "P":
            return bool(name) and name in role.arguments
        case "V" | "W":
            return bool(name) and name in role.names
    return isinstance(node, ast.expr) and not isinstance(node, ast.Starred)


def _constant(node: Any) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        return None


def _completed(concept: Concept, found: Found, role: Role) -> Iterator[Found]:
    """Yield the parts of a form, with those that stand in the wrong code only."""
    letters = {
        n.id for n in ast.walk(concept.new) if isinstance(n, ast.Name) and _is_letter(n.id)
    } - found.keys()
    if "F" not in found and isinstance(concept.old, ast.Call):
        found = found | {"F": concept.old.func}
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


class _Filled(ast.NodeTransformer):
    """Puts the parts in the place of their letters."""

    def __init__(self, parts: Found) -> None:
        self.parts = parts

    def visit_Name(self, node: ast.Name) -> Any:
        return self.parts.get(node.id, node)

    def visit_Starred(self, node: ast.Starred) -> Any:
        return self.parts[node.value.id] if isinstance(node.value, ast.Name) else node

    def visit_Expr(self, node: ast.Expr) -> Any:
        new = self.visit(node.value)
        return new if isinstance(new, list) else ast.Expr(new)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        self.generic_visit(node)
        node.attr = self.parts.get(node.attr, node.attr) if node.attr == "M" else node.attr
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        node.keywords += [part for part in node.args if isinstance(part, ast.keyword)]
        node.args = [part for part in node.args if not isinstance(part, ast.keyword)]
        return node


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
    for old, new in (("np.", ""), ("math.", ""), (" ** 2", "²"), (" * ", " · "), ("[..., None]", "")):
        text = text.replace(old, new)
    if len(text) <= SHORT:
        return text.rstrip("_")
    if isinstance(part, ast.Call) and len(function := words_of(part.func)) <= SHORT:
        return f"{function}(...)"
    names = dict.fromkeys(
        n.id for n in ast.walk(part) if isinstance(n, ast.Name) and n.id not in ("np", "math")
    )
    return f"with {' and '.join(names)}"


# ---------------------------------------------------------------------------------------------------------
# The changes of the source


def _texts(source: str, places: list[Place]) -> tuple[Text, ...]:
    """Return the changes of the lines of the source when each node is replaced."""
    lines, texts = source.splitlines(keepends=True), {}
    for statement in {id(s): s for s, _, _ in places}.values():
        new_of = {id(node): new for s, node, new in places if s is statement}
        changed = ast.fix_missing_locations(_replaced(statement, new_of))
        indent = " " * statement.col_offset
        code = ast.unparse(changed)
        if code != ast.unparse(statement):
            old = "".join(lines[statement.lineno - 1 : statement.end_lineno])
            texts[old] = "".join(f"{indent}{line}\n" for line in code.splitlines())
    return tuple(texts.items())


def _replaced(node: Any, new_of: dict[int, Any]) -> Any:
    """Return a copy of a node with new nodes in the place of others."""
    if isinstance(node, list):
        return [_replaced(part, new_of) for part in node]
    if not isinstance(node, ast.AST):
        return node
    if id(node) in new_of:
        return new_of[id(node)]
    changed = type(node)(**{name: _replaced(getattr(node, name, None), new_of) for name in node._fields})
    return ast.copy_location(changed, node)
