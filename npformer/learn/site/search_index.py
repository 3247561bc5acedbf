"""The texts that the search ranks: those of Sphinx's documents, split at their headings.

Sphinx's own index says which words are on a page, but neither how often nor in which text. A page that is
opened from a folder may load scripts but no data, so the texts are a script, as Sphinx's index is.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes

from npformer.learn.course.glossary import all_terms
from npformer.learn.course.latex import to_text

WORDS = Path(__file__).parent / "search_words.txt"
LONGEST = 20_000  # characters of a part of a page, for the search


def setup(app: Any) -> dict[str, Any]:
    """Connect the functions below with Sphinx."""
    app.connect("builder-inited", _begin)
    app.connect("doctree-resolved", _add_page, priority=900)
    app.connect("html-collect-pages", lambda app: [("search", {"title": "Search"}, "search.html")])
    app.connect("build-finished", _write_index)
    return {"parallel_read_safe": True, "parallel_write_safe": False}


def _begin(app: Any) -> None:
    """Begin an empty index, in place of Sphinx's own."""
    app.builder.search = False
    app.npformer_parts = []


def _add_page(app: Any, doctree: Any, docname: str) -> None:
    """Add the parts of a page."""
    page = {
        "page": docname,
        "title": app.env.titles[docname].astext(),
        "keywords": app.env.metadata[docname].get("keywords", ""),
    }
    part: dict[str, Any] = {"id": "", "heading": "", "text": "", "code": ""}
    parts = [part]
    for kind, place, text in _pieces(doctree):
        if kind == "heading":
            parts.append(part := {"id": place, "heading": text, "text": "", "code": ""})
        else:
            part[kind] = f"{part[kind]} {text}".strip()[:LONGEST]
    app.npformer_parts += [page | each for each in parts if each["heading"] or each["text"] or each["code"]]


def _pieces(node: Any) -> Iterator[tuple[str, str, str]]:
    """Yield the "heading", "text" and "code" below a node, with the place of a heading, and the words."""
    for child in node.children:
        tag, ids = child.tagname, child.get("ids", []) if isinstance(child, nodes.Element) else []
        if isinstance(child, nodes.raw | nodes.comment) or tag in ("toctree", "only"):
            continue
        if tag in ("section", "term", "desc_signature") and ids:
            heading = child.get("fullname") or plain(child[0] if tag == "section" else child)
            yield "heading", ids[0], heading
        if tag in ("literal_block", "desc_signature"):
            if "output" not in child.get("classes", []):
                yield "code", "", " ".join(dict.fromkeys(re.findall(r"[^\W\d]\w+", child.astext())))
        elif not isinstance(child, nodes.TextElement):
            yield from _pieces(child)
        elif tag not in ("title", "term"):
            yield "text", "", plain(child)


def plain(node: Any) -> str:
    """Return the text of a node on one line, with formulas in Unicode."""
    kinds = nodes.math | nodes.math_block
    texts = (
        to_text(leaf) if isinstance(leaf.parent, kinds) else str(leaf) for leaf in node.findall(nodes.Text)
    )
    return " ".join("".join(texts).split())


def words_of_search() -> tuple[list[str], dict[str, str]]:
    """Return the words without meaning, and the words that mean the same."""
    lines = [line for line in WORDS.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    stop = " ".join(line for line in lines if " = " not in line).split()
    synonyms = dict(line.split(" = ") for line in lines if " = " in line)
    return stop, synonyms | {term.chinese: term.name for term in all_terms() if term.chinese}


def _write_index(app: Any, error: Exception | None) -> None:
    """Write the index as the script that Sphinx's page of the search loads."""
    stop, synonyms = words_of_search()
    index = {"parts": app.npformer_parts, "synonyms": synonyms, "stop": stop}
    shown = json.dumps(index, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    Path(app.outdir, "searchindex.js").write_text(f"Search.setIndex({shown});\n", encoding="utf-8")
