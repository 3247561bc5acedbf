"""The texts that the search ranks: those of Sphinx's documents, split at their headings.

Sphinx's own index says which words are on a page, but neither how often nor in which text. A page that is
opened from a folder may load scripts but no data, so the texts are a script, as Sphinx's index is.
"""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import desc_signature

from npformer.learn.course.glossary import all_terms
from npformer.learn.course.latex import to_text

WORDS = Path(__file__).parent / "search_words.toml"
EMPTY = {"id": "", "heading": "", "text": "", "code": ""}  # a part of a page
LONGEST = 20_000  # characters of a part of a page, for the search


def setup(app: Any) -> None:
    """Connect the functions below with Sphinx."""
    app.connect("builder-inited", _begin)
    app.connect("doctree-resolved", _add_page, priority=900)
    app.connect("html-collect-pages", lambda app: [("search", {"title": "Search"}, "search.html")])
    app.connect("build-finished", _write_index)


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
    parts = [page | EMPTY]
    for node in doctree.findall(nodes.TextElement):
        if isinstance(node.parent, nodes.TextElement) or isinstance(node, nodes.raw | nodes.comment):
            continue
        if "output" in node["classes"]:
            continue
        is_heading = isinstance(node, nodes.title | nodes.term | desc_signature)
        ids = (node.parent if isinstance(node, nodes.title) else node)["ids"]
        if is_heading and ids:
            parts.append(page | EMPTY | {"id": ids[0], "heading": node.get("fullname") or plain(node)})
        if isinstance(node, nodes.literal_block | desc_signature):
            kind, text = "code", " ".join(dict.fromkeys(re.findall(r"[^\W\d]\w+", node.astext())))
        else:
            kind, text = "text", "" if is_heading else plain(node)
        parts[-1][kind] = f"{parts[-1][kind]} {text}".strip()[:LONGEST]
    app.npformer_parts += [each for each in parts if each["heading"] or each["text"] or each["code"]]


def plain(node: Any) -> str:
    """Return the text of a node on one line, with formulas in Unicode."""
    kinds = nodes.math | nodes.math_block
    texts = (
        to_text(leaf) if isinstance(leaf.parent, kinds) else str(leaf) for leaf in node.findall(nodes.Text)
    )
    return " ".join("".join(texts).split())


def words_of_search() -> tuple[list[str], dict[str, str]]:
    """Return the words without meaning, and the words that mean the same."""
    words = tomllib.loads(WORDS.read_text(encoding="utf-8"))
    chinese = {term.chinese: term.name for term in all_terms() if term.chinese}
    return words["stop"].split(), words["synonyms"] | chinese


def _write_index(app: Any, error: Exception | None) -> None:
    """Write the index as the script that Sphinx's page of the search loads."""
    stop, synonyms = words_of_search()
    index = {"parts": app.npformer_parts, "synonyms": synonyms, "stop": stop}
    shown = json.dumps(index, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    Path(app.outdir, "searchindex.js").write_text(f"Search.setIndex({shown});\n", encoding="utf-8")
