"""Routes through the course: which lessons to read if there is no time for all of them."""

from dataclasses import dataclass

from npformer.language import GAP, INTERFACE, later, phrase, say
from npformer.learn.course.length import minutes_of
from npformer.learn.course.lesson import Lesson, all_lessons


@dataclass(frozen=True)
class Route:
    """A selection of lessons, in the order of the course.

    Args:
        name: The name on the command line.
        english_title: The name in a sentence.
        english_goal: What the reader has at its end.
        numbers: The numbers of its lessons, separated by spaces.
    """

    name: str
    english_title: str
    english_goal: str
    numbers: str

    @property
    def title(self) -> str:
        """The name in a sentence, in the current language."""
        return phrase(self.english_title, INTERFACE)

    @property
    def goal(self) -> str:
        """The goal of the reader, in the current language."""
        return phrase(self.english_goal, INTERFACE)

    @property
    def lessons(self) -> list[Lesson]:
        """The lessons of the route."""
        numbers = self.numbers.split()
        return [lesson for lesson in all_lessons() if lesson.number in numbers]

    @property
    def length(self) -> str:
        """The number of its lessons and hours, such as "24 lessons, 10.9 hours"."""
        return length_of(self.lessons)


MAIN = Route(
    "main",
    later("main route"),
    later("from the first loss that falls to a translator that you trained, with every gradient on the way"),
    "0.0 0.1 0.2 1.1 2.1 3.1 4.1 4.2 4.4 5.1 5.2 6.1 7.1 8.1 8.2 8.3 9.1 10.1 10.2 11.1 11.3 12.1 12.2 13.5",
)
ENGINEERS = Route(
    "engineers",
    later("route for engineers"),
    later(
        "attention and its backward pass, the parts of today's models, and a GPT that writes with a KV cache"
    ),
    "0.2 5.1 5.2 6.1 7.2 8.2 14.4 23.1 23.2 23.3 23.4 23.5 24.1 24.2 24.3 24.4",
)
ROUTES = {route.name: route for route in (MAIN, ENGINEERS)}


def length_of(lessons: list[Lesson]) -> str:
    """Return the number of some lessons and their hours as text."""
    hours = sum(map(minutes_of, lessons)) / 60
    return say("{count} lessons, {hours:.1f} hours", count=len(lessons), hours=hours)


def routes_of(lesson: Lesson) -> list[Route]:
    """Return the routes on which a lesson lies."""
    return [route for route in ROUTES.values() if lesson.number in route.numbers.split()]


def next_on(route: Route, lesson: Lesson) -> Lesson | None:
    """Return the first lesson of a route after a lesson, which need not be on it, or None."""
    lessons = all_lessons()
    later = lessons[lessons.index(lesson) + 1 :]
    return next((each for each in later if route in routes_of(each)), None)


def place_on_routes(lesson: Lesson) -> str:
    """Return a line that says on which routes a lesson lies, and how the main route goes on if on none."""
    sentences = []
    if lesson in MAIN.lessons:
        sentences.append(say("This is lesson {place} of {all} on the main route.", **_place(MAIN, lesson)))
    if lesson in ENGINEERS.lessons:
        place = _place(ENGINEERS, lesson)
        sentences.append(say("This is lesson {place} of {all} on the route for engineers.", **place))
        if lesson not in MAIN.lessons:
            sentences.append(say("It is not on the main route."))
    if sentences:
        return GAP.sub("", " ".join(sentences))
    after = next_on(MAIN, lesson)
    if after is None:
        return say("This lesson comes after the main route.")
    return say(
        "You may skip this lesson: the main route goes on with lesson {number} ({title}).",
        number=after.number,
        title=after.title,
    )


def _place(route: Route, lesson: Lesson) -> dict[str, int]:
    """Return the place of a lesson on a route, and the number of all its lessons."""
    return {"place": route.lessons.index(lesson) + 1, "all": len(route.lessons)}
