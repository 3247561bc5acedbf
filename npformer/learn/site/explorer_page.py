"""The explorer on the site: the tour's translator live on a page of its own."""

from collections.abc import Sequence
from pathlib import Path

from npformer.explorer import explore
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.trained import tour_recipe
from npformer.learn.site.lesson_links import EXPLORER, page_of
from npformer.learn.site.markdown import Files
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
