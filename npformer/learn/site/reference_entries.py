"""An entry of the reference: a public name with its signature, documentation, lessons and source."""

import ast
import html
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from npformer.learn.course.glossary import Term, all_terms
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.markup import code_html
from npformer.learn.site import definitions, docstrings
from npformer.learn.site.definitions import Argument, Definition, Function
from npformer.learn.site.lesson_links import page_of
from npformer.learn.site.names import Names

NARROW = 76  # characters; a longer signature has one argument in each line
LONGEST_VALUE = 300  # characters of the value of a constant


class Entries:
    """Writes the entries.

    Args:
        names: The addresses of all public names.
    """

    def __init__(self, names: Names) -> None:
        self.names = names
        self.lessons = _lessons_of_definitions()

    def entry(self, definition: Definition, package: str) -> str:
        """Return a name with its signature, its docstring and its source."""
        name, link = definition.name, self.names.linker(package)
        head = f'<h3 id="{name}"><code>{name}</code></h3>'
        if definition.node is None:
            text = f"<p>The class <code>{definition.origin}</code> of another library.</p>"
            return f'<section class="entry">{head}{text}</section>'
        parts = [head, self._signature_of(definition, package), self._lessons_line(definition)]
        if isinstance(definition.node, ast.ClassDef):
            parts += self._class(definition, package)
        elif isinstance(definition.node, ast.FunctionDef):
            given = definitions.arguments(definition.node)
            parts.append(self._documentation(definition.docstring, given, package))
        elif definition.docstring:
            parts.append(docstrings.blocks(definition.docstring, link))
        parts.append(_source(definition))
        return f'<section class="entry">{"".join(parts)}</section>'

    def _documentation(self, docstring: str, given: Sequence[Argument], package: str) -> str:
        """Return a docstring as HTML, with the types of the arguments."""
        parsed, link = docstrings.parse(docstring), self.names.linker(package)
        types = {}
        for argument in given:
            default = f" = {html.escape(argument.default)}" if argument.default else ""
            types[argument.name.lstrip("*")] = self._type(argument.type, package) + default
        text = docstrings.blocks(parsed.text, link) if parsed.text else ""
        summary = docstrings.inline(parsed.summary, link)
        return f"<p>{summary}</p>{text}{docstrings.sections(parsed, link, types)}"

    def _signature_of(self, definition: Definition, package: str) -> str:
        """Return the signature of a function or a class, or the value of a constant."""
        node = definition.node
        if isinstance(node, ast.FunctionDef):
            return self._signature(definition.name, definitions.arguments(node), node, package)
        if isinstance(node, ast.ClassDef):
            given = _given(definition)
            if not given:
                return f'<pre class="signature">class <b>{definition.name}</b></pre>'
            return self._signature(definition.name, given, None, package, word="class ")
        assert node is not None
        assert definition.file is not None
        text = ast.get_source_segment(definition.file.text, node) or ""
        shown = text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]} …"
        return f'<pre class="signature">{self._type(shown, package)}</pre>'

    def _signature(
        self, name: str, given: Sequence[Argument], node: Function | None, package: str, *, word: str = ""
    ) -> str:
        """Return a signature, with one argument in each line if it is long.

        Args:
            name: The name.
            given: The arguments.
            node: The function, whose result is shown, or None.
            package: The package of the page.
            word: The word before the name.
        """
        result = definitions.annotation(node.returns) if node is not None and node.returns else ""
        plain = [f"{each.name}{each.type}{each.default}" for each in given]
        shown = [self._argument(each, package) for each in given]
        long = len(name) + len(result) + sum(map(len, plain)) + 4 * len(plain) > NARROW
        inner = "".join(f"\n    {each}," for each in shown) + "\n" if long and shown else ", ".join(shown)
        end = f" → {self._type(result, package)}" if result else ""
        return f'<pre class="signature">{word}<b>{name}</b>({inner}){end}</pre>'

    def _argument(self, argument: Argument, package: str) -> str:
        kind = f": {self._type(argument.type, package)}" if argument.type else ""
        equals = " = " if argument.type else "="
        return f"{argument.name}{kind}" + (
            f"{equals}{html.escape(argument.default)}" if argument.default else ""
        )

    def _type(self, text: str, package: str) -> str:
        """Return a type as HTML, with links at the names that have a page."""
        link = self.names.linker(package)

        def linked(found: re.Match[str]) -> str:
            address = link(found[0]) if found[0][0].isupper() else None
            return f'<a href="{address}">{found[0]}</a>' if address else found[0]

        return re.sub(r"[A-Za-z_]\w*", linked, html.escape(text, quote=False))

    def _class(self, definition: Definition, package: str) -> Iterator[str]:
        """Yield the documentation of a class, its base classes, its fields and its members."""
        link = self.names.linker(package)
        yield self._documentation(definition.docstring, _given(definition), package)
        parents = [docstrings.code(base.name, link) for base in definitions.bases(definition)]
        if parents:
            yield f'<p class="bases">Inherits from {", ".join(parents)}.</p>'
        rows = [
            f'<dt><code>{name}</code> <span class="type">{self._type(kind, package)}'
            f"{f' = {html.escape(default)}' if default else ''}</span></dt>"
            f"<dd>{docstrings.inline(comment[:1].upper() + comment[1:], link)}</dd>"
            for name, kind, default, comment in definitions.fields(definition)
        ]
        if rows and "Args:" not in definition.docstring:
            yield f'<dl class="sections"><dt>Fields</dt><dd><dl>{"".join(rows)}</dl></dd></dl>'
        for member in definitions.public_members(definition):
            yield self._member(definition, member, package)

    def _member(self, owner: Definition, node: Function, package: str) -> str:
        """Return a method or a property of a class."""
        docstring, link = ast.get_docstring(node) or "", self.names.linker(package)
        if definitions.is_property(node):
            kind = definitions.annotation(node.returns) if node.returns else ""
            head = f'<pre class="signature"><b>{node.name}</b>: {self._type(kind, package)}</pre>'
            text = docstrings.blocks(docstrings.parse(docstring).summary, link)
        else:
            given = definitions.arguments(node, method=True)
            head = self._signature(node.name, given, node, package)
            text = self._documentation(docstring, given, package) if docstring else ""
        return f'<section class="member" id="{owner.name}.{node.name}">{head}{text}</section>'

    def _lessons_line(self, definition: Definition) -> str:
        """Return links to the lessons that explain a name, as the glossary says."""
        assert definition.file is not None
        links = self.lessons.get((definition.file.path, definition.name), {})
        if not links:
            return ""
        shown = ", ".join(
            f'<a href="../{page}">{html.escape(text)}</a>' for page, text in sorted(links.items())
        )
        return f'<p class="lessons">Explained in {shown}</p>'


