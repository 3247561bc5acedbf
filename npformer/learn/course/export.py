"""Export a lesson as one HTML page with its outputs and figures, or as a Jupyter notebook."""

import base64
import html
import json
import re
from pathlib import Path
from typing import Any

from npformer.errors import UserError
from npformer.escaping import printable
from npformer.language import language_tag, say
from npformer.learn.course.architecture import place_of
from npformer.learn.course.execute import Outcome, run_lesson
from npformer.learn.course.lesson import Cell, Lesson
from npformer.learn.course.markup import cell_html, inline_figure, prose
from npformer.learn.course.pictures import Picture
from npformer.learn.course.prose import split_answers
from npformer.learn.course.routes import place_on_routes

PACKAGE = (
    "git+https://github.com/npformer/npformer"  # from which notebooks install it; setup.py has the address
)
INSTALLATION = f"""\
# npformer is installed here if it is missing, as on Colab
import importlib.util

if importlib.util.find_spec("npformer") is None:
    %pip install --quiet {PACKAGE}"""
MATH_FONT = Path(__file__).parents[1] / "site" / "web" / "math.woff"  # beside its licence
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}  # for JupyterLab, and for Colab


def as_page(lesson: Lesson) -> str:
    """Run the lesson and return its HTML page, which loads no other files.

    Raises:
        UserError: If a cell fails.
    """
    body = [
        prose(cell.text) if outcome is None else cell_html(cell, outcome, inline_figure)
        for cell, outcome in run_without_error(lesson, "page")
    ]
    body.insert(1, f'<p class="route">{html.escape(place_on_routes(lesson))}</p>')
    if shown := map_of(lesson):
        title = say("Show this part in the architecture")
        body.insert(2, f"<details><summary>{title}</summary>\n{inline_figure(shown)}</details>")
    title = html.escape(f"{lesson.number} · {lesson.title}")
    return (
        f'<!doctype html>\n<html lang="{language_tag()}">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{title}</title>\n<style>\n{STYLE}{_font_of(body)}</style>\n</head>\n<body>\n<main>\n"
        + "\n".join(body)
        + "\n</main>\n</body>\n</html>\n"
    )


def _font_of(body: list[str]) -> str:
    """Return the rule with a font in which roots and brackets stretch, or "" if there are no formulas."""
    if not any("<math" in part for part in body):
        return ""
    source = f"data:font/woff;base64,{base64.b64encode(MATH_FONT.read_bytes()).decode('ascii')}"
    return f'@font-face {{ font-family: Formulas; src: url("{source}") format("woff"); }}\n'


def map_of(lesson: Lesson) -> Picture | None:
    """Return the picture of the architecture with the part of a lesson, or None if it does not show it."""
    place = place_of(lesson.name)
    if place is None or not place.highlighted:
        return None
    from npformer.learn.figures.course_map import course_map  # matplotlib takes a second to load

    caption = say(
        "The part of this lesson is highlighted; beside each part stands the chapter that explains it"
    )
    name = re.sub(r"\W+", "-", "_".join(place.highlighted))  # many lessons show the same picture
    return Picture(course_map(place.highlighted), name, caption)


def run_without_error(lesson: Lesson, what: str) -> list[tuple[Cell, Outcome | None]]:
    """Run a lesson that is to be exported as a page or a notebook. Return its cells with their outcomes."""
    rows = run_lesson(lesson)
    for _, outcome in rows:
        if outcome is not None and outcome.error:
            reason = "; ".join(line.strip() for line in outcome.error.splitlines())
            raise UserError(f"no {what} was written, since a cell fails: {reason}")
    return rows


def as_notebook(lesson: Lesson) -> str:
    """Run the lesson and return the text of an .ipynb file in format 4.5, with outputs and figures.

    Raises:
        UserError: If a cell fails.
    """
    installation = {"id": "installation", "metadata": {"tags": ["install"], **FOLDED}}
    cells, count = [installation | _code(INSTALLATION, [], 1)], 1
    for index, (cell, outcome) in enumerate(run_without_error(lesson, "notebook")):
        entry: dict[str, Any] = {"id": f"cell-{index:03}", "metadata": _metadata(cell)}
        if outcome is None:
            text = _for_notebook(cell.text) + (f"\n\n*{place_on_routes(lesson)}*" if index == 0 else "")
            entry |= {"cell_type": "markdown", "source": _lines(text)}
        else:
            count += 1
            entry |= _code(cell.text, _outputs(outcome), count)
        cells.append(entry)
    notebook = {
        "cells": cells,
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"file_extension": ".py", "mimetype": "text/x-python", "name": "python"},
            "title": f"{lesson.number} · {lesson.title}",
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def _code(text: str, outputs: list[dict[str, Any]], count: int) -> dict[str, Any]:
    """Return what a notebook stores of a cell of code."""
    return {"cell_type": "code", "source": _lines(text), "outputs": outputs, "execution_count": count}


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _outputs(outcome: Outcome) -> list[dict[str, Any]]:
    """Return the output of a cell as the notebook stores it: what it prints, then its figures."""
    outputs: list[dict[str, Any]] = [_printed(outcome.printed)] if outcome.printed else []
    for picture in outcome.pictures:
        data = {"image/png": base64.b64encode(picture.png()).decode(), "text/plain": picture.caption}
        outputs.append({"output_type": "display_data", "data": data, "metadata": {}})
        if picture.caption:
            outputs.append(_printed(f"{picture.caption}\n"))
    return outputs


