"""The explorer on the site: the tour's translator live on a page of its own, and an introduction to it."""

from collections.abc import Sequence
from html import escape
from pathlib import Path
from urllib.parse import parse_qs, quote

from npformer.explorer import explore
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.trained import tour_recipe
from npformer.learn.site.explorer_links import PAGE, view_of
from npformer.learn.site.lesson_links import file_of, page_of
from npformer.learn.site.page import Page
from npformer.pretrained import load
from npformer.pretrained.loaded import Loaded
from npformer.training import train

# the sentence of the source documents, in which one word decides what "it" stands for
SENTENCE = "the animal didn't cross the street because it was too tired"
INTRODUCTION = "explorer.html"
VIEWS = {"attention": "the attention of all heads", "changes": "what changes if a part is changed"}


def tour_model(folder: Path) -> Loaded:
    """Train the translator of the tour in a folder, with its seed 0 and on one thread, and return it."""
    train(folder, *tour_recipe(), threads=1).require_finished()
    return load(folder, last=True)


def live_page(model: Loaded, lessons: Sequence[Lesson]) -> bytes:
    """Return the page of the explorer, which links the lessons and the site.

    Args:
        model: The model.
        lessons: The lessons of the site.

    Raises:
        UserError: If the model does not know the words of `SENTENCE`.
    """
    names = {lesson.path.name: f"../lessons/{file_of(lesson)}" for lesson in lessons}
    page = explore(model, SENTENCE, site={"home": f"../{INTRODUCTION}", "lessons": names})
    return page.html.encode("utf-8")


def introduction(live: bytes, lessons: Sequence[Lesson]) -> Page:
    """Return the page that introduces the explorer, with the explorer in a frame.

    Args:
        live: The page of the explorer.
        lessons: The lessons of the site.
    """
    views = [(lesson, view) for lesson in lessons if (view := view_of(lesson))]
    rows = "\n".join(_row(lesson, view) for lesson, view in views)
    body = f"""<h1>The explorer</h1>
<p>A small Transformer, trained to translate English into French, that computes in your browser. You can
follow every number from the words to the loss, and every gradient on the way back.</p>
<ul>
<li>Press <b>Next</b>, or the space bar, to go from one line of the code to the next. Click on a number to
read how it was computed.</li>
<li>Choose <b>backward</b> to see each gradient with the line that computes it.</li>
<li>In <b>What if</b>, switch off a head, change a mask, a token or a weight, and see the loss change.</li>
<li>In <b>Training step</b>, apply the gradients, and see which probabilities rise.</li>
</ul>
<p><a class="button" href="{PAGE}">Open the explorer</a></p>
<iframe class="wide-only" src="{PAGE}" loading="lazy" title="The explorer"></iframe>
<h2 id="steps-of-the-lessons">The steps that the lessons derive</h2>
<table><thead><tr><th>lesson</th><th>in the explorer</th></tr></thead><tbody>
{rows}
</tbody></table>"""
    keywords = ("live", "interactive", "visualization", "backward", "gradient", "attention")
    return Page(INTRODUCTION, "The explorer", "Explorer", body, {PAGE: live}, keywords)


def _row(lesson: Lesson, view: str) -> str:
    """Return a row of the table: a lesson, and the view of the explorer that it opens."""
    address = escape(PAGE + quote(view, safe="#=&.,:+-_"))
    return (
        f'<tr><td><a href="{page_of(lesson)}">{lesson.number} {escape(lesson.title)}</a></td>'
        f'<td><a href="{address}">{_named(view)}</a></td></tr>'
    )


def _named(view: str) -> str:
    """Return what a view of the explorer shows: one of its tabs, or a step of a pass with its path."""
    parts = {name: values[0] for name, values in parse_qs(view[1:]).items()}
    if "step" not in parts:
        return VIEWS[parts["view"]]
    path = escape(parts["step"]).replace(".", ".<wbr>")  # a phone may break the line there
    return f"{parts.get('direction', 'forward')}: <code>{path}</code>"
