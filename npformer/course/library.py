"""The lessons that there are: lessons/NN_title.py, in a checkout or in an installed package."""

import difflib
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from npformer.course.cells import Cell, Step, parse, steps_of
from npformer.errors import UserError

HERE = Path(__file__).parent
CHECKOUT = HERE.parent.parent / "lessons"  # beside the package, where it is not installed but developed
INSTALLED = HERE / "lessons"  # where setup.py puts them in a wheel
FILE_NAME = re.compile(r"(\d\d)_\w+\.py")
MINUTES = re.compile(r"(\d+) minutes")


@dataclass(frozen=True)
class Lesson:
    """One lesson; its title and its minutes stand in its first prose."""

    path: Path

    @property
    def name(self) -> str:
        """The file's name without its ending, as 05_scaled_dot_product_attention."""
        return self.path.stem

    @property
    def number(self) -> int:
        """The number in front of its name."""
        return int(self.name[:2])

    @cached_property
    def cells(self) -> list[Cell]:
        """Its cells, read when first asked for."""
        try:
            source = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {self.path} ({error})") from None
        return parse(source, self.path.name)

    @cached_property
    def steps(self) -> list[Step]:
        """Its steps: some prose, then code."""
        return steps_of(self.cells)

    @property
    def title(self) -> str:
        """Its first heading, without the number."""
        heading = self._opening.splitlines()[0].lstrip("# ") if self._opening else ""
        return re.sub(r"^\d+\s*[·.:]\s*", "", heading) or self.name

    @property
    def minutes(self) -> int | None:
        """How long it takes to read, as its first prose says."""
        found = MINUTES.search(self._opening)
        return int(found[1]) if found else None

    @property
    def _opening(self) -> str:
        return next((cell.text for cell in self.cells if cell.kind == "prose"), "")


def all_lessons() -> list[Lesson]:
    """Every lesson, by number. Errors: UserError where the lessons are not to be found."""
    for folder in (INSTALLED, CHECKOUT):
        paths = sorted(path for path in folder.glob("*.py") if FILE_NAME.fullmatch(path.name))
        if paths:
            return [Lesson(path) for path in paths]
    raise UserError(f"there are no lessons in {INSTALLED}: install npformer anew")


def find_lesson(which: str) -> Lesson:
    """The lesson of a number ("5", "05"), of a name, or of a part that occurs in one name only.

    Errors: UserError for anything else; it names what comes nearest.
    """
    lessons = all_lessons()
    asked = Path(which).stem.lower().replace("-", "_").replace(" ", "_")
    if asked.isdecimal():
        found = [lesson for lesson in lessons if lesson.number == int(asked)]
    else:
        found = [lesson for lesson in lessons if asked and asked in lesson.name.lower()]
        found = [lesson for lesson in found if lesson.name.lower() == asked] or found
    if len(found) == 1:
        return found[0]
    if found:
        raise UserError(f"several lessons are called {which!r}: {_named(found)}; give a number")
    raise UserError(f"there is no lesson {which!r}: {_nearest(asked, lessons)}")


def _nearest(asked: str, lessons: list[Lesson]) -> str:
    """What to do about a lesson that does not exist."""
    if asked.isdecimal():
        nearest = min(lessons, key=lambda lesson: abs(lesson.number - int(asked)))
        return f"the nearest is {_named([nearest])}; npformer lessons lists them"
    words: dict[str, list[Lesson]] = {lesson.name[3:]: [lesson] for lesson in lessons}
    for lesson in lessons:
        for word in lesson.name[3:].split("_"):
            if len(word) > 3 and lesson not in words.setdefault(word, []):
                words[word].append(lesson)
    close = difflib.get_close_matches(asked, words, n=1, cutoff=0.5)
    if close:
        return f"do you mean {_named(words[close[0]])}? npformer lessons lists them"
    return "npformer lessons lists them"


def _named(lessons: list[Lesson]) -> str:
    return ", ".join(f"{lesson.number} ({lesson.title})" for lesson in lessons)