def _printed(text: str) -> dict[str, Any]:
    return {"output_type": "stream", "name": "stdout", "text": _lines(printable(text, keep="\n\t"))}


def _metadata(cell: Cell) -> dict[str, Any]:
    """Return the metadata of a notebook's cell. The code of a cell with tags is folded."""
    if not cell.tags:
        return {}
    return {"tags": list(cell.tags), **FOLDED}


def _for_notebook(text: str) -> str:
    """Return prose as notebooks need it, with Markdown inside of answers."""
    parts = []
    for part in split_answers(text):
        if part.kind == "answer":  # without the empty lines, the text would be HTML
            parts.append(f"<details><summary>{part.title}</summary>\n\n{part.text}\n\n</details>")
        else:
            parts.append(part.text)
    return "\n\n".join(parts)


# the style of the page on light and dark screens and on paper
STYLE = """\
:root { color-scheme: light dark; --ink: #1d2126; --ground: #fdfdfc; --soft: #f2f3f4; --line: #d5d9dd;
  --faint: #5f6871; --comment: #5f6871; --string: #1f6f3c; --number: #0a5f94; --name: #8a2c8f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e3e5e8; --ground: #17191c; --soft: #212428;
  --line: #3a3f45; --faint: #9aa3ac; --comment: #9aa3ac; --string: #86cf9d;
  --number: #79bfec; --name: #d99ade; } }
body { margin: 0; color: var(--ink); background: var(--ground);
  font: 17px/1.55 Georgia, "Noto Serif", "DejaVu Serif", serif; }
main { max-width: 54rem; margin: 0 auto; padding: 2rem 1.2rem 6rem; overflow-wrap: break-word; }
main > p, main > ul, main > ol, main > blockquote { max-width: 46rem; }
h1, h2, h3 { font-family: system-ui, "Noto Sans", "DejaVu Sans", sans-serif; line-height: 1.25; }
h2 { margin-top: 2.2em; }
pre, code, .defined { font-size: .84rem;
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
pre { margin: 0; line-height: 1.45; white-space: pre; overflow-x: auto; }
p code, li code, td code { background: var(--soft); padding: .08em .3em; border-radius: .2em;
  overflow-wrap: anywhere; }
.code { margin-top: 1em; padding: .7em .9em; background: var(--soft); border-left: 3px solid var(--number); }
.output { padding: .6em .9em; border-left: 3px solid var(--line); }
.defined { margin: .2em 0 1.2em; padding-left: 1.1em; color: var(--faint); }
figure { margin: 1.4em 0; }
figure img { max-width: 100%; height: auto; background: #fff; }
figcaption { color: var(--faint); font-size: .9rem; }
table { display: block; overflow-x: auto; border-collapse: collapse; margin: 1em 0; }
th, td { padding: .25em .8em; border-bottom: 1px solid var(--line); text-align: left; }
math { font-size: 1.06em; font-family: "Latin Modern Math", "STIX Two Math", "Cambria Math", Formulas, math; }
/* browsers ignore MathML's own attributes for columns */
mtd[columnalign="left"] { text-align: left; }
mtd[columnalign="right"] { text-align: right; }
mtable[columnspacing="0em"] mtd { padding-left: 0; padding-right: 0; }
math[display="block"] { display: block math; overflow-x: auto; margin: .6em 0; }
@media (max-width: 45rem) { math { max-width: 100%; overflow: auto hidden; } }
details { margin: 1em 0; }
summary { cursor: pointer; color: var(--faint); }
.route { color: var(--faint); font-size: .9rem; }
blockquote { margin: 1em 0; padding-left: 1em; border-left: 3px solid var(--line); }
.c, .c1 { color: var(--comment); font-style: italic; }
.k, .kn, .kc, .ow { font-weight: bold; }
.s1, .s2, .sd, .sa, .si, .se { color: var(--string); }
.mi, .mf { color: var(--number); }
.nf, .nc { color: var(--name); }
"""
