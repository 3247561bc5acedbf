"""The contents of the course with its map, and the list of its exercises."""

from collections.abc import Iterator, Sequence
from html import escape
from itertools import groupby

from npformer.learn.course.architecture import place_of
from npformer.learn.course.chapters import TITLES
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson
from npformer.learn.course.routes import ROUTES, Route
from npformer.learn.exercises import EXERCISES
from npformer.learn.site.exercise_blocks import STARTED, id_of
from npformer.learn.site.lesson_links import CONTENTS, file_of, page_of
from npformer.learn.site.page import Page

EXERCISE_LIST = "exercises.html"
MAP = "lessons/course_map.png"
MAP_FIGURE = """\
<figure><a href="course_map.png"><img src="course_map.png" width="560"
alt="The architecture of the Transformer, with the numbers of the chapters beside its parts"></a>
<figcaption>The architecture of the Transformer. Beside each part stands the chapter that explains it.
</figcaption></figure>"""


def contents_page(lessons: Sequence[Lesson]) -> Page:
    """Return the page with every chapter and lesson, and with the picture of the architecture."""
    minutes = sum(map(minutes_of, lessons))
    by_chapter = {number: list(group) for number, group in groupby(lessons, lambda each: each.chapter)}
    body = [
        "<h1>The course</h1>",
        f"<p>{len(lessons)} lessons in {len(by_chapter)} chapters, about {round(minutes / 60)} hours. Below "
        "the title of each lesson stands what you can do after it. You can read the lessons here "
        "with all their results, or run them: <code>npformer lesson 0.0</code> steps through a lesson in the "
        "terminal, and <code>npformer lesson 0.0 --notebook</code> writes it as a notebook.</p>",
        f'<p>A <a href="../{EXERCISE_LIST}">list of exercises</a> has the functions to write yourself.</p>',
        '<h2 id="routes">Routes</h2>',
        "<p>You need not read all lessons. Two routes lead through them:</p>",
        *(_route(route, lessons) for route in ROUTES.values()),
        '<h2 id="chapters">The chapters</h2>',
        _chapter_list(list(by_chapter)),
        '<h2 id="map">The map</h2>',
        MAP_FIGURE,
        *(_chapter(number, group) for number, group in by_chapter.items()),
    ]
    return Page(CONTENTS, "The course", "Lessons", "\n".join(body), {MAP: _map()}, ("contents", "chapters"))


def _route(route: Route, lessons: Sequence[Lesson]) -> str:
    """Return a route with links to its lessons, as far as the site has them."""
    links = ", ".join(
        f'<a href="{file_of(each)}">{each.number}</a>' if each in lessons else each.number
        for each in route.lessons
    )
    return f"<p><b>The {route.title}</b> ({route.length}): {escape(route.goal)}. Lessons {links}.</p>"


def _map() -> bytes:
    from npformer.learn.figures.course_map import course_map  # matplotlib takes a second to load
    from npformer.plots.composition import small_png

    return small_png(course_map())


def _chapter_list(chapters: Sequence[int]) -> str:
    """Return the titles of the chapters, each with a link to its lessons below."""
    rows = [f'<li><a href="#chapter-{each}">{each} · {escape(TITLES[each])}</a></li>' for each in chapters]
    return f'<ul class="chapters">\n{"".join(rows)}\n</ul>'


def _chapter(number: int, lessons: Sequence[Lesson]) -> str:
    """Return a chapter with its lessons."""
    place = place_of(f"{number:02}_")
    line = f"<p><code>{escape(place.line)}</code></p>\n" if place else ""
    rows = "\n".join(_lesson(lesson) for lesson in lessons)
    title = escape(TITLES[number])
    return f'<h2 id="chapter-{number}">{number} · {title}</h2>\n{line}<ul class="contents">\n{rows}\n</ul>\n'


def _lesson(lesson: Lesson) -> str:
    goals = "; ".join(lesson.goals).replace("`", "")
    return (
        f'<li><a href="{file_of(lesson)}">{lesson.number} {escape(lesson.title)}</a> '
        f'<small class="minutes">{minutes_of(lesson)} min</small><br><small>{escape(goals)}</small></li>'
    )


def exercise_page(lessons: Sequence[Lesson]) -> Page:
    """Return the page that lists all exercises, each with a link to the lesson that poses it."""
    where = _lessons_of_exercises(lessons)
    by_chapter = groupby(
        sorted(EXERCISES, key=lambda each: each.chapter), key=lambda exercise: exercise.chapter
    )
    body = [
        "<h1>Exercises</h1>",
        f"<p>In {len(list(EXERCISES))} exercises you write a function of the package yourself. "
        "<code>npformer exercise start softmax</code> writes a file with the missing function, and "
        "<code>npformer exercise check</code> runs it and says what is wrong. When you have solved them, "
        "<code>npformer build</code> assembles your functions into a Transformer that translates.</p>",
    ]
    for number, exercises in by_chapter:
        rows = "\n".join(_exercise(each.name, each.title, where) for each in exercises)
        title = escape(TITLES[number])
        body.append(f'<h2 id="chapter-{number}">{number} · {title}</h2>\n<ul>\n{rows}\n</ul>')
    return Page(EXERCISE_LIST, "Exercises", "Lessons", "\n".join(body), {}, ("practice", "homework"))


def _lessons_of_exercises(lessons: Sequence[Lesson]) -> dict[str, Lesson]:
    """Return the first lesson that poses an exercise, by the name of the exercise."""
    where: dict[str, Lesson] = {}
    for lesson in lessons:
        for name in _started_by(lesson):
            where.setdefault(name, lesson)
    return where


def _started_by(lesson: Lesson) -> Iterator[str]:
    for cell in lesson.cells:
        if cell.kind == "prose":
            yield from (found["name"] for found in STARTED.finditer(cell.text))


def _exercise(name: str, title: str, where: dict[str, Lesson]) -> str:
    if name not in where:
        return f"<li><b>{name}</b>: {escape(title)}</li>"
    lesson = where[name]
    address = f"{page_of(lesson)}#{id_of(name)}"
    return f'<li><a href="{address}"><b>{name}</b></a>: {escape(title)} (lesson {lesson.number})</li>'
