"""The reference: a page for each package of the public interface. Sphinx reads entries from docstrings."""

from collections.abc import Sequence
from importlib import import_module
from types import FunctionType, ModuleType

from npformer.learn.site.markdown import Files, escaped, page

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
    paths = {package: f"reference/{package.removeprefix('npformer.')}" for package in packages()}
    files, rows, homes = Files(), [], dict[str, str]()
    for package, path in paths.items():
        module = import_module(package)
        summary = escaped(" ".join((module.__doc__ or "").partition("\n\n")[0].split()))
        rows.append(f"- [`{package}`](/{path}.md): {summary}")
        homes |= dict.fromkeys(module.__all__, package)
        files[f"{path}.md"] = _page(package, module.__all__, title=f"`{package}`")
    names = [name for name in TOP.__all__ if not isinstance(getattr(TOP, name), ModuleType)]
    others = ", ".join(f"{{py:obj}}`{name} <{homes[name]}.{name}>`" for name in names if name in homes)
    head = f"{INTERFACE}\n\n## Packages\n\n" + "\n".join(rows)
    head += f"\n\n## Names of npformer\n\nFrom its packages: {others}."
    own = [name for name in names if name not in homes]
    top = _page("npformer", own, title="Reference", head=head, paths=list(paths.values()))
    return files | {"reference/index.md": top}


def _page(package: str, names: list[str], *, title: str, head: str = "", paths: Sequence[str] = ()) -> bytes:
    """Return a page on names of a package. Constants, which have no docstring, follow the others."""
    values = {name: getattr(import_module(package), name) for name in names}
    own = [name for name, value in values.items() if _is_own(value)]
    return page(
        "package",
        package=package,
        names=names,
        title=title,
        head=head,
        paths=paths,
        others=sorted({*import_module(package).__all__} - {*own}),
        constants=[(name, value) for name, value in values.items() if name not in own],
        is_class=lambda value: isinstance(value, type),
    )


def _is_own(value: object) -> bool:
    """Return whether a value is a function or a class of the package."""
    return isinstance(value, type | FunctionType) and value.__module__.startswith("npformer")
