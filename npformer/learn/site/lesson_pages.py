"""The pages of the lessons: each is run once, and its outputs, figures and exercises stand on its page."""

import re
from collections.abc import Collection, Mapping
from html import escape

from npformer.escaping import printable
from npformer.learn.course.architecture import place_of
from npformer.learn.course.execute import Outcome
from npformer.learn.course.export import run_without_error
from npformer.learn.course.lesson import Cell, Lesson
from npformer.learn.course.markup import cell_html, prose
from npformer.learn.course.pictures import Picture
from npformer.learn.course.routes import place_on_routes
from npformer.learn.site.exercise_blocks import with_exercises
from npformer.learn.site.explorer_links import with_view
from npformer.learn.site.html_text import slug, with_heading_ids
from npformer.learn.site.images import figure_html
from npformer.learn.site.lesson_links import file_of, link_lessons, page_of
from npformer.learn.site.page import Page
from npformer.learn.site.term_links import link_terms

# lessons with these names in their code share a trained model: they are run in one process, in this order
SHARED_RUN = re.compile(r"course\.trained import .*\b(?:trained|FOLDER)\b")


def lesson_page(lesson: Lesson, lessons: Collection[Lesson], *, has_explorer: bool) -> Page:
    """Run a lesson and return its page.

    Args:
        lesson: The lesson.
        lessons: All lessons of the site, which can be linked.
        has_explorer: Whether the site has the page of the explorer.

    Raises:
        UserError: If a cell fails.
    """
    figures = FigureFiles(file_of(lesson).removesuffix(".html"))
    rows = run_without_error(lesson, "page")
    parts = [_cell(row, lesson, figures, has_explorer=has_explorer) for row in rows]
    parts[1:1] = [f"<p><small>{escape(place_on_routes(lesson))}</small></p>", *_map(lesson, figures)]
    body = with_heading_ids("\n".join(parts))
    body = link_lessons(body, names_of(lessons), lesson)
    body = link_terms(body, lesson, "../glossary.html")
    title = f"{lesson.number} · {lesson.title}"
    keywords = (lesson.words.replace("_", " "), *lesson.goals)
    return Page(page_of(lesson), title, "Lessons", body, figures.assets, keywords)


def names_of(lessons: Collection[Lesson]) -> Mapping[str, str]:
    """Return the file names of the pages by the names and by the numbers of the lessons."""
    names = {lesson.name: file_of(lesson) for lesson in lessons}
    return names | {lesson.number: file_of(lesson) for lesson in lessons}


def shares_a_run(lesson: Lesson) -> bool:
    """Return whether a lesson trains or reads the translator that several lessons share."""
    return any(SHARED_RUN.search(cell.text) for cell in lesson.cells if cell.kind == "code")


class FigureFiles:
    """The figures of a page as files beside it.

    Args:
        folder: The folder of the figures, below lessons/.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.assets: dict[str, bytes] = {}

    def __call__(self, picture: Picture) -> str:
        """Store a figure and return its HTML: an image that opens in full size."""
        file, number = f"{self.folder}/{picture.name}.png", 1
        while f"lessons/{file}" in self.assets:
            number += 1
            file = f"{self.folder}/{picture.name}_{number}.png"
        return self.add(picture, file)

    def add(self, picture: Picture, file: str) -> str:
        """Store a figure under a name below lessons/, and return its HTML."""
        from npformer.plots.composition import small_png  # matplotlib takes a second to load

        png = small_png(picture.figure)
        self.assets[f"lessons/{file}"] = png
        alt = "" if picture.caption else printable(picture.name)
        return figure_html(escape(file), png, printable(picture.caption), alt=alt)


def _cell(
    row: tuple[Cell, Outcome | None], lesson: Lesson, figures: FigureFiles, *, has_explorer: bool
) -> str:
    """Return a cell as HTML, with the exercises and the view of the explorer that it names."""
    cell, outcome = row
    if outcome is not None:
        return cell_html(cell, outcome, figures)
    html = with_exercises(prose(cell.text))
    return with_view(html, lesson) if has_explorer else html


def _map(lesson: Lesson, figures: FigureFiles) -> list[str]:
    """Return the folded picture of the architecture with the part of a lesson, if the picture shows it."""
    place = place_of(lesson.name)
    if place is None or not place.highlighted:
        return []
    from npformer.learn.figures.course_map import course_map  # matplotlib takes a second to load

    caption = "The part of this lesson is highlighted; beside each part stands the chapter that explains it"
    name = "_".join(slug(part) for part in place.highlighted)  # many lessons show the same picture
    figure = figures.add(Picture(course_map(place.highlighted), "map", caption), f"maps/{name}.png")
    return [f"<details><summary>Show this part in the architecture</summary>\n{figure}</details>"]
