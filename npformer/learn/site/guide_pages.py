"""The guides: the documentation as pages, where the package is used from a checkout, which has docs/."""

import posixpath
import re
from pathlib import Path

from npformer.language import ENGLISH, catalog, current_language
from npformer.learn.language.messages import translated
from npformer.learn.site.markdown import Files, listed

CHECKOUT = Path(__file__).parents[3]
IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s:]+)\)")
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)  # the marks of computed parts
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


def guide_pages(checkout: Path = CHECKOUT) -> Files:
    """Return the guides in the current language: all in English, else those that are translated.

    Args:
        checkout: The folder that contains docs/. Without docs/, there are no guides.
    """
    language, files, names = current_language(), Files(), list[str]()
    for file in sorted((checkout / "docs").glob("*.md")):
        written = COMMENT.sub("", file.read_text(encoding="utf-8"))
        messages = catalog(language, f"docs/{file.stem}")
        if language != ENGLISH and not messages:
            continue
        if messages:
            written = translated(_with_places(written), messages)
        for path in IMAGE.findall(written):
            name = posixpath.normpath(f"docs/{path}")
            files[name] = (checkout / name).read_bytes()
        names.append(_document_of(file))
        files[f"{names[-1]}.md"] = written.encode()
    if "docs/index" in names:
        below = [name for name in names if name not in ("docs/index", "start-here")]
        files["docs/index.md"] += f"\n{listed(below)}\n".encode()
    return files


def _with_places(written: str) -> str:
    """Return a guide with the English names of the headings that it links: translated ones have others."""
    linked = set(re.findall(r"\]\(#([\w-]+)\)", written))

    def named(heading: re.Match[str]) -> str:
        name = re.sub(r"[^\w -]", "", heading[1].lower()).replace(" ", "-")
        return f"({name})=\n{heading[0]}" if name in linked else heading[0]

    return HEADING.sub(named, written)


def _document_of(file: Path) -> str:
    """Return the name of the document of a file of the documentation."""
    if file.stem == "start-here":
        return file.stem
    return "docs/index" if file.stem == "README" else f"docs/{file.stem}"
