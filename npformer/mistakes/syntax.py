"""Changes of syntax trees: edits that can be undone, their places, and code with letters for its parts."""

import ast
import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

Definition: TypeAlias = ast.FunctionDef | ast.Lambda

Reading: TypeAlias = tuple[str, ast.AST]  # what is wrong, in words, and the node that replaces the wrong one

Change: TypeAlias = tuple[ast.AST, str, Any]  # a node, the name of its field, and the new value of this field

SHORT = 40  # characters of the longest expression that a message shows


@dataclass(frozen=True)
class Edit:
    """A change of a syntax tree.

    Args:
        says: What is wrong, in words. It does not show the correct line.
        line: The number of the line that is wrong.
        changes: The changes.
        statement: The statement in which an expression changes, or None if statements change.
        function: The definition that contains the changes, or None if this is not known yet.
        is_likely: False if results are often right by chance after such a change.
    """

    says: str
    line: int
    changes: tuple[Change, ...]
    statement: ast.AST | None = None
    function: Definition | None = None
    is_likely: bool = True

    @contextmanager
    def made(self) -> Iterator[None]:
        """Make the change, and undo it at the end."""
        old = [(node, field, getattr(node, field)) for node, field, _ in self.changes]
        self.make()
        try:
            yield
        finally:
            for node, field, value in old:
                setattr(node, field, value)

    def make(self) -> None:
        """Make the change for good."""
        for node, field, value in self.changes:
            for new in value if isinstance(value, list) else [value]:
                _locate(new, self.line)
            setattr(node, field, value)

    def __str__(self) -> str:
        return f"line {self.line}: {self.says}"


@dataclass(frozen=True)
class Site:
    """A node of a syntax tree and its place.

    Args:
        node: The node.
        parent: The node that contains it.
        field: The name of the parent's field that contains it.
        index: Its index in this field, or None if the field is not a list.
        line: The number of its line.
        statement: The statement to which the node belongs, or the definition of a lambda.
    """

    node: ast.AST
    parent: ast.AST
    field: str
    index: int | None
    line: int
    statement: ast.AST

    def edit(self, says: str, new: ast.AST) -> Edit:
        """Return the edit that puts another node in the place of this one."""
        value: ast.AST | list[ast.AST] = new
        if self.index is not None:
            siblings = getattr(self.parent, self.field)
            value = [*siblings[: self.index], new, *siblings[self.index + 1 :]]
        changed = None if self.node is self.statement else self.statement
        return Edit(says, self.line, ((self.parent, self.field, value),), changed)


def sites(definition: Definition) -> Iterator[Site]:
    """Yield the places of all nodes in the body of a function, from the outside to the inside."""
    yield from _sites_in(definition, ("body",), definition.lineno, definition)


def sites_in(statement: ast.AST) -> Iterator[Site]:
    """Yield the places of all nodes in a statement, or in the body of a lambda."""
    fields = ("body",) if isinstance(statement, ast.Lambda) else statement._fields
    yield from _sites_in(statement, fields, getattr(statement, "lineno", 1), statement)


def _sites_in(parent: ast.AST, fields: tuple[str, ...], line: int, statement: ast.AST) -> Iterator[Site]:
    for field in fields:
        value = getattr(parent, field)
        for index, node in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(node, ast.AST) and not isinstance(node, ast.expr_context):
                own = node if isinstance(node, ast.stmt) else statement
                here = getattr(node, "lineno", line)
                yield Site(node, parent, field, index, here, own)
                yield from _sites_in(node, node._fields, here, own)


def _locate(node: Any, line: int) -> None:
    """Give a node and the nodes inside it a line, as far as they have none: the compiler needs it."""
    if not isinstance(node, ast.AST) or hasattr(node, "lineno"):
        return
    if "lineno" in node._attributes:
        ast.copy_location(node, ast.Pass(lineno=line, col_offset=0, end_lineno=line, end_col_offset=0))
    for inner in ast.iter_child_nodes(node):
        _locate(inner, line)


def shown(node: ast.AST) -> str:
    """Return the text of a short expression, or "the part with" the names in a long one."""
    text = ast.unparse(node)
    if len(text) <= SHORT:
        return text
    names = [n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not is_module(n)]
    return f"the part with {' and '.join(dict.fromkeys(names))}" if names else "a part"


def is_value(site: Site) -> bool:
    """Return whether a node is a value of a statement, an operand, an argument or a part of a tuple."""
    node = site.node
    if not isinstance(node, ast.expr) or not isinstance(getattr(node, "ctx", ast.Load()), ast.Load):
        return False
    if isinstance(node, ast.Slice | ast.Starred | ast.Tuple | ast.JoinedStr | ast.Constant):
        return False
    is_owner = isinstance(site.parent, ast.Attribute) and isinstance(node, ast.Name)
    return site.field != "func" and not (is_owner and (is_module(node) or ast.unparse(node) == "self"))


def is_module(node: ast.AST) -> bool:
    """Return whether a node is the name of a module, such as np."""
    return isinstance(node, ast.Name) and node.id in ("np", "math")


# ---------------------------------------------------------------------------------------------------------
# Code in which a letter stands for any expression, *p for any arguments, and **k for any keyword arguments


@cache
def parsed(code: str) -> ast.AST:
    """Return the syntax tree of an expression or of a statement."""
    (statement,) = ast.parse(code).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def kind_of(node: ast.AST) -> tuple[type, type]:
    """Return the class of a node and that of its operator: only nodes of the same kind may match."""
    return type(node), type(getattr(node, "op", None))


def matched(code: str, node: ast.AST) -> dict[str, Any] | None:
    """Return what the letters of some code stand for in a node, or None if the node is no such code."""
    parts: dict[str, Any] = {}
    return parts if _matches(parsed(code), node, parts) else None


def _matches(pattern: Any, node: Any, parts: dict[str, Any]) -> bool:
    if isinstance(pattern, ast.Name) and len(pattern.id) == 1:
        known = parts.setdefault(pattern.id, node)
        return isinstance(node, ast.expr) and (known is node or ast.dump(known) == ast.dump(node))
    if isinstance(pattern, list):
        if pattern and (rest := _rest(pattern[-1])):
            parts[rest] = node[len(pattern) - 1 :]
            pattern, node = pattern[:-1], node[: len(pattern) - 1]
        pairs = zip(pattern, node, strict=False)
        return len(pattern) == len(node) and all(_matches(one, other, parts) for one, other in pairs)
    if not isinstance(pattern, ast.AST):
        return bool(pattern == node)
    return type(pattern) is type(node) and all(
        _matches(getattr(pattern, field), getattr(node, field), parts)
        for field in pattern._fields
        if field not in ("ctx", "kind", "type_comment")
    )


def _rest(pattern: ast.AST) -> str:
    """Return the letter of *p or **k, or ""."""
    match pattern:
        case ast.Starred(value=ast.Name(id=letter)) | ast.keyword(arg=None, value=ast.Name(id=letter)):
            return letter
    return ""


def filled(code: str, parts: Mapping[str, Any]) -> Any:
    """Return the syntax tree of some code, with parts in the places of its letters."""
    return _filled(parsed(code), parts)


def _filled(pattern: Any, parts: Mapping[str, Any]) -> Any:
    if isinstance(pattern, list):
        found = [(parts.get(_rest(item)), item) for item in pattern]
        lists = (rest if isinstance(rest, list) else [_filled(item, parts)] for rest, item in found)
        return [item for items in lists for item in items]
    if isinstance(pattern, ast.Name) and pattern.id in parts:
        part = parts[pattern.id]
        if isinstance(pattern.ctx, ast.Store) and hasattr(part, "ctx"):
            part = copy.copy(part)
            part.ctx = pattern.ctx
        return part
    if isinstance(pattern, ast.AST):
        fields = {field: _filled(getattr(pattern, field), parts) for field in pattern._fields}
        return type(pattern)(**fields)
    return pattern


def expression(text: str, **parts: ast.AST) -> ast.expr:
    """Return the syntax tree of an expression, in which nodes stand for some of the names."""
    return with_names(parsed(text), parts)


def with_names(tree: Any, parts: Mapping[str, ast.AST]) -> ast.expr:
    """Return a copy of an expression with nodes in the places of names."""
    node: ast.expr = _filled(tree, parts)
    return node
