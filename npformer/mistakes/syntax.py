"""Changes of syntax trees: edits that can be undone, their places, and code with letters for its parts."""

import ast
import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from npformer.language import say

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
        return say("line {line}: {says}", line=self.line, says=self.says)


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
        """Return the edit that replaces this node by another."""
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
    both = say(" and ").join(dict.fromkeys(names))
    return say("the part with {names}", names=both) if names else say("a part")


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
    """Return whether a node is the name of a module, such as np. F is npformer.functional."""
    return isinstance(node, ast.Name) and node.id in ("np", "math", "F")


# ---------------------------------------------------------------------------------------------------------
# Code with letters: a capital letter stands for any expression, *R for any arguments or elements, keyword
# arguments included, and a letter alone in the body of an if for its statements


Parts: TypeAlias = dict[str, Any]  # what letters stand for: a node, a list of nodes, or the name of a method


@cache
def parsed(code: str) -> ast.AST:
    """Return the syntax tree of an expression or of a statement."""
    (statement,) = ast.parse(code).body
    return statement.value if isinstance(statement, ast.Expr) else statement


def with_signed_numbers(node: ast.AST) -> ast.AST:
    """Return one number for a minus and a number, and any other node unchanged."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
            return ast.copy_location(ast.Constant(-number), node)
    return node


def kind_of(node: ast.AST) -> tuple[type, type]:
    """Return the class of a node and that of its operator: only nodes of the same kind may match."""
    return type(node), type(getattr(node, "op", None))


def is_letter(name: object) -> bool:
    """Return whether a name is a capital letter. T is not: it is an attribute of arrays."""
    return isinstance(name, str) and len(name) == 1 and name.isupper() and name != "T"


def any_expression(letter: str, node: Any) -> bool:
    """Return whether a node is an expression, and no *arguments."""
    return isinstance(node, ast.expr) and not isinstance(node, ast.Starred)


def matched(code: str, node: ast.AST) -> Parts | None:
    """Return what the letters of some code stand for in a node, or None if the node is no such code."""
    return next(ways(parsed(code), node), None)


def ways(
    form: Any, node: Any, found: Parts | None = None, fits: Callable[[str, Any], bool] = any_expression
) -> Iterator[Parts]:
    """Yield the ways in which code has a form: what its letters stand for.

    Args:
        form: The form: a node, a list of nodes, or the value of a field.
        node: The code.
        found: The letters that are known.
        fits: fits(letter, node) returns whether a letter can stand for a node.
    """
    found = found or {}
    if isinstance(form, ast.UnaryOp):
        form, node = with_signed_numbers(form), with_signed_numbers(node)
    letter = form.id if isinstance(form, ast.Name) else form
    if is_letter(letter):
        if letter in found:
            if _same(found[letter], node):
                yield found
        elif fits(letter, node):
            yield found | {letter: node}
    elif isinstance(form, list):
        yield from _sequences(form, node, found, fits)
    elif not isinstance(form, ast.AST):
        if form == node:
            yield found
    elif type(form) is type(node):
        known = [found]
        for part, other in zip(_fields(form), _fields(node), strict=True):
            known = [new for way in known for new in ways(part, other, way, fits)]
            if not known:
                return
        yield from known


def _same(one: Any, other: Any) -> bool:
    """Return whether two parts of code are the same: a variable that is set is the one that is read."""
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return ast.unparse(one) == ast.unparse(other)
    return bool(one == other)


def _fields(node: ast.AST) -> list[Any]:
    """Return the parts of a node. The keywords of a call stand behind its arguments."""
    if isinstance(node, ast.Call):
        return [node.func, [*node.args, *node.keywords]]
    return [getattr(node, name) for name in node._fields if name not in ("ctx", "type_comment", "kind")]


def _sequences(
    form: list[Any], nodes: Any, found: Parts, fits: Callable[[str, Any], bool]
) -> Iterator[Parts]:
    """Yield the ways in which arguments, elements or statements have the form of others."""
    if not form:
        if not nodes:
            yield found
        return
    first, *rest = form
    if isinstance(first, ast.Starred) and isinstance(first.value, ast.Name):
        for count in range(len(nodes) + 1):
            yield from _sequences(rest, nodes[count:], found | {first.value.id: nodes[:count]}, fits)
    elif isinstance(first, ast.Expr) and isinstance(first.value, ast.Name):
        yield found | {first.value.id: nodes}  # the statements of a body
    elif nodes:
        for way in ways(first, nodes[0], found, fits):
            yield from _sequences(rest, nodes[1:], way, fits)


def filled(code: str, parts: Mapping[str, Any]) -> Any:
    """Return the syntax tree of some code, with parts in the places of its letters."""
    return with_names(parsed(code), parts)


def with_names(tree: Any, parts: Mapping[str, Any]) -> Any:
    """Return a copy of a syntax tree with parts in the places of names."""
    match tree:
        case list():
            filled_items = [with_names(item, parts) for item in tree]
            lists = (item if isinstance(item, list) else [item] for item in filled_items)
            return [item for items in lists for item in items]
        case ast.Starred(value=ast.Name(id=name)) | ast.Expr(value=ast.Name(id=name)) if isinstance(
            parts.get(name), list
        ):
            return parts[name]
        case ast.Name(id=name) if name in parts:
            part = parts[name]
            if isinstance(tree.ctx, ast.Store) and hasattr(part, "ctx"):
                part = copy.copy(part)
                part.ctx = tree.ctx
            return part
        case ast.AST():
            fields = {field: with_names(getattr(tree, field), parts) for field in tree._fields}
            if isinstance(tree, ast.Attribute):
                fields["attr"] = parts.get(tree.attr, tree.attr) if is_letter(tree.attr) else tree.attr
            if isinstance(tree, ast.Call):
                both = [*fields["args"], *fields["keywords"]]
                fields["args"] = [part for part in both if not isinstance(part, ast.keyword)]
                fields["keywords"] = [part for part in both if isinstance(part, ast.keyword)]
            return type(tree)(**fields)
    return tree


def expression(text: str, **parts: ast.AST) -> ast.expr:
    """Return the syntax tree of an expression, in which nodes stand for some of the names."""
    node: ast.expr = filled(text, parts)
    return node
