"""The explorer on the site: the tour's translator live on a page of its own, and an introduction to it."""

from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs

from npformer.explorer import explore
from npformer.language import say
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.trained import tour_recipe
from npformer.learn.site.lesson_links import document_of, page_of
from npformer.learn.site.lesson_pages import EXPLORER, address_of, root_from, view_of
from npformer.learn.site.markdown import Files, document, raw, text
from npformer.pretrained import load
from npformer.training import train

# the sentence of the source documents, in which one word decides what "it" stands for
SENTENCE = "the animal didn't cross the street because it was too tired"


def explorer_files(model: str | None, lessons: Sequence[Lesson]) -> Files:
    """Return the page of the explorer, which links the lessons and the site.

    Args:
        model: The model, as for `npformer.load`, or None for the tour's translator, which is trained first,
            with its seed 0 and on one thread.
        lessons: The lessons of the site.

    Raises:
        UserError: If the model does not know the words of `SENTENCE`.
    """
    if model is None:
        train(Path("tour"), *tour_recipe(), threads=1).require_finished()
    loaded = load(Path("tour"), last=True) if model is None else load(model)
    names = {lesson.path.name: f"../{page_of(lesson)}" for lesson in lessons}
    page = explore(loaded, SENTENCE, site={"home": "../explorer.html", "lessons": names})
    return {f"extra/{EXPLORER}": page.html.encode("utf-8")}


def introduction(lessons: Sequence[Lesson]) -> Files:
    """Return the document that introduces the explorer in the current language, with it in a frame."""
    title, address = say("The explorer"), root_from("") + address_of("")
    items = [
        say(
            "Press **Next**, or the space bar, to go from one line of the code to the next. Click on a "
            "number to read how it was computed."
        ),
        say("Choose **backward** to see each gradient with the line that computes it."),
        say(
            "In **What if**, switch off a head, change a mask, a token or a weight, and see the loss change."
        ),
        say(
            "In **Teach it**, write another translation and train, and see how the probabilities and the "
            "words change."
        ),
    ]
    rows = [
        f"| [{lesson.number} {text(lesson.title)}](/{document_of(lesson)}.md) "
        f"| [{_named(view)}](/{address_of(view)}) |"
        for lesson in lessons
        if (view := view_of(lesson)) is not None
    ]
    parts = [
        say(
            "A small Transformer, trained to translate English into French, that computes in your browser. "
            "You can follow every number from the words to the loss, and every gradient on the way back."
        ),
        "\n".join(f"- {item}" for item in items),
        raw(
            f'<p><a class="button" href="{address}">{say("Open the explorer")}</a></p>\n'
            f'<iframe class="wide-only" src="{address}" loading="lazy" title="{title}"></iframe>'
        ),
        f"## {say('The steps that the lessons derive')}",
        "\n".join([f"| {say('lesson')} | {say('in the explorer')} |", "|---|---|", *rows]),
    ]
    keywords = "live interactive visualization backward gradient attention"
    return {"explorer.md": document(title, parts, keywords)}


def _named(view: str) -> str:
    """Return what a view of the explorer shows: one of its tabs, or a step of a pass with its path."""
    parts = {name: values[0] for name, values in parse_qs(view[1:]).items()}
    if "step" not in parts:
        views = {
            "attention": say("the attention of all heads"),
            "changes": say("what changes if a part is changed"),
        }
        return views.get(parts.get("view", ""), say("the first step"))
    direction = say("backward") if parts.get("direction") == "backward" else say("forward")
    return f"{direction}: `{parts['step']}`"
