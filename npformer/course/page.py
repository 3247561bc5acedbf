"""A lesson as one HTML page with its outputs and figures in it: nothing is loaded from anywhere."""

import base64
import html
import re

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from npformer.course.cells import Cell
from npformer.course.execute import Outcome, lesson_runs_through
from npformer.course.library import Lesson
from npformer.course.page_style import STYLE
from npformer.course.pictures import Picture
from npformer.course.render import split_formulas
from npformer.errors import UserError

COLUMNS = re.compile(r" {2,}")
RAISED = re.compile(r"\^(\{[^}]*\}|\w)")


def as_page(lesson: Lesson) -> str:
    """Run the lesson and return its page. Errors: UserError where a cell fails."""
    body = []
    for cell, outcome in lesson_runs_through(lesson):
        if outcome is not None and outcome.error:
            raise UserError(f"no page was written, since a cell fails: {outcome.error}")
        body.append(prose(cell.text) if outcome is None else _code(cell, outcome))
    title = html.escape(f"{lesson.number} · {lesson.title}")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def prose(text: str) -> str:
    """Markdown and formulas as HTML."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    return "\n".join(
        formula(part) if kind == "math" else markdown.render(part) for kind, part in split_formulas(text)
    )


def formula(text: str) -> str:
    """Formulas, a row each; two spaces or more begin a new column, and ^Q is raised."""
    rows = []
    for line in text.splitlines():
        cells = [RAISED.sub(_raised, html.escape(part)) for part in COLUMNS.split(line.rstrip())]
        rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return f'<table class="math">{"".join(rows)}</table>'


def _raised(found: re.Match) -> str:
    return f"<sup>{found[1].strip('{}')}</sup>"


def _code(cell: Cell, outcome: Outcome) -> str:
    """A cell of code with all that came of it."""
    parts = [highlight(cell.text, PythonLexer(), HtmlFormatter(cssclass="code")).strip()]
    if outcome.printed:
        parts.append(f'<pre class="output">{html.escape(outcome.printed.rstrip())}</pre>')
    if outcome.defined:
        parts.append(f'<p class="defined">→ {html.escape(" ∙ ".join(outcome.defined))}</p>')
    return "\n".join([*parts, *map(_figure, outcome.pictures)])


def _figure(picture: Picture) -> str:
    data, caption = base64.b64encode(picture.png()).decode(), html.escape(picture.caption)
    width = round(float(picture.figure.get_size_inches()[0]) * 96)  # CSS pixels: as large as it was drawn
    return (
        f'<figure><img alt="{caption or html.escape(picture.name)}" width="{width}" '
        f'src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )
