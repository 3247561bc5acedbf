"""The parts that Sphinx lacks: formulas as MathML, links to lessons and terms, docstrings of this package."""

import inspect
import re
from collections.abc import Iterator
from functools import cache
from gettext import NullTranslations
from importlib import import_module
from pathlib import Path
from typing import Any

from jinja2.ext import Extension

from npformer.language import ENGLISH, INTERFACE, LANGUAGES, catalog, later, speaking
from npformer.learn.course.glossary import Term, all_terms
from npformer.learn.course.latex import to_mathml
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.site.lesson_links import document_of, forms_of, named_in

NEXT = later("Next page")  # a page of another kind than the next lesson
WORDS = (
    later("Previous"),
    later("Home"),
    later("On this page"),
    later("Back to top"),
    later("Skip to content"),
    later("All pages"),
    later("Words to search for"),
    later("The search needs JavaScript."),
    later("No page has “{question}”. Try fewer or other words."),
    later("1 page for “{question}”"),
    later("{count} pages for “{question}”"),
    later("The best {count} pages for “{question}”"),
    later("Made with"),
    later('<a href="https://www.sphinx-doc.org/">Sphinx</a> and'),
)
# parts of Furo's templates that Furo does not translate or name, each with its label
LABELS = {
    'aria-label="': (
        later("Toggle site navigation sidebar"),
        later("Toggle table of contents sidebar"),
        later("Toggle Light / Dark / Auto color theme"),
    ),
    "<title>": (
        later("Contents"),
        later("Menu"),
        later("Expand"),
        later("Light mode"),
        later("Dark mode"),
        later("Auto light/dark, in light mode"),
        later("Auto light/dark, in dark mode"),
    ),
    "@pradyunsg</a>": (later("'s"),),
}
DRAWERS = {"sidebar-drawer": later("Site"), "toc-drawer": later("Page")}
ARRAY = re.compile(r"~?(?:numpy\.)?ndarray\[~?(?:typing\.)?Any, ~?(?:typing\.)?Any\]")


def setup(app: Any) -> dict[str, Any]:
    """Connect the functions below with Sphinx."""
    app.add_config_value("npformer_lessons", [], "env")
    app.add_config_value("npformer_others", {}, "html")
    app.add_role("english", _english)
    app.add_html_math_renderer("mathml", inline_renderers=(_formula, None), block_renderers=(_formula, None))
    app.connect("builder-inited", _begin)
    app.connect("builder-inited", _translate)
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", _signature)
    app.connect("doctree-resolved", _link_names)
    app.connect("html-collect-pages", _forget_unread_modules, priority=100)  # before viewcode lists them
    app.connect("html-page-context", _short_navigation, priority=100)  # before the theme
    app.connect("html-page-context", _language_switch)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _begin(app: Any) -> None:
    """Find the documents of the lessons that the site has."""
    with speaking(_language(app.config)):
        lessons = [lesson for lesson in all_lessons() if lesson.name in app.config.npformer_lessons]
    app.npformer_documents = {document_of(lesson): lesson for lesson in lessons}


def _translate(app: Any) -> None:
    """Let the templates find the words that Sphinx does not translate in the catalog of the program."""
    app.builder.templates.environment.add_extension(_Labels)
    if _language(app.config) != ENGLISH:
        app.translator.add_fallback(_Words(_language(app.config)))


class _Labels(Extension):
    """Labels in Furo's templates, for the translator of the page."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the source of a template in which the labels are translated."""
        for before, labels in LABELS.items():
            for label in labels:
                source = source.replace(f"{before}{label}", f"{before}{{{{ _({label!r}) }}}}")
        for drawer, label in DRAWERS.items():
            source = source.replace(
                f'<aside class="{drawer}', f'<aside aria-label="{{{{ _({label!r}) }}}}" class="{drawer}'
            )
        return source


class _Words(NullTranslations):
    """The translations of words of the theme and of the search."""

    def __init__(self, language: str) -> None:
        super().__init__()
        self.words = catalog(language, INTERFACE)

    def gettext(self, message: str) -> str:
        """Return a word in the language, or as it is."""
        word = message.strip()
        return self.words.get(NEXT if word == "Next" else word, message)


