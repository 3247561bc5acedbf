"""The places where lessons open the explorer, as live views of the tour's translator."""

import re
from html import escape, unescape
from urllib.parse import quote

from npformer.learn.course.lesson import Lesson

PAGE = "explorer/translator.html"
# the commands of the lessons, for translators, whose steps have the names of the tour's model
COMMAND = re.compile(r"npformer explore (?:\"[^\"]*\" )?--model (?:en-de|tour/run)\b")
ADDRESS = re.compile(r"`(#[^`\s]+=[^`\s]+)`")


def view_of(lesson: Lesson) -> str | None:
    """Return the view that a lesson opens, such as "#step=encoder.norm.y", "" for the first, or None."""
    for cell in lesson.cells:
        if cell.kind == "prose" and COMMAND.search(cell.text):
            address = ADDRESS.search(cell.text)
            return address[1] if address else ""
    return None


def with_view(html: str, lesson: Lesson) -> str:
    """Add the explorer with the view of the lesson to the HTML of the cell that names it, folded."""
    address = view_of(lesson)
    if address is None or not COMMAND.search(unescape(html)):
        return html
    page = f"../{PAGE}{quote(address, safe='#=&.,:+-_')}"
    step = re.search(r"step=([\w.]+)", address)
    what = f"the step <code>{escape(step[1])}</code>" if step else "this view"
    block = (
        '<details class="live"><summary>Open the explorer here</summary>\n'
        f'<p><a href="{escape(page)}">Show {what} on a page of its own</a>.</p>\n'
        f'<iframe src="{escape(page)}" loading="lazy" title="The explorer"></iframe></details>'
    )
    next_lesson = re.search(r"<p><strong>Next</strong>", html)
    at = next_lesson.start() if next_lesson else len(html)
    return f"{html[:at]}{block}\n{html[at:]}"
