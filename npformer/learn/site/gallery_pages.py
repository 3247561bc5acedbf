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
from typing import NamedTuple

from npformer.learn.course.lesson import Lesson, find_lesson
from npformer.learn.course.markup import code_html
from npformer.learn.figures import DATA, SOURCES, Entry, Studio, all_entries, find_entry
from npformer.learn.figures.gallery import PAGE
from npformer.learn.site.definitions import PACKAGE
from npformer.learn.site.images import figure_html, size_of
from npformer.learn.site.lesson_links import page_of
from npformer.learn.site.page import Page
from npformer.learn.site.styles import STYLES
from npformer.plots.composition import small_png

SECTION = "Gallery"
GALLERY = "gallery.html"
CHECKOUT = PACKAGE.parent / "figures"
THUMBNAIL = 220  # CSS pixels, the height of a picture in the list

HEAD = """\
<h1>Gallery</h1>
<p>All figures of the source documents, and figures of the course, drawn from real tensors. In every matrix of
attention weights the rows are queries and the columns are keys. Each figure has a page with its caption, its
lessons and the code that draws it for a sentence of your own.</p>
"""


class Shown(NamedTuple):
    """A figure as the gallery shows it."""

    entry: Entry
    caption: str  # "" if the figure is not shown
    png: bytes  # b"" if the figure is not shown
    gif: bytes  # b"" if it has no animation


def gallery_pages(entries: Sequence[Entry] | None = None, *, stored: Path = CHECKOUT) -> Iterator[Page]:
    """Yield the page of all figures, and then the page of each figure.

    Args:
        entries: The figures; by default, all.
        stored: The folder with the pictures of trained models, as `npformer figures` writes it.
    """
    entries = all_entries() if entries is None else entries
    captions = _captions(stored / PAGE)
    shown = [_shown(entry, stored, captions) for entry in entries]
    yield Page(GALLERY, "Gallery", SECTION, _overview(shown), STYLES, ("figures", "pictures"))
    for index, each in enumerate(shown):
        yield _page(each, shown[index - 1 : index] if index else [], shown[index + 1 : index + 2])


def lessons_of(id: str) -> list[Lesson]:
    """Return the lessons to which a figure belongs, the most important one first."""
    return [find_lesson(number) for number in find_entry(id).lessons]


def _shown(entry: Entry, stored: Path, captions: Mapping[str, str]) -> Shown:
    """Draw a figure, or take it from the folder if it shows a trained model."""
    if "TR" not in entry.data:
        drawing = entry.draw(Studio())
        return Shown(entry, drawing.caption, small_png(drawing.figure), b"")
    png, gif = stored / f"{entry.id}.png", stored / f"{entry.id}.gif"
    if not png.is_file() or entry.id not in captions:
        return Shown(entry, "", b"", b"")
    return Shown(entry, captions[entry.id], png.read_bytes(), gif.read_bytes() if gif.is_file() else b"")


def _captions(page: Path) -> dict[str, str]:
    """Return the captions of the page of figures/, by the ids of the figures."""
    if not page.is_file():
        return {}
    sections = page.read_text(encoding="utf-8").split("\n## ")[1:]
    return {section.partition(":")[0]: _caption(section) for section in sections}


def _caption(section: str) -> str:
    """Return the caption in a section of the page: the paragraph behind the images, without Markdown."""
    paragraphs = section.split("\n\n")
    text = next(each for each in paragraphs[1:] if not each.startswith("!["))
    return re.sub(r"\\(.)", r"\1", html.unescape(text)).strip()


# ---------------------------------------------------------------------------------------------------------
# The pages


def _overview(shown: Sequence[Shown]) -> str:
    """Return the list of all figures, in groups by their documents."""
    order = list(SOURCES)
    ranked = sorted(shown, key=lambda each: (order.index(each.entry.source), each.entry.id))
    parts = [HEAD]
    for source, group in groupby(ranked, key=lambda each: each.entry.source):
        cards = "\n".join(map(_card, group))
        parts.append(f'<h2 id="{source}">{_document(source)}</h2>\n<ul class="cards">\n{cards}\n</ul>')
    return "\n".join(parts)


