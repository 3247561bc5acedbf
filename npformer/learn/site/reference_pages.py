"""The reference: a page for each package of the public interface, from signatures and docstrings."""

import ast
import html
from collections.abc import Iterator, Sequence
from itertools import groupby

from npformer.learn.site import definitions, docstrings
from npformer.learn.site.definitions import Definition
from npformer.learn.site.names import Names
from npformer.learn.site.page import Page
from npformer.learn.site.reference_entries import Entries
from npformer.learn.site.styles import STYLES


def reference_pages() -> Iterator[Page]:
    """Yield the pages of the public interface: that of `npformer`, then one for each of its packages."""
    names = Names()
    writer = _Writer(names)
    yield writer.overview()
    for package in names.packages:
        yield writer.package_page(package)


class _Writer:
    """Writes the pages.

    Args:
        names: The addresses of all public names.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.entries = Entries(names)

    def overview(self) -> Page:
        """Return the page of `npformer`: its own names, and all names of its packages."""
        link = self.names.linker("")
        parts = [
            "<h1>Reference</h1>",
            "<p>The public interface of npformer. "
            '<a href="#names">All names</a> stand at the end of this page.</p>',
            docstrings.blocks(definitions.source_file("npformer").docstring, link),
            '<h2 id="packages">Packages</h2>',
            '<dl class="packages">',
        ]
        for package in self.names.packages:
            summary = definitions.source_file(f"npformer.{package}").summary
            text = docstrings.inline(summary, link)
            parts.append(
                f'<dt><a href="{package}.html"><code>npformer.{package}</code></a></dt><dd>{text}.</dd>'
            )
        parts.append('</dl>\n<h2 id="top-level">Names of npformer</h2>')
        for name in self.names.top_level:
            if self.names.package_of[name] == "":
                parts.append(self.entries.entry(definitions.find("npformer", name), ""))
            else:
                parts.append(
                    f"<p>{docstrings.code(name, link)} is npformer.{self.names.package_of[name]}.{name}.</p>"
                )
        parts += ['<h2 id="names">All names</h2>', self._all_names()]
        body = "\n".join(parts)
        return Page("reference/index.html", "Reference", "Reference", body, STYLES, ("API", "interface"))

    def _all_names(self) -> str:
        """Return the list of the names of all packages."""
        parts = []
        for package in self.names.packages:
            link = self.names.linker("")
            names = " ".join(
                f"<li>{docstrings.code(name, link)}</li>" for name in self.names.exported(package)
            )
            parts.append(f'<h3 id="names-{package}">npformer.{package}</h3>\n<ul class="names">{names}</ul>')
        return "\n".join(parts)

    def package_page(self, package: str) -> Page:
        """Return the page of a package. Its names stand in groups, one for each file that defines them."""
        module = definitions.source_file(f"npformer.{package}")
        found = [definitions.find(module.module, name) for name in self.names.exported(package)]
        groups = [
            (file, list(group))
            for file, group in groupby(sorted(found, key=_file_and_line), key=lambda each: each.file)
        ]
        docstring = ast.get_docstring(module.tree) or ""
        parts = [
            f"<h1><code>{module.module}</code></h1>",
            docstrings.blocks(docstring, self.names.linker(package)),
            '<nav class="names" aria-label="Names on this page">',
            *(_contents(file, group) for file, group in groups),
            "</nav>",
        ]
        for file, group in groups:
            if file is not None:
                link = self.names.linker(package)
                parts.append(f'<h2 id="{_group_id(file)}">{docstrings.inline(file.summary, link)}</h2>')
            parts += [self.entries.entry(definition, package) for definition in group]
        keywords = (module.module, *self.names.exported(package))
        return Page(
            f"reference/{package}.html", module.module, "Reference", "\n".join(parts), STYLES, keywords
        )


def _file_and_line(definition: Definition) -> tuple[str, int]:
    """Return the order of the names on a page: by file, and in the order of the file."""
    return (definition.file.shown, definition.line) if definition.file else ("", 0)


def _group_id(file: definitions.SourceFile) -> str:
    return f"file-{file.module.removeprefix('npformer.').replace('.', '-')}"


def _contents(file: definitions.SourceFile | None, group: Sequence[Definition]) -> str:
    """Return the links to the names of a file."""
    links = "".join(f'<li><a href="#{each.name}"><code>{each.name}</code></a></li>' for each in group)
    head = f'<p><a href="#{_group_id(file)}">{html.escape(file.summary)}</a></p>' if file is not None else ""
    return f'{head}<ul class="names">{links}</ul>'
