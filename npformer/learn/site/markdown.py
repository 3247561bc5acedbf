"""The documents of the site in the Markdown of MyST: their templates, and their pictures."""

import json
import re
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from npformer.escaping import markdown, printable
from npformer.language import INTERFACE, phrase
from npformer.learn.course.chapters import title_of_chapter
from npformer.learn.course.length import minutes_of
from npformer.learn.course.prose import split_answers
from npformer.learn.course.routes import ROUTES
from npformer.learn.exercises import EXERCISES
from npformer.learn.site.lesson_links import EXPLORE, address_of, document_of, exercises_of, view_of

if TYPE_CHECKING:
    from npformer.plots import Figure

Files: TypeAlias = dict[str, bytes]  # the documents and pictures of the site by their paths
PAGES = Path(__file__).parent / "pages"  # the templates
LARGEST = 400_000  # bytes of a drawing, above which the picture in pixels is smaller


def text(shown: str) -> str:
    """Return a text as Markdown in which only `code` is markup."""
    parts = re.split(r"(`[^`\n]+`)", " ".join(shown.split()))
    return "".join(printable(part) if index % 2 else markdown(part) for index, part in enumerate(parts))


@cache
def templates() -> Any:
    """Return the environment of the templates. They know the macros of macros.md."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(PAGES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "document_of": document_of,
        "printable": printable,
        "quoted": lambda shown: json.dumps(" ".join(printable(shown).split()), ensure_ascii=False),
        "text": text,
    }
    environment.globals |= {
        "EXPLORE": EXPLORE, "address_of": address_of, "document_of": document_of, "exercises": EXERCISES,
        "exercises_of": exercises_of, "minutes_of": minutes_of, "routes": ROUTES,
        "split_answers": split_answers, "title_of": title_of_chapter, "view_of": view_of,
        "say": lambda message, **values: phrase(" ".join(message.split()), INTERFACE, **values),
        "link": lambda each: f"[{each.number} · {text(each.title)}](/{document_of(each)}.md)",
    }  # fmt: skip
    environment.globals |= vars(environment.get_template("macros.md").module)
    return environment


def page(name: str, **values: Any) -> bytes:
    """Return a document, from its template and the values that the template names."""
    return str(templates().get_template(f"{name}.md").render(**values)).encode()


def picture(files: Files, path: str, figure: "Figure", caption: str, alt: str = "") -> str:
    """Add a drawing to the files and return it with its caption.

    Args:
        files: The files.
        path: The path of the picture, from the root and without its ending.
        figure: The figure.
        caption: The caption, or "".
        alt: The text for readers who do not see the picture; by default the caption.
    """
    data = drawing_of(figure)
    ending = ".svg" if data.startswith(b"<?xml") else ".png"
    while files.get(f"{path}{ending}", data) != data:  # another picture of the same name
        path += "_2"
    files[f"{path}{ending}"] = data
    width = round(float(figure.get_size_inches()[0]) * 96)
    return str(templates().globals["figure"](f"{path}{ending}", width, caption, alt))


def drawing_of(figure: "Figure") -> bytes:
    """Return a figure as SVG, or as PNG if it has many thousand points."""
    from npformer.plots.composition import small_png
    from npformer.plots.style import drawing

    buffer = BytesIO()
    with drawing():
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    return buffer.getvalue() if buffer.tell() <= LARGEST else small_png(figure)
