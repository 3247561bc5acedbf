"""Lessons: Python files in percent format, split into cells and found by number or name.

A chapter of several lessons has the files NN_P_name.py, and the numbers of its lessons are "N.P". A chapter
of one lesson has the file NN_name.py, and the number of its lesson is "N".

In the percent format a cell of code begins with `# %%`, and a cell of prose (Markdown, as comments) with
`# %% [markdown]`. A cell of code may have tags, `# %% tags=["check"]`: "check" for a cell that only asserts,
and "plot" for a cell that only draws. Such cells run like others, and their code is folded.
"""

import ast
import re
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from npformer.errors import UserError, nearest
from npformer.language import ENGLISH, catalog, current_language, say
from npformer.learn.language.messages import translated

HERE = Path(__file__).parent
CHECKOUT = HERE.parents[2] / "lessons"  # beside the package, in a checkout
INSTALLED = HERE / "lessons"  # in a wheel, where setup.py puts them
FILE_NAME = re.compile(r"(?P<chapter>\d\d)(?:_(?P<part>\d))?_(?P<words>[^\W\d_]\w*)")  # without .py
NUMBER = re.compile(r"(?P<chapter>\d{1,3})(?:\.(?P<part>\d{1,3}))?")
MARKER = re.compile(r"#\s?%%(?P<rest>.*)")
PROSE = ("[markdown]", "[md]")
TAGS_SIGN = re.compile(r"\btags\s*=\s*(?P<list>.*)")
TAGS = ("check", "plot")
GOALS = "**After this lesson you can**"
MOST_LISTED = 5  # lessons in a message


# ---------------------------------------------------------------------------------------------------------
# Cells and steps


@dataclass(frozen=True)
class Cell:
    """A cell of prose or of code.

    Args:
        kind: "prose" or "code".
        text: The text; for prose Markdown without its comment signs.
        line: The number of the line where the text begins.
        tags: The tags of a cell of code, from TAGS.
    """

    kind: str
    text: str
    line: int
    tags: tuple[str, ...] = ()

    @property
    def summary(self) -> str:
        """One line for a cell whose code is folded, such as "check: 6 lines"; "" for other cells."""
        if not self.tags:
            return ""
        count = len([line for line in self.text.splitlines() if line.strip()])
        kinds = {"check": say("check"), "plot": say("plot")}
        lines = say("1 line") if count == 1 else say("{count} lines", count=count)
        return say("{kinds}: {lines}", kinds=", ".join(kinds[tag] for tag in self.tags), lines=lines)


