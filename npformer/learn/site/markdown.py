"""The pieces of which the documents of the site are made, in the Markdown of MyST."""

import html
import json
import re
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from npformer.escaping import printable
from npformer.language import INTERFACE, phrase, say
from npformer.learn.course.chapters import title_of_chapter
from npformer.learn.course.length import minutes_of
from npformer.learn.course.routes import ROUTES
from npformer.learn.site.lesson_links import document_of

if TYPE_CHECKING:
    from npformer.plots import Figure

Files: TypeAlias = dict[str, bytes]  # the documents and pictures of the site by their paths
PAGES = Path(__file__).parent / "pages"  # the templates
FENCE = "`````"  # longer than those of the lessons
LARGEST = 400_000  # bytes of a drawing, above which the picture in pixels is smaller


def text(shown: str) -> str:
    """Return a text as Markdown in which only `code` is markup."""
    parts = re.split(r"(`[^`\n]+`)", printable(" ".join(shown.split())))
    return "".join(part if index % 2 else escaped(part) for index, part in enumerate(parts))


def escaped(shown: str) -> str:
    """Return a text as Markdown without markup."""
    return re.sub(r"([\\`*_\[\]$<>#|~{}])", r"\\\1", shown)


def code(content: str, language: str = "python", kind: str = "") -> str:
    """Return a block of code.

    Args:
        content: The code.
        language: The language, by which Pygments colours it.
        kind: The class of the block on the page, such as "output"; by default the language.
    """
    shown = printable(content.strip("\n"), keep="\n\t")
    return f"{FENCE}{{code-block}} {language}\n:class: {kind or language}\n\n{shown}\n{FENCE}"


def raw(content: str) -> str:
    """Return HTML that stands on the page as it is."""
    return f"{FENCE}{{raw}} html\n{content}\n{FENCE}"


def folded(title: str, content: str, kind: str = "answer") -> str:
    """Return content that is folded under its title.

    Args:
        title: The title, as plain text.
        content: The content, as Markdown.
        kind: The class of the element on the page.
    """
    head = f'<details class="{kind}"><summary>{html.escape(printable(title))}</summary>'
    return f"{raw(head)}\n\n{content}\n\n{raw('</details>')}"


def listed(documents: Iterable[str], caption: str = "") -> str:
    """Return the hidden list of the documents below a document, for the navigation."""
    below = "\n".join(f"/{each}" for each in documents)
    head = f":caption: {caption}\n" if caption else ""
    return f"{FENCE}{{toctree}}\n:hidden:\n{head}\n{below}\n{FENCE}"


def hints(given: tuple[str, ...]) -> str:
    """Return hints, each of them folded."""
    return "\n\n".join(
        folded(say("Hint {number} of {count}", number=number, count=len(given)), text(hint))
        for number, hint in enumerate(given, 1)
    )


def page(name: str, **values: Any) -> bytes:
    """Return a document, from its template and the values that the template names."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PAGES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"text": text, "document_of": document_of, "path_of": values.get("path_of")}
    environment.globals |= {
        "code": code, "folded": folded, "hints": hints, "listed": listed, "minutes_of": minutes_of,
        "raw": raw, "routes": ROUTES, "title_of": title_of_chapter,
        "say": lambda message, **values: phrase(" ".join(message.split()), INTERFACE, **values),
        "link": lambda each: f"[{each.number} · {text(each.title)}](/{document_of(each)}.md)",
    }  # fmt: skip
    return environment.get_template(f"{name}.md").render(**values).encode()


def picture(files: Files, path: str, figure: "Figure", caption: str, alt: str = "") -> str:
    """Add a drawing to the files and return it with its caption.

    In dark mode a picture is shown with its lightness inverted, unless its caption speaks of what is dark.

    Args:
        files: The files.
        path: The path of the picture, from the root and without its ending.
        figure: The figure.
        caption: The caption, or "".
        alt: The text for readers who do not see the picture; by default the caption.
    """
    data = drawing_of(figure)
    path += ".svg" if data.startswith(b"<?xml") else ".png"
    files[path] = data
    return shown_picture(path, round(float(figure.get_size_inches()[0]) * 96), caption, alt)


def shown_picture(path: str, width: int, caption: str, alt: str = "") -> str:
    """Return a picture of a file with its caption.

    Args:
        path: The path of the file, from the root.
        width: The width in CSS pixels.
        caption: The caption, or "".
        alt: The text for readers who do not see the picture; by default the caption.
    """
    kind = "as-drawn" if re.search(r"\bdark", caption, re.IGNORECASE) else "inverted"
    alternative = quoted(alt or caption)
    options = f":alt: {alternative}\n:width: {width}px\n:loading: lazy\n:figclass: {kind}"
    return f"{FENCE}{{figure}} /{path}\n{options}\n\n{text(caption)}\n{FENCE}"


def quoted(shown: str) -> str:
    """Return a text on one line as the value of an option."""
    return json.dumps(" ".join(printable(shown).split()), ensure_ascii=False)


def drawing_of(figure: "Figure") -> bytes:
    """Return a figure as SVG, or as PNG if it has many thousand points."""
    from npformer.plots.composition import small_png
    from npformer.plots.style import drawing

    buffer = BytesIO()
    with drawing():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue() if buffer.tell() <= LARGEST else small_png(figure)
