"""The parts of a lesson as HTML: prose with formulas and folded answers, cells of code and figures."""

import base64
import html
import re
from collections.abc import Callable

from markdown_it import MarkdownIt
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from npformer.escaping import printable
from npformer.learn.course.execute import Outcome
from npformer.learn.course.latex import to_mathml
from npformer.learn.course.lesson import Cell
from npformer.learn.course.pictures import Picture
from npformer.learn.course.prose import replace_formulas, split_answers

MARK = "\ue001"  # stands on both sides of a formula's number in Markdown


def prose(text: str) -> str:
    """Return Markdown with formulas and folded answers as HTML."""
    parts = []
    for part in split_answers(text):
        body = markdown_html(part.text)
        if part.kind == "answer":
            body = f"<details><summary>{html.escape(part.title)}</summary>\n{body}</details>"
        parts.append(body)
    return "\n".join(parts)


def markdown_html(text: str) -> str:
    """Return Markdown with formulas as HTML."""
    formulas: list[str] = []

    def kept(latex: str, display: bool) -> str:
        formulas.append(to_mathml(latex, display=display))
        return f"{MARK}{len(formulas) - 1}{MARK}"  # Markdown leaves this as it is

    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    rendered: str = markdown.render(replace_formulas(text, kept))
    rendered = rendered.replace("<th></th>", "<td></td>")  # the corner of a table is the head of nothing
    return re.sub(f"{MARK}(\\d+){MARK}", lambda found: formulas[int(found[1])], rendered)


def code_html(code: str) -> str:
    """Return Python code with its syntax highlighted."""
    highlighted: str = highlight(code, PythonLexer(), HtmlFormatter(cssclass="code")).strip()
    return highlighted


def cell_html(cell: Cell, outcome: Outcome, figure: Callable[[Picture], str]) -> str:
    """Return a cell of code with its output, its definitions and its figures.

    Args:
        cell: The cell.
        outcome: What the cell printed, defined and drew.
        figure: figure(picture) returns the HTML of a figure.
    """
    code = code_html(cell.text)
    if cell.tags:
        code = f'<details class="folded"><summary>{escaped(cell.summary)}</summary>\n{code}</details>'
    parts = [code]
    if outcome.printed:
        parts.append(f'<pre class="output">{escaped(outcome.printed.rstrip())}</pre>')
    if outcome.defined and not cell.tags:
        parts.append(f'<div class="defined">→ {escaped(" ∙ ".join(outcome.defined))}</div>')
    return "\n".join([*parts, *map(figure, outcome.pictures)])


def escaped(text: str) -> str:
    """Return text for HTML, where it may also stand in an attribute, without control characters."""
    return html.escape(printable(text, keep="\n\t"))


def width_of(picture: Picture) -> int:
    """Return the width of a figure in CSS pixels."""
    return round(float(picture.figure.get_size_inches()[0]) * 96)


def inline_figure(picture: Picture) -> str:
    """Return a figure whose pixels are part of the page."""
    data, caption = base64.b64encode(picture.png()).decode(), escaped(picture.caption)
    return (
        f'<figure><img alt="{caption or escaped(picture.name)}" width="{width_of(picture)}" '
        f'src="data:image/png;base64,{data}"><figcaption>{caption}</figcaption></figure>'
    )