@dataclass(frozen=True)
class Step:
    """The unit of the terminal: prose, the cell of code after it, and the folded cells that follow at once.

    Args:
        prose: The cells of prose.
        code: The cell of code, which is None at the end of a lesson. It is a folded cell if nothing else
            stands between it and the prose.
        folded: Cells with tags that run together with `code`, without another question.
    """

    prose: tuple[Cell, ...]
    code: Cell | None
    folded: tuple[Cell, ...] = ()

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells of code, in order."""
        return () if self.code is None else (self.code, *self.folded)


def parse(source: str, name: str = "the lesson") -> list[Cell]:
    """Split a file in percent format into its cells, in order. Empty cells are left out.

    Raises:
        UserError: If a line of prose is not a comment, or if code or tags do not parse. The message names the
            line.
    """
    cells, kind, tags, lines, first = [], "code", tuple[str, ...](), list[str](), 1
    for number, line in enumerate([*source.splitlines(), "# %%"], 1):
        marker = MARKER.fullmatch(line)
        if marker is None:
            lines.append(line)
            continue
        cell = _cell(kind, tags, lines, first, name)
        if cell.text:
            cells.append(cell)
        kind = "prose" if any(sign in marker["rest"] for sign in PROSE) else "code"
        tags = _tags(marker["rest"], number, name)
        lines, first = [], number + 1
    return cells


def _tags(marker: str, number: int, name: str) -> tuple[str, ...]:
    """Return the tags in the line that begins a cell."""
    found = TAGS_SIGN.search(marker)
    if not found:
        return ()
    try:
        tags = ast.literal_eval(found["list"])
    except (SyntaxError, ValueError):
        tags = None
    if not isinstance(tags, list) or not all(tag in TAGS for tag in tags):
        known = " or ".join(f'tags=["{tag}"]' for tag in TAGS)
        raise UserError(f"{name}, line {number}: unknown tags {found['list']}: write {known}")
    return tuple(tags)


def _cell(kind: str, tags: tuple[str, ...], lines: list[str], first: int, name: str) -> Cell:
    """Return a cell without the empty lines at its ends."""
    while lines and not lines[0].strip():
        lines, first = lines[1:], first + 1
    text = "\n".join(lines).rstrip()
    if kind == "prose":
        return Cell(kind, _without_signs(text, first, name), first)
    try:
        ast.parse(text)
    except SyntaxError as error:
        line = first + (error.lineno or 1) - 1
        raise UserError(f"{name}, line {line}: {error.msg}: correct this cell") from None
    return Cell(kind, text, first, tags)


def _without_signs(text: str, first: int, name: str) -> str:
    """Return prose without the `# ` before each line."""
    plain = []
    for number, line in enumerate(text.splitlines(), first):
        if line.strip() and not line.startswith("#"):
            raise UserError(f"{name}, line {number}: prose must be comments: put `# ` before the line")
        plain.append(line[2:] if line.startswith("# ") else line[1:])
    return "\n".join(plain).strip()


def steps_of(cells: list[Cell]) -> list[Step]:
    """Group the cells into steps. Prose after the last cell of code is a step of its own."""
    steps, prose = list[Step](), list[Cell]()
    for cell in cells:
        if cell.kind == "prose":
            prose.append(cell)
        elif cell.tags and steps and not prose:
            steps[-1] = replace(steps[-1], folded=(*steps[-1].folded, cell))
        else:
            steps.append(Step(tuple(prose), cell))
            prose = []
    return [*steps, Step(tuple(prose), None)] if prose else steps


# ---------------------------------------------------------------------------------------------------------
# Lessons


@dataclass(frozen=True)
class Lesson:
    """A lesson. Its title and its goals are in its first cell of prose.

    Args:
        path: Its file, which is in English.
        language: The language of its prose, as far as it is translated: see `npformer.language`.
    """

    path: Path
    language: str = field(default=ENGLISH, compare=False)  # a lesson is the same in every language

    @property
    def english(self) -> "Lesson":
        """The lesson in English."""
        return replace(self, language=ENGLISH)

    @property
    def translations(self) -> dict[str, str]:
        """The translated messages of its prose; none in English, or if it is not translated."""
        return catalog(self.language, f"lessons/{self.name}")

    @property
    def name(self) -> str:
        """The name of the file without its ending, such as 05_1_scaled_dot_product_attention."""
        return self.path.stem

    @property
    def chapter(self) -> int:
        """The number of the chapter, with which the name begins."""
        return int(self._name_parts["chapter"])

    @property
    def part(self) -> int | None:
        """The number of the lesson in a chapter of several lessons, otherwise None."""
        part = self._name_parts["part"]
        return None if part is None else int(part)

    @property
    def number(self) -> str:
        """The number of the lesson as text, such as "4.2", or "1" for the only lesson of a chapter."""
        return str(self.chapter) if self.part is None else f"{self.chapter}.{self.part}"

    @property
    def words(self) -> str:
        """The name without the numbers, such as scaled_dot_product_attention."""
        return self._name_parts["words"]

    @property
    def _name_parts(self) -> re.Match[str]:
        found = FILE_NAME.fullmatch(self.name)
        assert found, f"{self.name} is not the name of a lesson"
        return found

    @cached_property
    def cells(self) -> list[Cell]:
        """The cells. The file is read at the first access."""
        try:
            source = self.path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"cannot read {self.path} ({error})") from None
        cells = parse(source, self.path.name)
        if not self.translations:
            return cells
        return [
            replace(cell, text=translated(cell.text, self.translations)) if cell.kind == "prose" else cell
            for cell in cells
        ]

    @cached_property
    def steps(self) -> list[Step]:
        """The steps: prose, then code."""
        return steps_of(self.cells)

    @property
    def title(self) -> str:
        """The first heading, without the number."""
        heading = self._opening.splitlines()[0].lstrip("# ") if self._opening else ""
        return re.sub(r"^[\d.]+\s*[·:]\s*", "", heading) or self.name

    @property
    def goals(self) -> list[str]:
        """The abilities that the opening lists under "After this lesson you can"."""
        _, _, after = self._opening.partition(self.translations.get(GOALS, GOALS))
        items = re.findall(r"^- (.*(?:\n  .*)*)", after, re.MULTILINE)
        return [" ".join(item.split()).rstrip(";.；。") for item in items]

    @property
    def _opening(self) -> str:
        return next((cell.text for cell in self.cells if cell.kind == "prose"), "")


def all_lessons() -> list[Lesson]:
    """Return every lesson in the current language, in the order of the course.

    Raises:
        UserError: If the lessons cannot be found.
    """
    for folder in (INSTALLED, CHECKOUT):
        paths = sorted(path for path in folder.glob("*.py") if FILE_NAME.fullmatch(path.stem))
        if paths:
            return [Lesson(path, current_language()) for path in paths]
    raise UserError(f"there are no lessons in {INSTALLED}: install npformer again")


def find_lesson(which: str) -> Lesson:
    """Return the lesson with a number ("4.2"), a name, or a part that occurs in one name only.

    The number of a chapter ("4" or "04") stands for its first lesson.

    Raises:
        UserError: If there is no such lesson, or if there are several. The message suggests the nearest ones.
    """
    return find_chapter(which)[0]


def find_chapter(which: str) -> list[Lesson]:
    """Return the lessons of a chapter ("4" or "04"), or the one lesson that `which` names otherwise.

    Raises:
        UserError: As for `find_lesson`.
    """
    lessons, number = all_lessons(), NUMBER.fullmatch(which.strip())
    if number:
        found = [lesson for lesson in lessons if lesson.chapter == int(number["chapter"])]
        if number["part"]:
            found = [lesson for lesson in found if lesson.part == int(number["part"])]
        if found:
            return found
        raise UserError(f"unknown lesson {which!r}: {_nearest_number(number, lessons)}")
    path = Path(which)  # of the file, perhaps
    name = path.stem if path.suffix in (".py", ".ipynb", ".html") else path.name
    query = name.lower().replace("-", "_").replace(" ", "_")
    found = [lesson for lesson in lessons if query and query in lesson.name.lower()]
    found = [lesson for lesson in found if query in (lesson.name.lower(), lesson.words.lower())] or found
    if len(found) == 1:
        return found
    if found:
        raise UserError(f"several lessons are called {which!r}: {_listed(found)}; give a number")
    raise UserError(f"unknown lesson {which!r}: {_suggestion(query, lessons)}")


def _nearest_number(number: re.Match[str], lessons: list[Lesson]) -> str:
    """Return the advice at the end of the message about a number that no lesson has."""
    distance = {lesson: abs(lesson.chapter - int(number["chapter"])) for lesson in lessons}
    chapter = min(lessons, key=distance.__getitem__).chapter
    closest = [lesson for lesson in lessons if lesson.chapter == chapter]
    if number["part"] and int(number["part"]) > 1:
        closest.reverse()
    return f"the nearest is {_listed(closest[:1])}; npformer lessons lists them"


def _suggestion(query: str, lessons: list[Lesson]) -> str:
    """Return the advice at the end of the message about a name that no lesson has."""
    words: dict[str, list[Lesson]] = {lesson.words: [lesson] for lesson in lessons}
    for lesson in lessons:
        for word in lesson.words.split("_"):
            if len(word) > 3 and lesson not in words.setdefault(word, []):
                words[word].append(lesson)
    near = nearest(query, words)
    if near:
        return f"did you mean {_listed(words[near])}? npformer lessons lists them"
    return "npformer lessons lists them"


def _listed(lessons: list[Lesson]) -> str:
    """Return the numbers and titles of the first lessons, and how many more there are."""
    names = ", ".join(f"{lesson.number} ({lesson.title})" for lesson in lessons[:MOST_LISTED])
    more = len(lessons) - MOST_LISTED
    return names + (f" and {more} more" if more > 0 else "")
