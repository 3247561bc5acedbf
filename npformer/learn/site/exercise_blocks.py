"""The exercises of the course as HTML: each with the functions to write and its hints, all folded."""

import re
from html import escape

from npformer.learn.course.markup import code_html
from npformer.learn.exercises import EXERCISES, Exercise

STARTED = re.compile(r"`npformer exercise start (?P<name>[\w-]+)`")  # in the Markdown of a lesson
COMMAND = re.compile(r"<code>npformer exercise start (?P<name>[\w-]+)</code>")  # in its HTML
NEXT = re.compile(r"<p><strong>Next</strong>")


def with_exercises(html: str) -> str:
    """Add the exercises that the HTML of a cell starts, each folded, and link their commands to them."""
    names = list(dict.fromkeys(found["name"] for found in COMMAND.finditer(html)))
    if not names:
        return html
    html = COMMAND.sub(lambda found: f'<a href="#{id_of(found["name"])}">{found[0]}</a>', html)
    blocks = "\n".join(exercise_html(EXERCISES.find(name)) for name in names)
    next_lesson = NEXT.search(html)
    if next_lesson is None:
        return f"{html}\n{blocks}"
    return f"{html[: next_lesson.start()]}{blocks}\n{html[next_lesson.start() :]}"


def id_of(name: str) -> str:
    """Return the id of an exercise on the page of its lesson."""
    return f"exercise-{name}"


def exercise_html(exercise: Exercise) -> str:
    """Return an exercise: what to write, how to check it, and one folded hint after the other."""
    hints = "\n".join(
        f"<details><summary>Hint {number} of {len(exercise.hints)}</summary>\n<p>{escape(hint)}</p></details>"
        for number, hint in enumerate(exercise.hints, 1)
    )
    functions = " and ".join(f"<code>{escape(name)}</code>" for name in exercise.functions)
    title = escape(exercise.title)
    return (
        f'<details class="exercise" id="{id_of(exercise.name)}">'
        f"<summary>Exercise <b>{exercise.name}</b>: {title}</summary>\n"
        f"<p><code>npformer exercise start {exercise.name}</code> writes this file. Complete {functions}, "
        f"and run <code>npformer exercise check</code>.</p>\n"
        f"{code_html(exercise.stub.strip())}\n{hints}</details>"
    )
