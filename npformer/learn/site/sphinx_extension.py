"""The parts that Sphinx lacks: formulas as MathML, links to lessons and terms, docstrings of this package."""

import inspect
import posixpath
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from jinja2.ext import Extension
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform

from npformer.learn.course.latex import to_mathml
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.site.guide_pages import DOCUMENTS
from npformer.learn.site.lesson_links import document_of, terms_of_course

ARRAY = re.compile(r"~?(?:numpy\.)?ndarray\[~?(?:typing\.)?Any, ~?(?:typing\.)?Any\]")
# the labels that the theme does not translate, and its columns, which lack one
LABEL = re.compile(r"""(?<=aria-label=")[\w /]+(?=")|(?<=<title>)[\w /,]+(?=</)""")
COLUMNS = {"sidebar-drawer": "Site", "toc-drawer": "Page"}
LESSONS: dict[str, Lesson] = {document_of(lesson): lesson for lesson in all_lessons()}


def setup(app: Any) -> dict[str, Any]:
    """Connect the functions below with Sphinx."""
    app.add_config_value("npformer_others", {}, "html")
    app.add_html_math_renderer("mathml", inline_renderers=(_formula, None), block_renderers=(_formula, None))
    app.add_post_transform(LinkFiles)
    app.connect("builder-inited", lambda app: app.builder.templates.environment.add_extension(_Labels))
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", _signature)
    app.connect("html-collect-pages", _forget_unread_modules, priority=100)  # before viewcode lists them
    app.connect("html-page-context", _frame, priority=100)  # before the theme
    return {"parallel_read_safe": True, "parallel_write_safe": False}


class _Labels(Extension):
    """Let the templates of the theme translate their labels."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the source of a template with calls in place of its labels."""
        for column, label in COLUMNS.items():
            source = source.replace(f'<aside class="{column}', f'<aside aria-label="{label}" class="{column}')
        return LABEL.sub(r'{{ _("\g<0>") }}', source)


def _formula(translator: Any, node: Any) -> None:
    """Write a formula as MathML."""
    translator.body.append(to_mathml(node.astext(), display=node.tagname == "math_block"))
    raise nodes.SkipNode


def _forget_unread_modules(app: Any) -> list[Any]:
    """Leave modules without a page of their source, such as builtins, out of viewcode's list of modules."""
    modules = getattr(app.env, "_viewcode_modules", {})
    for name in [name for name, entry in modules.items() if not entry]:
        del modules[name]
    return []


def _frame(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let the navigation list only the parts of the site to which a page belongs, and add other languages."""
    toctree = context["toctree"]
    # a heading of the navigation lacks its level
    context["toctree"] = lambda **settings: str(toctree(**settings | {"collapse": True})).replace(
        'role="heading"', 'role="heading" aria-level="2"'
    )
    links = [
        f'<a href="{_root(app, page)}{folder}{page if page in names else "index"}.html">{language}</a>'
        for folder, (language, names) in app.config.npformer_others.items()
    ]
    if links and "body" in context:
        context["body"] = f'<p class="languages">{" ".join(links)}</p>\n{context["body"]}'


# ---------------------------------------------------------------------------------------------------------
# Links: English stands in the root of the site, and each other language in a folder


def _root(app: Any, docname: str) -> str:
    """Return where the root of the site is, from a document."""
    return "../" * (docname.count("/") + ("" in app.config.npformer_others))


def _address(app: Any, here: str, document: str) -> str | None:
    """Return the address of a document, in English if this language lacks it, or None if the site does."""
    if document in app.env.all_docs:
        return str(app.builder.get_relative_uri(here, document))
    _, english = app.config.npformer_others.get("", ("", ()))
    return f"{_root(app, here)}{document}.html" if document in english else None


class LinkFiles(SphinxPostTransform):
    """Lead links to files of the repository to the documents that show them, or turn them into text."""

    default_priority = 8  # before MyST warns of links to what is no document

    def run(self, **settings: Any) -> None:
        """Resolve the links of a document."""
        here = self.env.docname
        for node in list(self.document.findall(pending_xref)):
            path, hash, place = node["reftarget"].partition("#")
            if node["reftype"] != "myst" or node.get("refdomain") == "doc" or not path:
                continue
            if "." not in path and "/" not in path:
                continue  # a place
            folder = "docs" if here == "start-here" else posixpath.dirname(here)
            name = posixpath.normpath(posixpath.join("/", folder, path))[1:]
            shown = name in DOCUMENTS or re.fullmatch(r"L\d+", place)  # other places than those of the file
            address = _address(self.app, here, DOCUMENTS.get(name, name.removesuffix(".md")))
            if ".html" in path:  # the explorer
                address = f"{_root(self.app, here)}{name}"
            new: Any = nodes.inline()
            if address:
                new = nodes.reference(refuri=address if shown else f"{address}{hash}{place}", internal=True)
            new += node.children
            node.replace_self(new)


# ---------------------------------------------------------------------------------------------------------
# Docstrings


def _docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Complete a docstring: examples, which are indented, are code, and lessons that explain it are named."""
    if what == "data" or "\n".join(lines).startswith("Alias for field number"):
        lines[:] = []  # that of a constant's type, or what Python says of a field without a comment
    text = re.sub(r"^(\S.*)\n\n(?= )", r"\1\n\n::\n\n", "\n".join(lines), flags=re.MULTILINE)
    text = re.sub(r"`\.\w[^`]+`", r"`\g<0>`", text)  # a method of some object
    text = re.sub(r"(?<!\\)\|(?=\S)|(?<=\S)\|", r"\\\g<0>", text)
    lines[:] = [*text.splitlines(), *_lessons_line(app, value)]


def _signature(
    app: Any, what: str, name: str, value: Any, options: Any, given: str | None, result: str | None
) -> Any:
    """Return the arguments and the result of a signature, with the package's own name for arrays."""
    return tuple(part and ARRAY.sub("Array", part) for part in (given, result))


def _lessons_line(app: Any, value: Any) -> list[str]:
    """Return the line that names the lessons that explain a function or a class, as the glossary says."""
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return []
    code = Path(inspect.getsourcefile(value) or ""), value.__name__
    terms = [term for term in terms_of_course() if any((each.path, each.name) == code for each in term.code)]
    paths = {place.path for term in terms for place in term.lessons}
    links = ", ".join(
        f":doc:`lesson {lesson.number} </{document}>`"
        for document, lesson in LESSONS.items()
        if lesson.path in paths and document in app.env.found_docs
    )
    return ["", f"Explained in {links}.", ""] if links else []
