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
    modules = {package: import_module(package) for package in packages()}
    paths = {package: f"reference/{package.removeprefix('npformer.')}" for package in modules}
    homes = {name: package for package, module in modules.items() for name in module.__all__}
    summaries = {package: (module.__doc__ or "").partition("\n\n")[0] for package, module in modules.items()}
    names = [name for name in TOP.__all__ if not isinstance(getattr(TOP, name), ModuleType)]
    files = {
        f"{paths[package]}.md": page("package", package=package, kinds=_kinds(module, module.__all__))
        for package, module in modules.items()
    }
    kinds = _kinds(TOP, [name for name in names if name not in homes])
    others = [f"{homes[name]}.{name}" for name in names if name in homes]
    index = page("reference", paths=paths, summaries=summaries, others=others, kinds=kinds)
    return files | {"reference/index.md": index}


def _kinds(module: ModuleType, names: list[str]) -> dict[str, str]:
    """Return the kinds of names of a module: "class" or "function" for those of npformer, else "data"."""
    kinds = dict.fromkeys(names, "data")
    for name in names:
        value = getattr(module, name)
        if isinstance(value, type | FunctionType) and value.__module__.startswith("npformer"):
            kinds[name] = "class" if isinstance(value, type) else "function"
    return kinds
