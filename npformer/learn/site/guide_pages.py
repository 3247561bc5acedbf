"""The guides: the documentation as pages, where the package is used from a checkout, which has docs/."""

import posixpath
import re
from pathlib import Path

from npformer.language import ENGLISH, catalog, current_language
from npformer.learn.course.lesson import all_lessons
from npformer.learn.language.messages import translated
from npformer.learn.language.sources import CHECKOUT
from npformer.learn.site.lesson_links import document_of
from npformer.learn.site.markdown import Files

IMAGE = re.compile(r"!\[[^\]]*\]\(([^)\s:]+)\)")
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)  # the marks of computed parts
NAVIGATION = "\n`````{toctree}\n:hidden:\n:glob:\n\n*\n`````\n"  # the other guides
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)

# the documents that show what files of the repository have
DOCUMENTS = {
    "lessons": "lessons/index", "lessons/README.md": "lessons/index", "lessons/GLOSSARY.md": "glossary",
    "figures/README.md": "gallery", "README.md": "index", "docs/README.md": "docs/index",
    "docs/start-here.md": "start-here",
} | {f"lessons/{lesson.path.name}": document_of(lesson) for lesson in all_lessons()}  # fmt: skip


def guide_pages(checkout: Path = CHECKOUT) -> Files:
    """Return the guides in the current language: all in English, else those that are translated.

    Args:
        checkout: The folder that contains docs/. Without docs/, there are no guides.
    """
    language, files = current_language(), Files()
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
        name = DOCUMENTS.get(f"docs/{file.name}", f"docs/{file.stem}")
        files[f"{name}.md"] = (written + NAVIGATION * (name == "docs/index")).encode()
    return files


def _with_places(written: str) -> str:
    """Return a guide with the English names of the headings that it links: translated ones have others."""
    linked = set(re.findall(r"\]\(#([\w-]+)\)", written))

    def named(heading: re.Match[str]) -> str:
        name = re.sub(r"[^\w -]", "", heading[1].lower()).replace(" ", "-")
        return f"({name})=\n{heading[0]}" if name in linked else heading[0]

    return HEADING.sub(named, written)
