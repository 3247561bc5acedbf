"""The reports for a teacher: a CSV file of all results, and a page about the whole class."""

import csv
import io
from collections import Counter
from collections.abc import Sequence

from npformer.escaping import printable
from npformer.language import INTERFACE, phrase, say
from npformer.learn.classroom.assess import SOLVED, WRONG
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.feedback import WORDS, escaped, page, page_name, points_of, title_of
from npformer.learn.classroom.grade_class import StudentsWork
from npformer.learn.exercises.own_lines import without_lines

NOT_GRADED = "not graded"  # the status in the CSV file after an interruption
COLUMNS = ("student", "exercise", "points", "status", "possible", "message", "remark", "page")
SHOWN = 5  # of the mistakes of an exercise


def csv_text(assignment: Assignment, works: Sequence[StudentsWork]) -> str:
    """Return the CSV file: a row for each exercise of each student.

    Args:
        assignment: The assignment.
        works: The work of all students.
    """
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    for work in works:
        for name in assignment.exercises:
            result = work.results.get(name)
            if result is None:
                row = [work.student, name, "", NOT_GRADED, f"{assignment.points:g}", "", "", ""]
            else:
                points = [f"{result.points:g}", result.status, f"{result.possible:g}"]
                row = [work.student, name, *points, _first(result.message, *result.clues), result.remark]
                row.append(page_name(work.student))
            rows.writerow(map(_cell, row))
    return text.getvalue()


def _first(message: str, *clues: str) -> str:
    """Return the message with the first clue."""
    return f"{message}; {clues[0]}" if clues else message


def _cell(text: str) -> str:
    """Return text as a cell that no spreadsheet takes for a formula."""
    shown = printable(text)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def class_page(assignment: Assignment, works: Sequence[StudentsWork]) -> str:
    """Return the page of the class: the points of each student, and the mistakes in each exercise.

    Args:
        assignment: The assignment.
        works: The work of all students.
    """
    possible = assignment.points * len(assignment.exercises)
    rows = "".join(
        f'<tr><td><a href="{page_name(work.student)}">{escaped(work.student)}</a></td>'
        f'<td class="points">{points_of(work.points, possible)}</td></tr>\n'
        for work in works
    )
    body = (
        f"<h1>{say('Results of {students}', students=_students(len(works)))}</h1>\n"
        f"<table>\n<caption>{say('Points')}</caption>\n"
        f'<thead><tr><th scope="col">{say("Student")}</th>'
        f'<th scope="col" class="points">{say("Points")}</th></tr></thead>\n'
        f"<tbody>\n{rows}</tbody>\n</table>\n"
    )
    sections = "".join(_exercise(name, works) for name in assignment.exercises)
    return page(say("Results of the class"), body + sections)


def _students(count: int) -> str:
    return say("1 student") if count == 1 else say("{count} students", count=count)


def _exercise(name: str, works: Sequence[StudentsWork]) -> str:
    """Return the section of one exercise: how many solved it, and what the others did."""
    solved = sum(work.results[name].status == SOLVED for work in works if name in work.results)
    items = "".join(
        f"<li>{say('{students}: {what}', students=_students(count), what=escaped(what))}</li>\n"
        for what, count in common_mistakes(name, works).most_common(SHOWN)
    )
    share = say("{solved} of {students} solved it.", solved=solved, students=_students(len(works)))
    mistakes = f"<ul>\n{items}</ul>\n" if items else ""
    return (
        f"<section>\n<h2>{title_of(name)}</h2>\n"
        f'<p class="soft"><code>{name}</code></p>\n'
        f"<p>{share}</p>\n{mistakes}</section>\n"
    )


def common_mistakes(name: str, works: Sequence[StudentsWork]) -> Counter[str]:
    """Return how many students made each mistake in an exercise.

    Args:
        name: The name of the exercise.
        works: The work of all students.
    """
    found: Counter[str] = Counter()
    for work in works:
        result = work.results.get(name)
        if result is not None and result.status == WRONG:
            found[without_lines(result.clues[0] if result.clues else result.message)] += 1
        elif result is not None and result.status != SOLVED:
            found[phrase(WORDS[result.status], INTERFACE)] += 1
    return found
