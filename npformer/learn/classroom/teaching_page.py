"""The parts of docs/teaching.md that are computed: the two plans, and what students get wrong."""

import re
from pathlib import Path

from npformer.errors import UserError
from npformer.learn.classroom.guidance import count_mistakes, exercises_tables, families_table
from npformer.learn.classroom.syllabus import SIX_WEEKS, TWELVE_WEEKS, syllabus_table
from npformer.learn.exercises import EXERCISES
from npformer.mistakes.concepts import concepts


def with_computed_parts(text: str, folder: Path) -> str:
    """Return the text of a page, with each computed part between its two marks written again.

    Args:
        text: The text of the page. The marks of a part are <!-- NAME --> and <!-- end of NAME -->.
        folder: The folder of the page, for links to the lessons.

    Raises:
        UserError: If the page has no such marks.
    """
    parts = {
        "six weeks": syllabus_table(SIX_WEEKS, folder),
        "twelve weeks": syllabus_table(TWELVE_WEEKS, folder),
        "counts": f"The grader knows {count_mistakes():,} mistakes by name that are special to one of "
        f"{len(EXERCISES)} exercises, and {len(concepts())} that many solutions share.",
        "kinds of mistakes": families_table(),
        "mistakes by exercise": exercises_tables(folder),
    }
    for name, content in parts.items():
        pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end of {name} -->)", re.DOTALL)
        found = pattern.search(text)
        if found is None:
            raise UserError(
                f"the page has no place for {name!r}: write <!-- {name} --> and <!-- end of {name} --> there"
            )
        text = text[: found.end(1)] + f"\n{content}\n\n" + text[found.start(2) :]
    return text
