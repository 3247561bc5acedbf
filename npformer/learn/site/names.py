"""The public names of npformer, and their addresses on the pages of the reference."""

import ast
from collections.abc import Callable

from npformer.learn.site import definitions


class Names:
    """The public names.

    Attributes:
        packages: The packages of the public interface, in alphabetical order.
        top_level: The other names of npformer.
        package_of: The package whose page describes a name; "" is the page of npformer itself.
    """

    def __init__(self) -> None:
        public = definitions.exported("npformer")
        self.packages = [name for name in public if (definitions.PACKAGE / name).is_dir()]
        self.top_level = [name for name in public if name not in self.packages]
        self.package_of: dict[str, str] = dict.fromkeys(self.top_level, "")
        self._members: dict[str, str] = {}  # the anchors "Class.member" of methods and properties
        for package in self.packages:
            for name in self.exported(package):
                if name not in self.top_level:
                    self.package_of.setdefault(name, package)
                elif definitions.find("npformer", name) == definitions.find(f"npformer.{package}", name):
                    self.package_of[name] = self.package_of[name] or package
        self._find_members()

    def exported(self, package: str) -> list[str]:
        """Return the names of a package in alphabetical order, without a difference between cases."""
        return sorted(definitions.exported(f"npformer.{package}"), key=str.lower)

    def _find_members(self) -> None:
        for name, package in self.package_of.items():
            definition = definitions.find(f"npformer.{package}" if package else "npformer", name)
            if isinstance(definition.node, ast.ClassDef):
                for member in definitions.public_members(definition):
                    self._members[f"{name}.{member.name}"] = name

    def linker(self, page: str) -> Callable[[str], str | None]:
        """Return a function that gives the address of a name, relative to the page of a package.

        The name may begin with its package, as in nn.Linear or npformer.nn.Linear. A name of the page's own
        package comes before the same name of another package.
        """

        def link(name: str) -> str | None:
            parts = name.removeprefix("npformer.").split(".")
            own = page
            if parts[0] in self.packages:
                if len(parts) == 1:
                    return f"{parts[0]}.html" if name.startswith("npformer.") else None
                own, parts = parts[0], parts[1:]
            package = own if own and parts[0] in self.exported(own) else self.package_of.get(parts[0])
            anchor = ".".join(parts)
            if package is None or (len(parts) > 1 and anchor not in self._members):
                return None
            return f"#{anchor}" if package == page else f"{package or 'index'}.html#{anchor}"

        return link
