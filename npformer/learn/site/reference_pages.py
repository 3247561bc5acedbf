"""The reference: a page for each package of the public interface. Sphinx reads entries from docstrings."""

from importlib import import_module
from types import FunctionType, ModuleType

from npformer.learn.site.markdown import Files, page

TOP = import_module("npformer")


def packages() -> list[str]:
    """Return the names of the packages of the public interface, such as npformer.nn."""
    names = [name for name in TOP.__all__ if isinstance(getattr(TOP, name), ModuleType)]
    return sorted(f"npformer.{name}" for name in {*names, "interop"})


def reference_pages() -> Files:
    """Return the page of `npformer`, and a page for each of its packages."""
    modules = [import_module(package) for package in packages()]
    homes = {name: module.__name__ for module in modules for name in module.__all__}
    own = [name for name in TOP.__all__ if name not in homes and f"npformer.{name}" not in packages()]
    others = [f"{homes[name]}.{name}" for name in TOP.__all__ if name in homes]
    top = {"modules": modules, "others": others, "own": own, "kind_of": _kind}
    files = {"reference/index.md": page("reference", npformer=TOP, **top)}
    for module in modules:
        path = f"reference/{module.__name__.removeprefix('npformer.')}.md"
        files[path] = page("package", package=module, kind_of=_kind)
    return files


def _kind(value: object) -> str:
    """Return "class" or "function" for those of npformer, else "data"."""
    if not isinstance(value, type | FunctionType) or not value.__module__.startswith("npformer"):
        return "data"
    return "class" if isinstance(value, type) else "function"
