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
    index = page("reference", modules=modules, others=others, kinds=_kinds(TOP, own))
    files = {"reference/index.md": index}
    for module in modules:
        path = f"reference/{module.__name__.removeprefix('npformer.')}.md"
        files[path] = page("package", package=module.__name__, kinds=_kinds(module, module.__all__))
    return files


def _kinds(module: ModuleType, names: list[str]) -> dict[str, str]:
    """Return the kinds of names of a module: "class" or "function" for those of npformer, else "data"."""
    kinds = dict.fromkeys(names, "data")
    for name in names:
        value = getattr(module, name)
        if isinstance(value, type | FunctionType) and value.__module__.startswith("npformer"):
            kinds[name] = "class" if isinstance(value, type) else "function"
    return kinds
