"""The guides: the documentation as pages, where the package is used from a checkout, which has docs/."""

import posixpath
import re
from collections.abc import Collection, Sequence
from pathlib import Path

from npformer.language import ENGLISH, catalog
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.language.messages import translated
from npformer.learn.site.lesson_links import document_of
from npformer.learn.site.markdown import Files, listed

CHECKOUT = Path(__file__).parents[3]
# files of the repository, and the documents of the site that show the same
SAME = {
    "lessons": "lessons/index",
    "lessons/README.md": "lessons/index",
    "lessons/GLOSSARY.md": "glossary",
    "figures/README.md": "gallery",
    "README.md": "index",
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)  # the marks of computed parts
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
LINE = re.compile(r"L\d+")  # the place of a line in a file, which a page does not have


def guide_pages(
    lessons: Sequence[Lesson],
    others: Collection[str],
    checkout: Path = CHECKOUT,
    language: str = ENGLISH,
) -> Files:
    """Return the page that says what to read first, and the other guides with their list in front.

    Args:
        lessons: The lessons of the site, which can be linked.
        others: The names of the other documents, which can be linked, too.
        checkout: The folder that contains docs/. Without docs/, there are no guides.
        language: The language. In another one than English, there are the guides that are translated.
    """
    names = sorted((checkout / "docs").glob("*.md"))
    translations = {file: catalog(language, f"docs/{file.stem}") for file in names}
    if language != ENGLISH:
        names = [file for file in names if translations[file]]
    paths = {f"docs/{file.name}": _document_of(file) for file in names}
    known = {f"docs/{file.name}": _document_of(file) for file in translations}
    known |= {name: path for name, path in SAME.items() if path in {*others, "index"}}
    known |= {f"lessons/{lesson.path.name}": document_of(lesson) for lesson in lessons}
    if language != ENGLISH:
        english = {f"lessons/{lesson.path.name}": document_of(lesson) for lesson in all_lessons()}
        known = {name: path for name, path in (english | known).items() if path in {*others, *paths.values()}}
    files: Files = {}
    for name, path in paths.items():
        written = COMMENT.sub("", (checkout / name).read_text(encoding="utf-8"))
        if language != ENGLISH:
            written = translated(_with_places(written), translations[checkout / name])
        own = None if language == ENGLISH else {*paths.values(), *map(document_of, lessons)}
        root = "../" * (path.count("/") + 1)  # of the English pages, from those of another language

        def linked(found: re.Match[str], own: set[str] | None = own, root: str = root) -> str:
            return _linked(found, known, checkout, files, own, root)

        files[f"{path}.md"] = LINK.sub(linked, written).encode()
    if files and language == ENGLISH:
        below = [f"/{path}" for path in paths.values() if path not in ("docs/index", "start-here")]
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


def _linked(
    found: re.Match[str],
    known: dict[str, str],
    checkout: Path,
    files: Files,
    own: Collection[str] | None,
    root: str,
) -> str:
    """Return a link or a picture of a guide as the site has it. A file that it does not show has no link.

    Args:
        found: The link.
        known: The documents of the site by the names of files.
        checkout: The folder that contains docs/.
        files: The documents and pictures, to which a picture is added.
        own: The documents in the language of the guide, or None in English. All others are in English.
        root: Where the English pages are.
    """
    mark, shown, address = found.groups()
    path, _, place = address.partition("#")
    if ":" in path or not path:
        return found[0]
    name = posixpath.normpath(posixpath.join("docs", path))
    if mark:
        files[name] = (checkout / name).read_bytes()
        return f"![{shown}](/{name})"
    place = "" if not place or LINE.fullmatch(place) or known.get(name) in SAME.values() else f"#{place}"
    if name not in known:
        return shown
    if own is not None and known[name] not in own:
        return f"{{english}}`{shown} <{root}{known[name]}.html{place}>`"
    return f"[{shown}](/{known[name]}.md{place})"
