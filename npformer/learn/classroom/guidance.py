"""Guidance for teachers on what students get wrong: the mistakes that the grader knows by name, counted."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path

from npformer.learn.course.chapters import title_of_chapter
from npformer.learn.course.lesson import Lesson, all_lessons
from npformer.learn.course.references import SourceLocation
from npformer.learn.exercises import EXERCISES, Exercise
from npformer.mistakes.tables import NUMBER, Mistake

SHOWN = 2  # mistakes of an exercise on the page


@dataclass(frozen=True)
class Family:
    """A kind of mistake that occurs in many exercises.

    Args:
        name: A name.
        words: A regular expression that the sentence about such a mistake matches.
        remedy: What helps a student to see it.
    """

    name: str
    words: str
    remedy: str


FAMILIES = (
    Family(
        "a term, a factor or a step is left out",
        r"left out|missing|ignored|is not (added|subtracted|used|applied|divided|multiplied)",
        "Let students write every step of the forward pass as a line of its own, and then one line of the "
        "backward pass for each of them.",
    ),
    Family(
        "a sum is averaged, or not taken at all",
        r"averag|the mean|divided by the (batch|number)|not summed|instead of summed",
        "Ask: how many outputs does this number influence? The gradient is the sum over all of them. Only "
        "the loss divides by a count, and it does so once.",
    ),
    Family(
        "an operation runs over the wrong axis",
        r"\baxis|\baxes|wrong (rows|columns)|over the rows|over the columns",
        "Let students write the shape of every array into a comment. Sizes that all differ, as in the "
        "trials, show such a mistake at once.",
    ),
    Family(
        "one array is used instead of another",
        r"instead of|exchanged|in another order|confused",
        "Ask for the names that the derivation uses: dy for the gradient of y, and nothing called grad.",
    ),
    Family(
        "a sign is wrong",
        r"\bsigns?\b",
        "The gradient is the derivative of the loss. The optimizer subtracts it, and no layer does.",
    ),
    Family(
        "something is applied twice",
        r"twice|once too often|once more|already",
        "Let students say which function already contains the factor, such as the scale of the scores.",
    ),
    Family(
        "a number is one too large or too small",
        r"one (too|more|less|id|step|place|longer)|starts? with|begins? with 1|too (early|late)",
        "Try the smallest case on paper: one token, the first step, a window of one.",
    ),
    Family(
        "very large scores, and masked ones",
        r"NaN|overflow|-inf|infinit",
        "Try a row of 1000s, and a row with one entry that is not masked.",
    ),
    Family(
        "an array is changed in place, or a result is overwritten",
        r"in place|overwrit|overwritten|changes? its|writes into",
        "Show that `y = x; y *= 2` changes x, and that `table[ids] += dy` adds only once for an id that "
        "occurs twice.",
    ),
)


def guidance(exercises: Sequence[str]) -> str:
    """Return all mistakes that the grader names in some exercises, as lines of text.

    Args:
        exercises: The names of the exercises.
    """
    parts = []
    for exercise in map(EXERCISES.find, exercises):
        parts.append(f"{exercise.name} (chapter {exercise.chapter}): {exercise.title}")
        parts += [f"  - {sentence}" for sentence in sentences(exercise)]
        parts.append("  Mistakes that many exercises share, in this one:")
        shared = dict.fromkeys(_in_words(mistake) for mistake in exercise.shared_mistakes)
        parts += [f"  - {sentence}" for sentence in shared]
    return "\n".join(parts)


def sentences(exercise: Exercise) -> list[str]:
    """Return the sentences about the mistakes that are special to an exercise, each once."""
    return list(dict.fromkeys(map(_in_words, exercise.special_mistakes)))


def _in_words(mistake: Mistake) -> str:
    return mistake.says.replace(NUMBER, "another number")


def families_table() -> str:
    """Return the families of mistakes as a Markdown table, with the numbers of mistakes and of exercises."""
    rows = ["| mistake | known | in exercises | what helps |", "|---|---:|---:|---|"]
    for family in FAMILIES:
        found = [
            exercise.name
            for exercise in EXERCISES
            for sentence in sentences(exercise)
            if re.search(family.words, sentence)
        ]
        rows.append(f"| {family.name} | {len(found)} | {len(set(found))} | {family.remedy} |")
    return "\n".join(rows)


def exercises_tables(folder: Path) -> str:
    """Return, for each chapter, a Markdown table of its exercises with their first mistakes.

    Args:
        folder: The folder of the page, for links to the lessons.
    """
    parts = []
    for chapter, exercises in groupby(EXERCISES, key=lambda exercise: exercise.chapter):
        parts += [f"### Chapter {chapter}: {title_of_chapter(chapter)}", ""]
        parts += ["| exercise | lesson | known | the first of them |", "|---|---|---:|---|"]
        parts += [_row(exercise, folder) for exercise in exercises]
        parts.append("")
    return "\n".join(parts).rstrip()


def _row(exercise: Exercise, folder: Path) -> str:
    says = sentences(exercise)
    shown = "; ".join(each.replace("|", r"\|").replace("*", r"\*") for each in says[:SHOWN])
    lesson = lesson_of(exercise.name)
    link = SourceLocation(lesson.number, lesson.path, 1).link(folder, lesson.number)
    return f"| `{exercise.name}` | {link} | {len(says)} | {shown} |"


def count_mistakes() -> int:
    """Return the number of mistakes that are special to an exercise, over all exercises."""
    return sum(len(sentences(exercise)) for exercise in EXERCISES)


@cache
def _lessons_by_exercise() -> dict[str, Lesson]:
    """Return the lesson that sets each exercise."""
    found: dict[str, Lesson] = {}
    for lesson in all_lessons():
        text = lesson.path.read_text(encoding="utf-8")
        for name in re.findall(r"npformer exercise start ([a-z0-9-]+)", text):
            found.setdefault(name, lesson)
    return found


def lesson_of(exercise: str) -> Lesson:
    """Return the lesson that sets an exercise."""
    return _lessons_by_exercise()[exercise]