def _card(shown: Shown) -> str:
    """Return a figure as an entry of the list. Its title is the text of the link, so the image needs none."""
    id, title = shown.entry.id, html.escape(shown.entry.title)
    image = ""
    if shown.png:
        width, height = size_of(shown.png)
        width = round(width * THUMBNAIL / height)
        image = f'<img src="gallery/{id}.png" alt="" width="{width}" height="{THUMBNAIL}" loading="lazy">'
    return f'<li><a href="gallery/{id}.html"><span class="thumbnail">{image}</span>{id}: {title}</a></li>'


def _page(shown: Shown, before: Sequence[Shown], after: Sequence[Shown]) -> Page:
    """Return the page of a figure."""
    entry = shown.entry
    assets = dict(STYLES)
    parts = [f"<h1>{entry.id}: {html.escape(entry.title)}</h1>"]
    if shown.png:
        assets[f"gallery/{entry.id}.png"] = shown.png
        parts.append(figure_html(f"{entry.id}.png", shown.png, shown.caption, alt=entry.title))
    else:
        parts.append(
            "<p>This figure shows a trained model, and its picture is not part of this site. The command "
            "below trains a model and draws the figure.</p>"
        )
    if shown.gif:
        assets[f"gallery/{entry.id}.gif"] = shown.gif
        parts.append(
            "<details><summary>Show the animation</summary>\n"
            f'<p><img src="{entry.id}.gif" loading="lazy" alt="{html.escape(entry.title)}, animated"></p>'
            "</details>"
        )
    parts += [_lessons(entry), *_code(entry), _origin(entry), _neighbours(before, after)]
    title = f"{entry.id}: {entry.title}"
    return Page(f"gallery/{entry.id}.html", title, SECTION, "\n".join(parts), assets, ("figure",))


def _lessons(entry: Entry) -> str:
    links = [
        f'<li><a href="../{page_of(lesson)}">{lesson.number} {html.escape(lesson.title)}</a></li>'
        for lesson in lessons_of(entry.id)
    ]
    return f'<h2 id="lessons">Lessons</h2>\n<ul>{"".join(links)}</ul>'


def _code(entry: Entry) -> Iterator[str]:
    """Yield the code and the command that draw a figure, and its settings."""
    settings = {name: _literal(default) for name, default in entry.settings.items()}
    first = next(iter(settings.items()), None)
    given = f", {first[0]}={first[1]}" if first else ""
    code = f'from npformer.learn.figures import draw\n\ndrawing = draw("{entry.id}"{given})\ndrawing.figure'
    yield f'<h2 id="code">Draw it yourself</h2>\n{code_html(code)}'
    yield f'<p>Or run the command:</p>\n<pre class="output">npformer figures {entry.id}</pre>'
    rows = [f"<li><code>{name}={html.escape(value)}</code></li>" for name, value in settings.items()]
    if rows:
        yield f"<p>The settings of this figure, with their defaults:</p>\n<ul>{''.join(rows)}</ul>"


def _literal(value: object) -> str:
    """Return a value as code, with the quotation marks of the course."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _origin(entry: Entry) -> str:
    """Return the document of a figure, the kind of its numbers, and the file of the code that draws it."""
    file = Path(inspect.getsourcefile(entry.function) or "").relative_to(PACKAGE.parent).as_posix()
    line = inspect.getsourcelines(entry.function)[1]
    numbers = " and ".join(DATA[key] for key in entry.data.split(" + "))
    return (
        f'<p class="origin">Document: {_document(entry.source)}. '
        f"Numbers from: {numbers}. Drawn by <code>{file}</code>, line {line}.</p>"
    )


def _document(source: str) -> str:
    """Return the title of a document."""
    title = SOURCES[source]
    language = "" if title.isascii() else ' lang="zh"'
    return f"<cite{language}>{html.escape(title)}</cite>"


def _neighbours(before: Sequence[Shown], after: Sequence[Shown]) -> str:
    links = [
        f'<a rel="{rel}" href="{each.entry.id}.html"><small>{word}</small> '
        f"{each.entry.id}: {html.escape(each.entry.title)}</a>"
        for word, rel, group in (("Previous", "prev", before), ("Next", "next", after))
        for each in group
    ]
    return f'<nav class="neighbours" aria-label="Neighbouring figures">{"".join(links)}</nav>'
