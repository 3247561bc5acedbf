"""The parts that Sphinx lacks: formulas as MathML, links to lessons and terms, docstrings of this package."""

import posixpath
import re
from typing import Any

from docutils import nodes
from jinja2.ext import Extension
from sphinx.addnodes import pending_xref
from sphinx.transforms.post_transforms import SphinxPostTransform

from npformer.learn.course.latex import to_mathml
from npformer.learn.course.lesson import all_lessons
from npformer.learn.site.guide_pages import DOCUMENTS
from npformer.learn.site.lesson_links import document_of, terms_of_course

ARRAY = re.compile(r"~?(?:numpy\.)?ndarray\[~?(?:typing\.)?Any, ~?(?:typing\.)?Any\]")
EMPTY_HEAD = re.compile(r'<th class="head[^>]*><p></p></th>')  # the corner of a table is the head of nothing
# the labels that the theme does not translate, and what else its templates lack
LABEL = re.compile(r"""(?<=aria-label=")[\w /]+(?=")|(?<=<title>)[\w /,]+(?=</)""")
MENDED = {
    '<aside class="sidebar-drawer': '<aside aria-label="Site" class="sidebar-drawer',
    '<aside class="toc-drawer': '<aside aria-label="Page" class="toc-drawer',
    '_("Next")': '_("Next page")',  # a page of another kind than the next lesson
    "Made with {%": "Made with{%",
}
LESSONS = all_lessons()


def setup(app: Any) -> None:
    """Connect the functions below with Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(_formula, None), block_renderers=(_formula, None))
    app.add_post_transform(LinkFiles)
    app.connect("builder-inited", lambda app: app.builder.templates.environment.add_extension(_Labels))
    app.connect("autodoc-process-docstring", _docstring, priority=100)  # before napoleon
    app.connect("autodoc-process-signature", _signature)
    app.connect("html-page-context", _frame, priority=100)  # before the theme


class _Labels(Extension):
    """Mend the templates of the theme, and let them translate their labels."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
        """Return the source of a template with calls in place of its labels."""
        for lacking, mended in MENDED.items():
            source = source.replace(lacking, mended)
        return LABEL.sub(r'{{ _("\g<0>") }}', source)


def _formula(translator: Any, node: Any) -> None:
    """Write a formula as MathML."""
    translator.body.append(to_mathml(node.astext(), display=node.tagname == "math_block"))
    raise nodes.SkipNode


def _frame(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let the navigation list only the parts of the site to which a page belongs, and mend empty heads."""
    context["body"] = EMPTY_HEAD.sub("<td></td>", context.get("body", ""))
    toctree = context["toctree"]
    context["toctree"] = lambda **settings: toctree(**settings | {"collapse": True})


class LinkFiles(SphinxPostTransform):
    """Lead links to files of the repository to the documents that show them, or turn them into text."""

    default_priority = 8  # before MyST warns of links to what is no document

    def run(self, **settings: Any) -> None:
        """Resolve the links of a document."""
        here = self.env.docname
        folder = "docs" if here == "start-here" else posixpath.dirname(here)
        for node in list(self.document.findall(pending_xref)):
            path, hash, place = node["reftarget"].partition("#")
            # MyST resolves links to documents and, without "." and "/", to places
            if node["reftype"] != "myst" or node.get("refdomain") == "doc" or not re.search("[./]", path):
                continue
            name = posixpath.normpath(posixpath.join("/", folder, path))[1:]
            if name in DOCUMENTS or re.fullmatch(r"L\d+", place):
                hash = place = ""  # the document has other places than the file
            address = self._address(DOCUMENTS.get(name, name.removesuffix(".md")))
            new: Any = nodes.inline()
            if address:
                new = nodes.reference(refuri=f"{address}{hash}{place}", internal=True)
            new += node.children
            node.replace_self(new)

    def _address(self, name: str) -> str | None:
        """Return the address of a document, in English if this language lacks it, or None if the site does.

        The explorer is no document, and stands in the root of the site, where English stands.
        """
        here, others = self.env.docname, self.config.html_context["others"]
        root = "../" * (here.count("/") + ("../" in others))
        if ".html" in name:
            return root + name
        if name in self.env.all_docs:
            return str(self.app.builder.get_relative_uri(here, name))
        _, english = others.get("../", ("", ()))
        return f"{root}{name}.html" if name in english else None


def _docstring(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Complete a docstring: examples, which are indented, are code, and lessons that explain it are named."""
    if what == "data" or "\n".join(lines).startswith("Alias for field number"):
        lines[:] = []  # that of a constant's type, or what Python says of a field without a comment
    text = re.sub(r"^(\S.*)\n\n(?= )", r"\1\n\n::\n\n", "\n".join(lines), flags=re.MULTILINE)
    text = re.sub(r"`\.\w[^`]+`", r"`\g<0>`", text)  # a method of some object
    text = re.sub(r"(?<!\\)\|(?=\S)|(?<=\S)\|", r"\\\g<0>", text)
    lines[:] = [*text.splitlines(), *_lessons_line(app, value)]


def _signature(app: Any, *entry: Any) -> tuple[str | None, ...]:
    """Return the arguments and the result, which end an entry, with the package's own name for arrays."""
    return tuple(part and ARRAY.sub("Array", part) for part in entry[-2:])


def _lessons_line(app: Any, value: Any) -> list[str]:
    """Return the line that names the lessons that explain a function or a class, as the glossary says."""
    file, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", "")
    paths = {
        place.path
        for term in terms_of_course()
        if any(each.name == name and each.path.match(f"{file.replace('.', '/')}.py") for each in term.code)
        for place in term.lessons
    }
    documents = [(each.number, document_of(each)) for each in LESSONS if each.path in paths]
    links = [f":doc:`lesson {number} </{each}>`" for number, each in documents if each in app.env.found_docs]
    return ["", f"Explained in {', '.join(links)}.", ""] if links else []
