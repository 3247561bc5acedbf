"""npformer class: write assignments from the exercises, and grade the submissions of a class."""

import json
import os
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from npformer.cli.options import COUNT, POSITIVE, SECONDS, SEED, Whole, add, add_language, excludes, only_if
from npformer.cli.output import console
from npformer.cli.tasks import print_text
from npformer.errors import UserError, did_you_mean, quantity
from npformer.escaping import printable, shell_word
from npformer.language import ENGLISH, speaking
from npformer.learn.classroom.assess import SOLVED
from npformer.learn.classroom.assignment import (
    POINTS,
    Assignment,
    assignment_from,
    chosen_exercises,
    random_seed,
)
from npformer.learn.classroom.feedback import feedback_page, page_name
from npformer.learn.classroom.grade_class import StudentsWork, grade_class, read_class
from npformer.learn.classroom.gradescope import export_gradescope
from npformer.learn.classroom.guidance import guidance
from npformer.learn.classroom.nbgrader import export_nbgrader
from npformer.learn.classroom.reports import class_page, csv_text
from npformer.learn.classroom.submissions import Submission, find_submissions, has_file_of
from npformer.learn.classroom.teaching_page import with_computed_parts
from npformer.learn.course.terminal import print_in_pages
from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks.process import SECONDS as LIMIT
from npformer.storage.atomic import explain_os_errors, locked_folder, make_folder, require_place, write_file
from npformer.storage.json_files import read_json

LAYOUTS = ("nbgrader", "gradescope")
MEGABYTE = 1 << 20
MEGABYTES = Whole(64, 1 << 20)  # NumPy needs the least
SETTINGS = "assignment.json"  # in the folder of the feedback: the seed, for the next time
MOST_WORKERS = 256

EPILOG = """\
npformer class export nbgrader COURSE      writes COURSE/source/exercises/exercises.ipynb
npformer class export gradescope FOLDER    writes FOLDER/autograder.zip, and the files for students
npformer class grade SUBMISSIONS           writes SUBMISSIONS-feedback/grades.csv and a page for each student
npformer class mistakes                    prints what students get wrong, exercise by exercise"""