def _given(definition: Definition) -> list[Argument]:
    """Return the arguments with which a class is called."""
    own = definitions.constructor(definition)
    if own is not None:
        return definitions.arguments(own, method=True)
    return [Argument(name, kind, default) for name, kind, default, _ in definitions.fields(definition)]


def _source(definition: Definition) -> str:
    """Return the source of a name, folded."""
    assert definition.file is not None
    place = f"{definition.file.shown}, line {definition.line}"
    head = f"Source of <code>{definition.name}</code>: {place}"
    return f'<details class="source"><summary>{head}</summary>\n{code_html(definition.source)}</details>'


def _lessons_of_definitions() -> dict[tuple[Path, str], dict[str, str]]:
    """Return the lessons that the glossary names for each definition, as {(file, name): {page: lesson}}."""
    found: dict[tuple[Path, str], dict[str, str]] = {}
    for term in all_terms():
        for place in term.code:
            found.setdefault((place.path, place.name), {}).update(_pages_of(term))
    return found


def _pages_of(term: Term) -> dict[str, str]:
    """Return the pages of the lessons that explain a term, with the names of the lessons."""
    return {page_of(Lesson(place.path)): _lesson_name(Lesson(place.path)) for place in term.lessons}


def _lesson_name(lesson: Lesson) -> str:
    return f"lesson {lesson.number}, {lesson.title}"
