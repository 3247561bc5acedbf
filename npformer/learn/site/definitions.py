"""The definitions of public names, read from the source files without importing them."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2]

Function = ast.FunctionDef


@dataclass(frozen=True)
class SourceFile:
    """A Python file of the package."""

    module: str  # the dotted name
    path: Path
    text: str
    tree: ast.Module

    @property
    def shown(self) -> str:
        """The path relative to the folder that holds npformer/."""
        return self.path.relative_to(PACKAGE.parent).as_posix()

    @property
    def docstring(self) -> str:
        """The docstring of the module."""
        return ast.get_docstring(self.tree) or ""

    @property
    def summary(self) -> str:
        """The first sentence of the docstring, without its full stop."""
        return " ".join(self.docstring.partition("\n\n")[0].split()).rstrip(".")


@dataclass(frozen=True)
class Definition:
    """The definition of a name: a function, a class, or an assignment.

    Args:
        name: The name.
        file: The file that defines it, or None if another library does.
        node: The definition. None if another library defines the name.
    """

    name: str
    file: SourceFile | None
    node: ast.FunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign | None
    origin: str = ""  # the dotted name in another library

    @property
    def docstring(self) -> str:
        """The docstring, or the comment of an assignment."""
        if isinstance(self.node, (ast.FunctionDef, ast.ClassDef)):
            return ast.get_docstring(self.node) or ""
        return self._comment() if self.node is not None else ""

    @property
    def line(self) -> int:
        """The number of the first line, with decorators."""
        assert self.node is not None
        decorators = getattr(self.node, "decorator_list", [])
        return min([self.node.lineno, *(decorator.lineno for decorator in decorators)])

    @property
    def source(self) -> str:
        """The lines of the definition."""
        assert self.file is not None
        assert self.node is not None
        return "\n".join(self.file.text.splitlines()[self.line - 1 : self.node.end_lineno])

    def _comment(self) -> str:
        """Return the comment behind or above an assignment, as a sentence."""
        assert self.file is not None
        assert self.node is not None
        lines = self.file.text.splitlines()
        behind, above = trailing_comment(lines[self.node.lineno - 1]), list[str]()
        number = self.node.lineno - 2
        while not behind and number >= 0 and re.match(r"# (?!-{3})", lines[number]):
            above.insert(0, lines[number][2:])
            number -= 1
        text = behind or " ".join(above)
        return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else ""


def trailing_comment(line: str) -> str:
    """Return the comment at the end of a line of code."""
    return line.partition("  # ")[2].strip()


@cache
def source_file(module: str) -> SourceFile:
    """Return the file of a module, such as "npformer.functional.softmax"."""
    folder = PACKAGE.parent.joinpath(*module.split("."))
    path = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = path.read_text(encoding="utf-8")
    return SourceFile(module, path, text, ast.parse(text))


@cache
def find(module: str, name: str) -> Definition:
    """Return the definition of a name that a module defines or imports.

    Raises:
        LookupError: If the module has no such name.
    """
    file = source_file(module)
    for node in file.tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name:
            return Definition(name, file, node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and name in _targets(node):
            return Definition(name, file, node)
    for part in ast.walk(file.tree):
        if isinstance(part, ast.ImportFrom) and part.module:
            for alias in part.names:
                if (alias.asname or alias.name) == name:
                    if part.module.partition(".")[0] != "npformer":
                        return Definition(name, None, None, f"{part.module}.{alias.name}")
                    return find(part.module, alias.name)
    raise LookupError(f"{module} has no name {name}")


def _targets(node: ast.Assign | ast.AnnAssign) -> list[str]:
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    flat = [part for target in targets for part in ast.walk(target)]
    return [part.id for part in flat if isinstance(part, ast.Name)]


def exported(module: str) -> list[str]:
    """Return the names in `__all__` of a module."""
    for node in source_file(module).tree.body:
        if isinstance(node, ast.Assign) and _targets(node) == ["__all__"]:
            names: list[str] = ast.literal_eval(node.value)
            return names
    return []


# ---------------------------------------------------------------------------------------------------------
# Classes


def bases(definition: Definition) -> list[Definition]:
    """Return the base classes that the package defines."""
    found = []
    if isinstance(definition.node, ast.ClassDef) and definition.file is not None:
        for base in definition.node.bases:
            name = ast.unparse(base).partition("[")[0]
            try:
                parent = find(definition.file.module, name)
            except LookupError:  # a built-in class, or a name with a dot
                continue
            if parent.file is not None:
                found.append(parent)
    return found


def constructor(definition: Definition) -> Function | None:
    """Return the `__init__` of a class or of the nearest of its bases."""
    own = [node for node in members(definition) if node.name == "__init__"]
    if own:
        return own[0]
    return next(filter(None, map(constructor, bases(definition))), None)


def members(definition: Definition) -> list[Function]:
    """Return the functions in the body of a class, without overloads and setters."""
    assert isinstance(definition.node, ast.ClassDef)
    functions = [node for node in definition.node.body if isinstance(node, ast.FunctionDef)]
    return [node for node in functions if not _decorators(node) & {"overload", "setter"}]


def public_members(definition: Definition) -> list[Function]:
    """Return the public methods and properties of a class."""
    return [node for node in members(definition) if not node.name.startswith("_") or node.name == "__call__"]


def is_property(node: Function) -> bool:
    """Return whether a function of a class is read like an attribute."""
    return bool(_decorators(node) & {"property", "cached_property"})


def _decorators(node: Function) -> set[str]:
    return {ast.unparse(decorator).partition("(")[0].rpartition(".")[2] for decorator in node.decorator_list}


def fields(definition: Definition) -> Iterator[tuple[str, str, str, str]]:
    """Yield (name, type, default, comment) of the fields of a dataclass or a named tuple.

    The inherited fields come first.
    """
    assert isinstance(definition.node, ast.ClassDef)
    assert definition.file is not None
    for base in bases(definition):
        if isinstance(base.node, ast.ClassDef):
            yield from fields(base)
    names = {ast.unparse(base) for base in definition.node.bases}
    decorators = " ".join(map(ast.unparse, definition.node.decorator_list))
    if "NamedTuple" not in names and "dataclass" not in decorators:
        return
    lines = definition.file.text.splitlines()
    for node in definition.node.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            kind = annotation(node.annotation)
            if kind.startswith("ClassVar") or node.target.id.startswith("_"):
                continue
            default = "" if node.value is None else ast.unparse(node.value)
            comment = trailing_comment(lines[(node.end_lineno or node.lineno) - 1])
            yield node.target.id, kind, default, comment


# ---------------------------------------------------------------------------------------------------------
# Signatures


@dataclass(frozen=True)
class Argument:
    """An argument of a function: its name with its stars, its type and its default, or "" for none."""

    name: str
    type: str = ""
    default: str = ""


def arguments(node: Function, *, method: bool = False) -> list[Argument]:
    """Return the arguments of a function, with "*" and "/" where they stand; a method's without `self`."""
    args = node.args
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + list(args.defaults)
    found = [_argument(arg, default) for arg, default in zip(positional, defaults, strict=True)]
    if args.posonlyargs:
        found.insert(len(args.posonlyargs), Argument("/"))
    if method and "staticmethod" not in _decorators(node):
        found = found[1:]
    if args.vararg:
        found.append(_argument(args.vararg, None, "*"))
    elif args.kwonlyargs:
        found.append(Argument("*"))
    found += [_argument(arg, value) for arg, value in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return [*found, _argument(args.kwarg, None, "**")] if args.kwarg else found


def _argument(arg: ast.arg, default: ast.expr | None, stars: str = "") -> Argument:
    kind = annotation(arg.annotation) if arg.annotation else ""
    return Argument(stars + arg.arg, kind, "" if default is None else ast.unparse(default))


def annotation(node: ast.expr) -> str:
    """Return an annotation as text. A type in quotes loses them."""
    return re.sub(r"'([\w.\[\], |]+)'", r"\1", ast.unparse(node))
