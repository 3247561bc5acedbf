"""The documents of the site beside lessons and guides, from their templates in pages/, and the explorer."""

from collections.abc import Collection, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path

from npformer.explorer import explore
from npformer.language import ENGLISH, GLOSSARY, catalog, current_language, phrase
from npformer.learn.bugs import BUGS, Specimen
from npformer.learn.bugs.picture import draw
from npformer.learn.bugs.specimen import fill
from npformer.learn.course.architecture import place_of
from npformer.learn.course.glossary import SHAPES, all_terms
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.trained import tour_recipe
from npformer.learn.site.lesson_links import EXPLORER_PAGE, REPOSITORY, document_of, exercises_of
from npformer.learn.site.markdown import Files, page, picture
from npformer.pretrained import load
from npformer.training import train

# the sentence of the source documents, in which one word decides what "it" stands for
SENTENCE = "the animal didn't cross the street because it was too tired"


def overview_pages(lessons: Sequence[Lesson], others: Collection[str], *, has_explorer: bool) -> Files:
    """Return the pages that each language has: home, the explorer, the list of exercises, and the glossary.

    Args:
        lessons: The lessons of the site in the current language.
        others: The names of the other documents in this language. Links to what is missing lead to English.
        has_explorer: Whether the site has the page of the explorer.
    """
    names = ["index", "exercises", "glossary", *["explorer"] * has_explorer]
    where = {
        name: lesson.number
        for lesson in reversed(lessons)
        for cell in lesson.cells
        for name in exercises_of(cell)
    }
    language = current_language()
    values = {
        "documents": {*others, *names},
        "is_translated": lambda name: language == ENGLISH or catalog(language, name),
        "lessons": lessons,
        "repository": REPOSITORY,
        "shapes": phrase(SHAPES, GLOSSARY),
        "terms": all_terms(),
        "where": where,
    }
    return {f"{name}.md": page(name, **values) for name in names}


def course_pages(lessons: Sequence[Lesson]) -> Files:
    """Return the contents of the course and the chapters that have several lessons."""
    from npformer.learn.figures.course_map import course_map  # matplotlib takes a second to load

    chapters = {number: list(group) for number, group in groupby(lessons, lambda each: each.chapter)}
    files, paths = Files(), {number: document_of(group[0]) for number, group in chapters.items()}
    for number, group in chapters.items():
        if len(group) > 1:
            paths[number] = f"lessons/chapter_{number:02}"
            values = {"number": number, "lessons": group, "place": place_of(f"{number:02}_")}
            files[f"{paths[number]}.md"] = page("chapter", **values)
    values = {"paths": paths, "map": course_map(), "picture": partial(picture, files)}
    hours = round(sum(map(minutes_of, lessons)) / 60)
    return files | {"lessons/index.md": page("course", lessons=lessons, hours=hours, **values)}


def zoo_pages() -> Files:
    """Return the list of all bugs, and the page of each bug. Every program is trained twice."""
    files = {"zoo/index.md": page("zoo", bugs=list(BUGS))}
    for bug in BUGS:
        files |= bug_page(bug)
    return files


def bug_page(bug: Specimen) -> Files:
    """Return the page of a bug, whose program is trained with the bug and without it, and its picture."""
    wrong, right, files = bug.train(bug.buggy()), bug.train(bug.repaired()), Files()
    title = f"Bug {bug.number}: {bug.summary}"
    values = {
        "bug": bug,
        "title": title,
        "symptom": fill(bug.symptom, wrong, right),
        "drawing": draw(wrong, right, bug.axes, title),
        "last": [run.numbers()["last"] for run in (wrong, right)],
        "picture": partial(picture, files),
    }
    return files | {f"zoo/{bug.number:02}.md": page("bug", **values)}


def explorer_page(model: str | None, lessons: Sequence[Lesson]) -> Files:
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
    names = {lesson.path.name: f"../{document_of(lesson)}.html" for lesson in lessons}
    made = explore(loaded, SENTENCE, site={"home": "../explorer.html", "lessons": names})
    return {f"extra/{EXPLORER_PAGE}": made.html.encode("utf-8")}
