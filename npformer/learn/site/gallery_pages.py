"""The gallery: a page for each figure, with its caption, its code and the lessons to which it belongs.

Figures without a trained model are drawn when the site is built. The others need minutes of training, so
their pictures are those of figures/ in a checkout. Where this folder is missing, a page says how to draw its
figure.
"""

import html
import inspect
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path

from npformer.learn.course.lesson import find_lesson
from npformer.learn.figures import DATA, SOURCES, Entry, Studio, all_entries
from npformer.learn.figures.gallery import PAGE
from npformer.learn.site.guide_pages import CHECKOUT
from npformer.learn.site.lesson_links import document_of
from npformer.learn.site.markdown import (
    FENCE,
    Files,
    code,
    document,
    folded,
    listed,
    picture,
    quoted,
    shown_picture,
    text,
)
from npformer.plots.style import DPI

HEAD = """\
All figures of the source documents, and figures of the course, drawn from real tensors. In every matrix of
attention weights the rows are queries and the columns are keys. Each figure has a page with its caption, its
lessons and the code that draws it for a sentence of your own."""


def gallery_pages(entries: Sequence[Entry] | None = None, *, stored: Path = CHECKOUT / "figures") -> Files:
    """Return the list of all figures, and the page of each figure with its picture.

    Args:
        entries: The figures; by default, all.
        stored: The folder with the pictures of trained models, as `npformer figures` writes it.
    """
    files, captions = Files(), _captions(stored / PAGE)
    order = list(SOURCES)
    ranked = sorted(
        all_entries() if entries is None else entries, key=lambda each: (order.index(each.source), each.id)
    )
    parts = [HEAD]
    for source, group in groupby(ranked, key=lambda each: each.source):
        cards = []
        for entry in group:
            path = _figure_page(entry, stored, captions, files)
            image = f"  ![](/{path})\n" if path else ""
            cards.append(f"- [{entry.id}: {text(entry.title)}](/gallery/{entry.id}.md)\n\n{image}")
        parts.append(
            f"## {text(SOURCES[source])}\n\n{FENCE}{{container}} cards\n" + "\n".join(cards) + f"\n{FENCE}"
        )
    parts.append(listed([f"/gallery/{entry.id}" for entry in ranked]))
    return files | {"gallery.md": document("Gallery", parts, "figures pictures")}


def _captions(page: Path) -> dict[str, str]:
    """Return the captions of the page of figures/ by the figures' ids: the paragraph behind the images."""
    sections = page.read_text(encoding="utf-8").split("\n## ")[1:] if page.is_file() else []
    texts = {
        section.partition(":")[0]: next(
            each for each in section.split("\n\n")[1:] if not each.startswith("![")
        )
        for section in sections
    }
    return {id: re.sub(r"\\(.)", r"\1", html.unescape(text)).strip() for id, text in texts.items()}


def _figure_page(entry: Entry, stored: Path, captions: Mapping[str, str], files: Files) -> str:
    """Add the page of a figure to the files, and return the path of its picture, or "" if it is not shown."""
    path, parts, png = f"gallery/{entry.id}", list[str](), stored / f"{entry.id}.png"
    if "TR" not in entry.data:
        drawing = entry.draw(Studio())
        parts.append(picture(files, path, drawing.figure, drawing.caption, entry.title))
    elif png.is_file() and entry.id in captions:
        files[f"{path}.png"] = data = png.read_bytes()
        width = round(int.from_bytes(data[16:20]) * 96 / DPI)  # 96 CSS pixels are an inch
        parts.append(shown_picture(f"{path}.png", width, captions[entry.id], entry.title))
        moving = png.with_suffix(".gif")
        if moving.is_file():
            files[f"{path}.gif"] = moving.read_bytes()
            moving_title = quoted(f"{entry.title}, animated")
            shown = f"{FENCE}{{image}} /{path}.gif\n:alt: {moving_title}\n:loading: lazy\n{FENCE}"
            parts.append(folded("Show the animation", shown))
    else:
        parts.append(
            "This figure shows a trained model, and its picture is not part of this site. The command below "
            "trains a model and draws the figure."
        )
    lessons = [find_lesson(number) for number in entry.lessons]
    rows = [f"- [{each.number} · {text(each.title)}](/{document_of(each)}.md)" for each in lessons]
    parts += ["## Lessons\n\n" + "\n".join(rows), *_code(entry), _origin(entry)]
    files[f"{path}.md"] = document(f"{entry.id}: {text(entry.title)}", parts, "figure")
    return next((f"{path}{ending}" for ending in (".svg", ".png") if f"{path}{ending}" in files), "")


def _code(entry: Entry) -> Iterator[str]:
    """Yield the code and the command that draw a figure, and its settings."""
    settings = {name: _literal(default) for name, default in entry.settings.items()}
    given = "".join(f", {name}={value}" for name, value in list(settings.items())[:1])
    yield "## Draw it yourself"
    yield code(
        f'from npformer.learn.figures import draw\n\ndrawing = draw("{entry.id}"{given})\ndrawing.figure'
    )
    yield "Or run the command:\n\n" + code(f"npformer figures {entry.id}", "text")
    if settings:
        rows = "\n".join(f"- `{name}={value}`" for name, value in settings.items())
        yield f"The settings of this figure, with their defaults:\n\n{rows}"


def _literal(value: object) -> str:
    """Return a value as code, with the quotation marks of the course."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _origin(entry: Entry) -> str:
    """Return the document of a figure, the kind of its numbers, and the file of the code that draws it."""
    file = Path(inspect.getsourcefile(entry.function) or "").relative_to(CHECKOUT).as_posix()
    line = inspect.getsourcelines(entry.function)[1]
    numbers = " and ".join(DATA[key] for key in entry.data.split(" + "))
    source = text(SOURCES[entry.source])
    return f"Document: *{source}*. Numbers from: {numbers}. Drawn by `{file}`, line {line}."