RULES = (
    only_if("--write", lambda arguments: arguments.action == "mistakes", "with the action mistakes"),
    excludes("--write", "--exercise", "it writes everything"),
    only_if("--name", lambda arguments: arguments.action == "export", "with the action export"),
    only_if("--out --csv --workers", lambda arguments: arguments.action == "grade", "with the action grade"),
    only_if(
        "--points --seed --seconds --memory --language",
        lambda arguments: arguments.action != "mistakes",
        "with the actions export and grade",
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    """Add the arguments of the command."""
    add(parser, "action", "export, grade or mistakes", ("export", "grade", "mistakes"), metavar="ACTION")
    add(
        parser,
        "[places...]",
        "with export: nbgrader or gradescope, and a folder to write; with grade: the submissions",
        metavar="PLACE",
    )
    add(
        parser,
        "--exercise NAME",
        "an exercise, or the number of a chapter for all of its exercises; may be given several times "
        "(default: all; with grade, those that were submitted)",
        action="append",
    )
    add(parser, "--name NAME", "with export nbgrader: the name of the assignment", default="exercises")
    add(parser, "--points", "the points of each exercise", POSITIVE, default=POINTS)
    add(parser, "--seed", "the seed of the hidden inputs (default: one that nobody can guess)", SEED)
    add(parser, "--seconds", "the limit on the processor time of an exercise", SECONDS, default=LIMIT)
    add(parser, "--memory MB", "the limit on the memory of an exercise", MEGABYTES, default=2048)
    add(parser, "--out FOLDER", "with grade: the folder of the pages (default: SUBMISSIONS-feedback)")
    add(parser, "--csv FILE", "with grade: the file of the grades (default: grades.csv in that folder)")
    add(parser, "--write PAGE", "with mistakes: write the computed parts of docs/teaching.md again")
    add(
        parser, "--workers", "with grade: solutions at the same time (default: one for each processor)", COUNT
    )
    add_language(parser)


def run(arguments: Namespace) -> int:
    """Run the action. Return 0."""
    actions = {"export": export, "grade": grade, "mistakes": mistakes}
    return actions[arguments.action](arguments)


def mistakes(arguments: Namespace) -> int:
    """Print what students get wrong in each exercise, in English. Return 0."""
    if arguments.places:
        raise UserError(f"mistakes takes no place: leave out {arguments.places[0]}, or give --exercise NAME")
    if arguments.write is None:
        with speaking(ENGLISH):
            text = guidance(chosen_exercises(arguments.exercise or ()))
        print_in_pages(console(), text)
        return 0
    path = Path(arguments.write)
    with explain_os_errors(path, "read", "give the page docs/teaching.md"):
        before = path.read_text(encoding="utf-8")
    with speaking(ENGLISH):
        after = with_computed_parts(before, path.parent.absolute())
    write_file(path, after.encode(), advice="give another page")
    print_text(f"wrote {printable(path)}")
    return 0


# ---------------------------------------------------------------------------------------------------------
# Export


def export(arguments: Namespace) -> int:
    """Write an assignment for nbgrader or Gradescope. Return 0."""
    if len(arguments.places) != 2:
        raise UserError(
            "export needs the layout and a folder to write: npformer class export nbgrader COURSE, "
            "or npformer class export gradescope FOLDER"
        )
    layout, folder = arguments.places
    if layout not in LAYOUTS:
        raise UserError(f"export cannot write {layout!r}: {did_you_mean(layout, LAYOUTS)}")
    if layout == "gradescope" and "name" in arguments.given:
        raise UserError("--name has an effect only with export nbgrader: leave it out")
    assignment = assignment_of(arguments, chosen_exercises(arguments.exercise or ()))
    if layout == "nbgrader":
        written = export_nbgrader(assignment, Path(folder), assignment_name(arguments.name))
        then = f"cd {shell_word(folder)} && nbgrader generate_assignment {arguments.name}"
    else:
        written = export_gradescope(assignment, Path(folder))
        then = "upload autograder.zip on Gradescope, and give students the files in students/"
    print_text(f"Wrote {quantity(len(assignment.exercises), 'exercise')}, {assignment.points:g} points each:")
    for path in written:
        print_text(f"  {printable(path)}")
    print_text(f"Next: {then}")
    return 0


def assignment_of(arguments: Namespace, exercises: Sequence[str]) -> Assignment:
    """Return the assignment of these exercises with the limits and the seed of the command line."""
    seed = random_seed() if arguments.seed is None else arguments.seed
    return Assignment(
        tuple(exercises), arguments.points, seed, arguments.seconds, arguments.memory * MEGABYTE
    )


def assignment_name(name: str) -> str:
    """Return the name of an assignment, which becomes the name of a folder and of a notebook.

    Raises:
        UserError: If nbgrader does not take it, or a folder cannot have it.
    """
    if len(name) > 60 or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise UserError(
            f"--name is {printable(name)[:60]!r}: give up to 60 letters, digits, hyphens and underscores"
        )
    return name


# ---------------------------------------------------------------------------------------------------------
# Grade


def grade(arguments: Namespace) -> int:
    """Grade a folder of submissions. Return 0."""
    if len(arguments.places) != 1:
        raise UserError("grade needs the folder of the submissions: npformer class grade FOLDER")
    folder = Path(arguments.places[0])
    out = Path(arguments.out or f"{os.path.normpath(folder)}-feedback")
    workers = min(arguments.workers or os.cpu_count() or 1, MOST_WORKERS)
    submissions = find_submissions(folder)
    if out.resolve().is_relative_to(folder.resolve()):
        raise UserError(f"{out} is in the folder of the submissions: give another folder with --out")
    make_folder(out, advice="give another folder with --out")
    table = Path(arguments.csv) if arguments.csv else out / "grades.csv"
    require_place(table, advice="give another file with --csv")
    assignment = assignment_of(arguments, chosen_exercises(arguments.exercise or ()))
    with locked_folder(out):  # two graders of one class take the same seed
        assignment = _remembered(assignment, out / SETTINGS, keep_seed=arguments.seed is None)
    works = read_class(assignment, submissions)
    if not arguments.exercise:
        assignment = _submitted(assignment, works, submissions, folder)
    n_exercises = len(assignment.exercises)
    students = quantity(len(works), "student")
    print_text(f"Grading {students}, {quantity(n_exercises, 'exercise')}: {printable(out)}")

    def show(work: StudentsWork) -> None:
        """Print one line about a student whose results are complete."""
        wrong = [result.exercise for result in work.results.values() if result.status != SOLVED]
        more = f"  ({', '.join(wrong)})" if 0 < len(wrong) <= 3 else ""
        print_text(
            f"{work.points:>6g} of {assignment.points * n_exercises:g}  {printable(work.student)}{more}"
        )

    try:
        grade_class(assignment, works, out / "results", workers, show)
    finally:  # also after Ctrl-C: what is graded is written
        for work in works:
            if len(work.results) == n_exercises:
                page = feedback_page(work, assignment.exercises)
                write_file(out / page_name(work.student), page.encode())
        write_file(out / "class.html", class_page(assignment, works).encode())
        write_file(table, csv_text(assignment, works).encode())
    solved = sum(result.status == SOLVED for work in works for result in work.results.values())
    print_text(f"{solved} of {quantity(len(works) * n_exercises, 'solution')} solved.")
    print_text(f"Grades: {printable(table)}")
    print_text(f"The class, with a link to the page of each student: {printable(out / 'class.html')}")
    return 0


def _remembered(assignment: Assignment, file: Path, *, keep_seed: bool) -> Assignment:
    """Return the assignment with the seed of the last time, which a file has, if it is to be kept. Note it.

    Raises:
        UserError: If the note of the last time is damaged.
    """
    if file.exists() and keep_seed:
        what = f"{file}, which holds the seed of the last time,"
        before = read_json(file, what, "give a seed with --seed, or another folder with --out")
        assignment = replace(assignment, seed=assignment_from(before, what).seed)
    content = json.dumps(assignment.as_settings(), indent=1) + "\n"
    write_file(file, content.encode(), advice="give another folder with --out")
    return assignment


def _submitted(
    assignment: Assignment, works: Sequence[StudentsWork], submissions: Sequence[Submission], folder: Path
) -> Assignment:
    """Return the assignment with only those exercises that a student has submitted, and remove other results.

    Raises:
        UserError: If there are none.
    """
    found = {name for work in works for name in work.texts}
    names = tuple(
        name
        for name in assignment.exercises
        if name in found or any(has_file_of(submission, name) for submission in submissions)
    )
    if not names:
        first = EXERCISES.find(assignment.exercises[0])
        raise UserError(
            f"no file in {folder} belongs to an exercise: name the files as the exercises, such as "
            f"{first.stem}.py, or give --exercise NAME"
        )
    for work in works:
        work.results = {name: result for name, result in work.results.items() if name in names}
    return replace(assignment, exercises=names)
