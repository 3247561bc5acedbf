"""The index of the full-text search: the texts of Sphinx's documents, split at their headings.

Sphinx's own index says which words are on a page, but neither how often nor in which text, which the
ranking and the results need. A page that is opened from a folder may load scripts but no data, so the index
is a script that sets a constant. The browser computes the ranking from it.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from npformer.language import later
from npformer.learn.course.glossary import all_terms
from npformer.learn.course.latex import to_text

WORDS = Path(__file__).parent / "search_words.txt"
SECTIONS = {
    "lessons": later("Lessons"), "exercises": "Lessons", "explorer": later("Explorer"), "gallery": "Gallery",
    "zoo": "Bug zoo", "docs": later("Guides"), "reference": "Reference", "glossary": later("Glossary"),
}  # fmt: skip
START = later("Start")
LONGEST = 20_000  # characters of a part of a page, for the search


def setup(app: Any) -> dict[str, Any]:
    """Connect the functions below with Sphinx."""
    app.connect("builder-inited", _begin)
    app.connect("doctree-resolved", _index, priority=900)
    app.connect("html-collect-pages", _search_page)
    app.connect("build-finished", _write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _begin(app: Any) -> None:
    """Begin an empty index, in place of Sphinx's own."""
    app.builder.search = False
    app.npformer_index = []


def _index(app: Any, doctree: Any, docname: str) -> None:
    """Add a page: [path, title, section, keywords, [[id, heading, text, words of code], ...]]."""
    title = app.env.titles[docname].astext()
    section = SECTIONS.get(docname.partition("/")[0], START)
    keywords = app.env.metadata[docname].get("keywords", "")
    parts: list[list[Any]] = [["", "", [], []]]
    _read(doctree, parts)
    rows = [
        [id, heading, " ".join(" ".join(text).split())[:LONGEST], " ".join(dict.fromkeys(code))]
        for id, heading, text, code in parts
        if heading or text or code
    ]
    app.npformer_index.append([app.builder.get_target_uri(docname), title, section, keywords, rows])


def _read(node: Any, parts: list[list[Any]]) -> None:
    """Read the text below a node into parts. A heading, a term or an entry of the reference begins a part."""
    from docutils import nodes

    for child in node.children:
        ids = child.get("ids") if isinstance(child, nodes.Element) else None
        if isinstance(child, nodes.raw | nodes.comment) or child.tagname in ("toctree", "only"):
            continue
        if child.tagname in ("section", "term", "desc_signature") and ids:
            heading = _plain(child[0] if child.tagname == "section" else child)
            heading = child.get("fullname", heading)
            parts.append([ids[0], " ".join(heading.split()), [], []])
        if isinstance(child, nodes.literal_block) or child.tagname == "desc_signature":
            if "output" not in child.get("classes", []):
                parts[-1][3] += re.findall(r"[^\W\d]\w+", child.astext())
        elif isinstance(child, nodes.TextElement):
            if child.tagname not in ("title", "term"):
                parts[-1][2].append(_plain(child))
        else:
            _read(child, parts)


def _plain(node: Any) -> str:
    """Return the text of a node, with formulas in Unicode."""
    from docutils import nodes

    if isinstance(node, nodes.math | nodes.math_block):
        return to_text(node.astext())
    return "".join(map(_plain, node.children)) if node.children else node.astext()


def words_of_search() -> tuple[list[str], dict[str, str]]:
    """Return the words without meaning, and the words that mean the same."""
    lines = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    stop = " ".join(line for line in lines if " = " not in line).split()
    synonyms = dict(line.split(" = ") for line in lines if " = " in line)
    return stop, synonyms | {term.chinese: term.name for term in all_terms() if term.chinese}


def _search_page(app: Any) -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield the page of the search."""
    yield "search", {"title": "Search"}, "search.html"


def _write_index(app: Any, error: Exception | None) -> None:
    """Write the index as a script that sets a constant."""
    stop, synonyms = words_of_search()
    names = {each: app.translator.gettext(each) for each in (*SECTIONS.values(), START)}
    index = {"pages": sorted(app.npformer_index), "synonyms": synonyms, "stop": stop, "names": names}
    shown = json.dumps(index, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    Path(app.outdir, "search-index.js").write_text(f"const SEARCH_INDEX = {shown};\n", encoding="utf-8")
