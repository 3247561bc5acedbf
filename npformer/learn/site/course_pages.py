"""The documents of the site beside lessons and guides, from their templates in pages/."""

from collections.abc import Collection, Sequence
from itertools import groupby

from npformer.language import ENGLISH, GLOSSARY, catalog, current_language, phrase
from npformer.learn.bugs import BUGS, Specimen
from npformer.learn.bugs.picture import draw
from npformer.learn.bugs.specimen import fill
from npformer.learn.course.architecture import place_of
from npformer.learn.course.chapters import title_of_chapter
from npformer.learn.course.glossary import SHAPES, all_terms
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson
from npformer.learn.exercises import EXERCISES
from npformer.learn.site.lesson_links import REPOSITORY, document_of
from npformer.learn.site.lesson_pages import address_of, exercises_of, root_from
from npformer.learn.site.markdown import Files, page, picture


def home_page(lessons: Sequence[Lesson], documents: Collection[str]) -> Files:
    """Return the first page of the site in the current language, with its three doors.

    Args:
        lessons: The lessons of the site.
        documents: The names of the other documents in this language. Links to others lead to English.
    """
    values = {"repository": REPOSITORY, "address": root_from("") + address_of("")}
    return {"index.md": page("home", lessons=lessons, documents=documents, **values)}


def course_pages(lessons: Sequence[Lesson]) -> Files:
    """Return the contents of the course and the chapters that have several lessons."""
    from npformer.learn.figures.course_map import course_map  # matplotlib takes a second to load

    chapters = {number: list(group) for number, group in groupby(lessons, lambda each: each.chapter)}
    files = Files()

    def path_of(number: int) -> str:
        several = len(chapters[number]) > 1
        return f"lessons/chapter_{number:02}" if several else document_of(chapters[number][0])

    for number, group in chapters.items():
        values = {"number": number, "title": title_of_chapter(number), "lessons": group}
        if len(group) > 1:
            files[f"{path_of(number)}.md"] = page("chapter", place=place_of(f"{number:02}_"), **values)
    caption = "The architecture of the Transformer. Beside each part stands the chapter that explains it."
    drawn = picture(files, "lessons/course_map", course_map(), caption)
    hours = round(sum(map(minutes_of, lessons)) / 60)
    contents = page("course", lessons=lessons, chapters=chapters, hours=hours, map=drawn, path_of=path_of)
    return files | {"lessons/index.md": contents}


def exercise_list(lessons: Sequence[Lesson]) -> Files:
    """Return the list of all exercises in the current language, with links to the lessons that start them."""
    where = {name: lesson.number for lesson in reversed(lessons) for name in exercises_of(lesson)}
    language = current_language()
    english = {
        each.chapter for each in EXERCISES if language != ENGLISH and not catalog(language, each.catalog)
    }
    values = {"exercises": list(EXERCISES), "where": where, "english": english}
    return {"exercises.md": page("exercises", **values)}


def glossary_page(lessons: Sequence[Lesson]) -> Files:
    """Return the glossary in the current language: each term, its definition, the lessons that explain it."""
    by_path = {lesson.path: lesson for lesson in lessons}
    terms = []
    for term in all_terms():
        found = dict.fromkeys(by_path[place.path] for place in term.lessons if place.path in by_path)
        terms.append((term, ", ".join(f"[{each.number}](/{document_of(each)}.md)" for each in found)))
    return {"glossary.md": page("glossary", terms=terms, shapes=phrase(SHAPES, GLOSSARY))}


def zoo_pages() -> Files:
    """Return the list of all bugs, and the page of each bug. Every program is trained twice."""
    files = Files()
    for bug in BUGS:
        files |= bug_page(bug)
    paths = [f"zoo/{bug.number:02}" for bug in BUGS]
    return files | {"zoo/index.md": page("zoo", bugs=list(BUGS), paths=paths)}


def bug_page(bug: Specimen) -> Files:
    """Return the page of a bug, whose program is trained with the bug and without it, and its picture."""
    wrong, right = bug.train(bug.buggy()), bug.train(bug.repaired())
    title = f"Bug {bug.number}: {bug.summary}"
    numbers = f"{wrong.numbers()['last']:.3g} with the bug, and {right.numbers()['last']:.3g} without it"
    caption = f"The {bug.axes[1]} in the training. Its last value is {numbers}."
    files, path = Files(), f"zoo/{bug.number:02}"
    drawn = picture(files, path, draw(wrong, right, bug.axes, title), caption)
    symptom = fill(bug.symptom, wrong, right)
    return files | {f"{path}.md": page("bug", bug=bug, title=title, symptom=symptom, picture=drawn)}
