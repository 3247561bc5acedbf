"""The reference: a page for each package of the public interface. Sphinx reads entries from docstrings."""

import ast
import inspect
import re
from importlib import import_module
from itertools import groupby
from pathlib import Path
from textwrap import indent
from types import FunctionType, ModuleType
from typing import Any

from npformer.learn.site.markdown import FENCE, Files, document, escaped, listed

MOST_LINES = 8  # of the assignment of a constant
TOP = import_module("npformer")
INTERFACE = (
    "The public interface of npformer: its packages, and the names that `import npformer` has at once."
)
# what describes a name; other objects are data
DIRECTIVES: dict[Any, str] = {type: "autoclass", FunctionType: "autofunction"}


def packages() -> list[str]:
    """Return the names of the packages of the public interface, such as npformer.nn."""
    names = [name for name in TOP.__all__ if isinstance(getattr(TOP, name), ModuleType)]
    return sorted(f"npformer.{name}" for name in {*names, "interop"})


def reference_pages() -> Files:
    """Return the page of `npformer`, and a page for each of its packages."""
    rows = [f"- [`{name}`](/{_document_of(name)}.md): {_summary(import_module(name))}" for name in packages()]
    names = [name for name in TOP.__all__ if not isinstance(getattr(TOP, name), ModuleType)]
    homes = {name: _home(name) for name in names}
    others = ", ".join(f"{{py:obj}}`{name} <{home}.{name}>`" for name, home in homes.items() if home)
    parts = [
        INTERFACE,
        "## Packages\n\n" + "\n".join(rows),
        f"## Names of npformer\n\nFrom its packages: {others}.",
        *(_entry("npformer", name) for name, home in homes.items() if not home),
        listed([f"/{_document_of(name)}" for name in packages()]),
    ]
    files = {"reference/index.md": document("Reference", parts, "API interface")}
    return files | {f"{_document_of(name)}.md": _package(name) for name in packages()}


def _document_of(package: str) -> str:
    return f"reference/{package.removeprefix('npformer.')}"


def _home(name: str) -> str:
    """Return the package whose page describes a name of npformer, or "" if it belongs to none."""
    modules = [import_module(package) for package in packages()]
    value = getattr(TOP, name)
    same = (each.__name__ for each in modules if name in each.__all__ and getattr(each, name) is value)
    return next(same, "")


def _summary(module: ModuleType) -> str:
    """Return the first sentence of the docstring of a module."""
    return escaped(" ".join((module.__doc__ or "").partition("\n\n")[0].split()))


def _package(package: str) -> bytes:
    """Return the page of a package. Its names stand in groups, one for each file that defines them."""
    module = import_module(package)
    places = sorted((_place(module, name), name) for name in module.__all__)
    parts = [f"{FENCE}{{eval-rst}}\n.. automodule:: {package}\n   :no-index:\n   :no-members:\n{FENCE}"]
    for home, group in groupby(places, key=lambda each: each[0][0]):
        if home != package:
            parts.append(f"## {_summary(import_module(home)).rstrip('.')}")
        parts += [_entry(package, name) for _, name in group]
    return document(f"`{package}`", parts, f"{package} {' '.join(module.__all__)}")


def _place(module: ModuleType, name: str) -> tuple[str, int]:
    """Return the module that defines a name, and the line; for a constant, the module that imports it."""
    value: Any = getattr(module, name)
    home = getattr(value, "__module__", "") or ""
    is_own = isinstance(value, tuple(DIRECTIVES)) and home.startswith("npformer.")
    return (home, inspect.getsourcelines(value)[1]) if is_own else (module.__name__, 0)


def _entry(package: str, name: str) -> str:
    """Return the directive that describes a name. That of a constant has its comment."""
    value = getattr(import_module(package), name)
    directive = next((each for kind, each in DIRECTIVES.items() if isinstance(value, kind)), "py:data")
    described, content = f"{package}::{name}", ""
    if directive == "py:data":
        comment, source = assignment_of(package, name)
        described = f"{name}\n   :module: {package}"
        content = f"{comment}\n\n.. code-block:: python\n\n{indent(source, '   ')}".lstrip()
    elif isinstance(value, type) and not value.__module__.startswith("npformer"):
        directive, described = "py:class", f"{name}\n   :module: {package}"
        content = f"The class ``{value.__module__}.{value.__name__}``."
    elif isinstance(value, type) and value.__base__ is not object:
        described += "\n   :show-inheritance:"
    return f"{FENCE}{{eval-rst}}\n.. {directive}:: {described}\n\n{indent(content, '   ')}\n{FENCE}"


def assignment_of(module: str, name: str) -> tuple[str, str]:
    """Return the comment behind or above the assignment of a constant, as a sentence, and its first lines."""
    source = Path(inspect.getsourcefile(import_module(module)) or "").read_text(encoding="utf-8")
    lines, begin, end = source.splitlines(), 0, 0
    for node in ast.parse(source).body:
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return assignment_of(node.module or "", name)
        target = lines[node.lineno - 1].partition("=")[0]
        if isinstance(node, ast.Assign | ast.AnnAssign) and re.search(rf"\b{name}\b", target):
            begin, end = node.lineno - 1, node.end_lineno or node.lineno
    code, _, comment = lines[begin].partition("  # ")
    above = begin
    while not comment and above and re.match(r"# (?!-)", lines[above - 1]):
        above -= 1
    comment = " ".join([comment, *(line[2:] for line in lines[above:begin])]).strip().rstrip(".")
    shown = [code, *lines[begin + 1 : end]]
    return f"{comment[:1].upper()}{comment[1:]}." * bool(comment), "\n".join(shown[:MOST_LINES])
