"""The reference: a page for each package of the public interface. Sphinx reads entries from docstrings."""

from importlib import import_module
from types import FunctionType, ModuleType

from npformer.learn.site.markdown import FENCE, Files, document, escaped, listed

TOP = import_module("npformer")
INTERFACE = (
    "The public interface of npformer: its packages, and the names that `import npformer` has at once."
)


def packages() -> list[str]:
    """Return the names of the packages of the public interface, such as npformer.nn."""
    names = [name for name in TOP.__all__ if isinstance(getattr(TOP, name), ModuleType)]
    return sorted(f"npformer.{name}" for name in {*names, "interop"})


def reference_pages() -> Files:
    """Return the page of `npformer`, and a page for each of its packages."""
    rows, files = [], Files()
    for package in packages():
        path, module = f"reference/{package.removeprefix('npformer.')}", import_module(package)
        summary = escaped(" ".join((module.__doc__ or "").partition("\n\n")[0].split()))
        rows.append(f"- [`{package}`](/{path}.md): {summary}")
        keywords = f"{package} {' '.join(module.__all__)}"
        files[f"{path}.md"] = document(f"`{package}`", [_entries(package, module.__all__)], keywords)
    homes = {name: package for package in packages() for name in import_module(package).__all__}
    names = [name for name in TOP.__all__ if not isinstance(getattr(TOP, name), ModuleType)]
    others = ", ".join(f"{{py:obj}}`{name} <{homes[name]}.{name}>`" for name in names if name in homes)
    parts = [
        INTERFACE,
        "## Packages\n\n" + "\n".join(rows),
        f"## Names of npformer\n\nFrom its packages: {others}.",
        _entries("npformer", [name for name in names if name not in homes]),
        listed([f"/{path.removesuffix('.md')}" for path in files]),
    ]
    return files | {"reference/index.md": document("Reference", parts, "API interface")}


def _entries(package: str, names: list[str]) -> str:
    """Return the directive that describes names of a package. Constants, which have no docstring, follow."""
    values = {name: getattr(import_module(package), name) for name in names}
    described = [name for name, value in values.items() if _is_own(value)]
    others = sorted({*import_module(package).__all__} - {*described})
    lines = [f".. automodule:: {package}", f"   :exclude-members: {', '.join(others)}", ""]
    for name, value in values.items():
        if isinstance(value, type) and name not in described:
            of = f"{value.__module__}.{value.__name__}"
            lines += [f".. py:class:: {name}", f"   :module: {package}", "", f"   The class ``{of}``.", ""]
        elif name not in described:
            lines += [f".. autodata:: {package}.{name}", ""]
    return f"{FENCE}{{eval-rst}}\n" + "\n".join(lines) + f"{FENCE}"


def _is_own(value: object) -> bool:
    """Return whether a value is a function or a class of the package."""
    return isinstance(value, type | FunctionType) and value.__module__.startswith("npformer")