def _language(config: Any) -> str:
    """Return the language of the pages."""
    return config.language if config.language in LANGUAGES.values() else ENGLISH


def _forget_unread_modules(app: Any) -> list[Any]:
    """Leave modules without a page of their source, such as builtins, out of viewcode's list of modules."""
    modules = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, entry in modules.items() if not entry]:
        del modules[name]
    return []


def _formula(translator: Any, node: Any) -> None:
    """Write a formula as MathML."""
    from docutils.nodes import SkipNode

    translator.body.append(to_mathml(node.astext(), display=node.tagname == "math_block"))
    raise SkipNode


def _short_navigation(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let the navigation of each page list only the parts of the site to which the page belongs."""
    toctree = context["toctree"]

    def shown(**settings: Any) -> str:
        # a heading of the navigation lacks its level
        return str(toctree(**settings | {"collapse": True})).replace(
            'role="heading"', 'role="heading" aria-level="2"'
        )

    context["toctree"] = shown


# ---------------------------------------------------------------------------------------------------------
# Languages: English stands in the root, and each other language in a folder


def _english(
    name: str, rawtext: str, text: str, lineno: int, inliner: Any, options: Any = None, content: Any = ()
) -> Any:
    """Return a link to an English page: {english}`title <address>`."""
    from docutils import nodes

    title, _, address = text.removesuffix(">").rpartition(" <")
    return [nodes.reference(rawtext, title, refuri=address)], []


def _language_switch(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Put links to the same page in the other languages above it, or to their first pages."""
    if "body" not in context:
        return
    up = "../" * (page.count("/") + (_language(app.config) != ENGLISH))
    links = [
        f'<a href="{up}{folder}{page if page in documents else "index"}.html">{name}</a>'
        for folder, (name, documents) in app.config.npformer_others.items()
    ]
    if links:
        context["body"] = f'<p class="languages">{" ".join(links)}</p>\n{context["body"]}'


# ---------------------------------------------------------------------------------------------------------
# Links to lessons, chapters and terms


def _link_names(app: Any, doctree: Any, docname: str) -> None:
    """Link the lessons and chapters that the text of a lesson names, and the first use of each term."""
    from docutils import nodes

    documents: dict[str, Lesson] = app.npformer_documents
    if docname not in documents:
        return
    outside = (
        nodes.reference, nodes.literal, nodes.literal_block, nodes.math, nodes.math_block, nodes.title,
        nodes.raw, nodes.caption,
    )  # fmt: skip
    targets = _targets(app, docname)
    forms = forms_of(_terms(), documents[docname])

    def reference(key: tuple[str, str], text: str) -> Any:
        used.add(key)
        return nodes.reference("", text, refuri=targets[key], internal=True, classes=[key[0]])

    used: set[tuple[str, str]] = set()
    for leaf in list(doctree.findall(nodes.Text)):
        parent = leaf.parent
        if isinstance(parent, nodes.literal) and ("file", str(leaf)) in targets:
            parent.replace_self(reference(("file", str(leaf)), str(leaf)))
            continue
        if _is_inside(leaf, outside):
            continue
        text, at, pieces = str(leaf), 0, []
        for named in named_in(text, forms):
            key = named.kind, named.name
            if key not in targets or (named.kind == "term" and key in used):
                continue
            pieces += [nodes.Text(text[at : named.start]), reference(key, text[named.start : named.end])]
            at = named.end
        if pieces:
            parent.replace(leaf, [*pieces, nodes.Text(text[at:])])


def _is_inside(node: Any, kinds: tuple[type, ...]) -> bool:
    """Return whether a node is a part of one of these kinds."""
    while node is not None and not isinstance(node, kinds):
        node = node.parent
    return node is not None


def _targets(app: Any, docname: str) -> dict[tuple[str, str], str]:
    """Return the addresses of all lessons, chapters and terms from a document, without its own."""
    places: dict[tuple[str, str], str] = {}
    elsewhere: dict[tuple[str, str], str] = {}  # what is in English alone
    for document, lesson in app.npformer_documents.items():
        chapter = f"lessons/chapter_{lesson.chapter:02}"
        if document not in app.env.all_docs:
            root = "../" * (docname.count("/") + 1)
            elsewhere.setdefault(("chapter", str(lesson.chapter)), f"{root}lessons/index.html")
            names = (("lesson", lesson.number), ("file", lesson.name))
            elsewhere |= dict.fromkeys(names, f"{root}{document}.html")
            continue
        places.setdefault(
            ("chapter", str(lesson.chapter)), chapter if chapter in app.env.all_docs else document
        )
        if document != docname:
            places |= {("lesson", lesson.number): document, ("file", lesson.name): document}
    uris = elsewhere | {key: app.builder.get_relative_uri(docname, place) for key, place in places.items()}
    terms = app.env.domains.standard_domain.objects.items()
    glossary = app.builder.get_relative_uri(docname, "glossary")
    return uris | {("term", name): f"{glossary}#{id}" for (kind, name), (_, id) in terms if kind == "term"}


# ---------------------------------------------------------------------------------------------------------
# Docstrings


def _docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Turn a docstring into reStructuredText: its `code`, and its examples, which are indented."""
    if lines and lines[0].startswith("Alias for field number"):  # what Python says of a named tuple's field
        lines[:] = [_comment_of_field(name)]
    lines[:] = [*restructured(lines), *_lessons_line(app, value)]


def _comment_of_field(name: str) -> str:
    """Return the comment of a field of a named tuple, such as npformer.functional.AttentionCache.q."""
    package, owner, field = name.rsplit(".", 2)
    try:
        source = inspect.getsource(getattr(import_module(package), owner))
    except (ImportError, AttributeError, TypeError, OSError):
        return ""
    found = re.search(rf"^    {field}: .*?  # (.*)$", source, re.MULTILINE)
    return f"{found[1][:1].upper()}{found[1][1:]}." if found else ""


def _signature(
    app: Any, what: str, name: str, value: Any, options: Any, given: str | None, result: str | None
) -> Any:
    """Return the arguments and the result of a signature, with the package's own name for arrays."""
    return tuple(part and ARRAY.sub("Array", part) for part in (given, result))


def restructured(lines: list[str]) -> Iterator[str]:
    """Yield the lines of a docstring as reStructuredText."""
    before, in_code = "", False
    for index, line in enumerate(lines):
        indented = line.startswith("    ")
        if line.strip():
            begins = not in_code and indented and not before and _follows_text(lines, index)
            in_code = indented and (in_code or begins)
            if begins:
                yield from (".. code-block:: text", "")
        yield line if in_code or line.startswith(">>>") else _marked(line)
        before = line.strip()


def _follows_text(lines: list[str], index: int) -> bool:
    """Return whether the last line with text before an indented one is text, and not part of a section."""
    last = next((line for line in reversed(lines[:index]) if line.strip()), "")
    return bool(last) and not last.startswith(" ") and not re.fullmatch(r"[A-Z]\w+:", last)


def _marked(line: str) -> str:
    """Return a line of text in which only `code` and *words* are markup."""
    parts = re.split(r"(`[^`]+`)", line)
    for index, part in enumerate(parts):
        if index % 2 and not re.fullmatch(r"`[A-Za-z_][\w.]*`", part):
            parts[index] = f"`{part}`"  # code that is no name
        elif not index % 2:
            part = re.sub(r"([\\|_]|\*(?![A-Za-z][^*]*[^\s*]\*(?!\w))(?<!\w\*))", r"\\\1", part)
            parts[index] = part
    return "".join(parts)


def _lessons_line(app: Any, value: Any) -> list[str]:
    """Return the line that names the lessons that explain a function or a class, as the glossary says."""
    try:
        file, name = Path(inspect.getsourcefile(value) or ""), value.__name__
    except (TypeError, AttributeError):
        return []
    known = {
        lesson.path: (document, lesson)
        for document, lesson in app.npformer_documents.items()
        if document in app.env.found_docs
    }
    terms = [term for term in _terms() if any((each.path, each.name) == (file, name) for each in term.code)]
    found = sorted(
        {known[place.path] for term in terms for place in term.lessons if place.path in known}, key=str
    )
    links = ", ".join(f":doc:`lesson {lesson.number} </{document}>`" for document, lesson in found)
    return ["", f"Explained in {links}.", ""] if links else []


@cache
def _terms() -> list[Term]:
    """Return all terms, which takes half a second."""
    return all_terms()
