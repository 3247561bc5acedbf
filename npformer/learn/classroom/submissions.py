"""Find and read the submissions in a folder: one folder, Python file or notebook for each student.

Nothing that lies there is trusted. Links are not followed, other things than regular files are not opened,
and no more than `MOST_BYTES` of a file are read. Names of files only say whose a file is and to which
exercise it belongs; no path is made of them.
"""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from npformer.errors import UserError
from npformer.escaping import printable
from npformer.language import say
from npformer.learn.classroom.cells import code_cells, solution_among
from npformer.learn.exercises import EXERCISES
from npformer.storage.atomic import explain_os_errors, reason

MOST_BYTES = 1 << 20  # of a file; the longest solution has a few thousand
MOST_FILES = 1000  # of a student
DEEPEST = 4  # folders below that of a student
ENDINGS = (".py", ".ipynb")


class Unreadable(ValueError):
    """A submitted file cannot be graded. The message is one sentence for the student."""


@dataclass
class Submission:
    """The files that one student submitted.

    Args:
        student: The name of the student's folder, or of the student's file without its ending.
        files: The files, from the outer to the inner folders.
        problem: A sentence about the whole submission, or "".
    """

    student: str
    files: list[Path] = field(default_factory=list)
    problem: str = ""


def find_submissions(folder: Path) -> list[Submission]:
    """Return the submissions in a folder, sorted by the name of the student.

    Hidden files and files with other endings than `ENDINGS` are left out. What has the same name, such as
    ada.py and ada.ipynb, is of one student.

    Raises:
        UserError: If the folder cannot be read or has no submissions.
    """
    advice = "give the folder with one folder or file for each student"
    with explain_os_errors(folder, "read", advice):
        names = sorted(os.listdir(folder))
    found: dict[str, Submission] = {}
    for name in names:
        path = folder / name
        if name.startswith((".", "__")):
            continue
        if path.is_dir() and not path.is_symlink():
            found[name] = submission_in(path)
        elif path.suffix in ENDINGS:
            found.setdefault(path.stem, Submission(path.stem)).files.append(path)
        elif path.is_symlink():
            problem = say("the submission is a link, and links are not followed")
            found[name] = Submission(name, problem=problem)
    if not found:
        raise UserError(f"{folder} has no submissions: {advice}")
    return list(found.values())


def submission_in(folder: Path) -> Submission:
    """Return the submission in the folder of a student."""
    submission = Submission(folder.name)
    try:
        for path in _walk(folder):
            if len(submission.files) == MOST_FILES:
                submission.problem = say("the submission has more than {most} files", most=MOST_FILES)
                break
            submission.files.append(path)
    except OSError as error:
        submission.problem = say("the folder cannot be read ({why})", why=reason(error))
    return submission


def _walk(folder: Path) -> Iterator[Path]:
    """Yield the files with known endings in a folder and the folders below it, the outer ones first."""
    level = [folder]
    for _ in range(DEEPEST):
        inner = []
        for each in level:
            for entry in sorted(os.scandir(each), key=lambda entry: entry.name):
                if entry.name.startswith((".", "__")):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    inner.append(Path(entry.path))
                elif Path(entry.name).suffix in ENDINGS:
                    yield Path(entry.path)
        level = inner[:MOST_FILES]


# ---------------------------------------------------------------------------------------------------------
# Reading


def read_text(path: Path) -> str:
    """Return the text of a submitted file.

    Raises:
        Unreadable: If it is not a regular file, is too large, or is not UTF-8 text.
    """
    name = printable(path.name)[:80]
    try:
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            raise Unreadable(
                say("{name} is a link, and links are not followed: submit the file itself", name=name)
            )
        if not stat.S_ISREG(status.st_mode):
            raise Unreadable(say("{name} is not a regular file: submit a text file", name=name))
        with open(path, "rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise Unreadable(say("{name} cannot be read ({why})", name=name, why=reason(error))) from None
    if len(data) > MOST_BYTES:
        most = MOST_BYTES >> 20
        raise Unreadable(
            say("{name} has more than {most} MB: submit the file of the exercise", name=name, most=most)
        )
    if b"\0" in data:
        raise Unreadable(
            say("{name} holds null bytes, as binary files do: submit a text file in UTF-8", name=name)
        )
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        message = say(
            "{name} is not UTF-8 text (byte {place}): save it in UTF-8", name=name, place=error.start
        )
        raise Unreadable(message) from None


def solution_of(submission: Submission, exercise: str) -> str | None:
    """Return the text of a student's solution of an exercise, or None if there is none.

    It is in the file that is named like the exercise, in a notebook, or in a file that defines its functions.

    Args:
        submission: The submission.
        exercise: The name of the exercise.

    Raises:
        Unreadable: If the file that is named like the exercise cannot be read, if there are two such files,
            or if no file has the solution and one of them cannot be read.
    """
    if submission.problem:
        raise Unreadable(submission.problem)
    named = [path for path in submission.files if path.suffix == ".py" and is_named(path, exercise)]
    if named:
        texts = {read_text(path) for path in named}
        if len(texts) > 1:
            raise Unreadable(
                say(
                    "there are {count} files for {exercise}: submit one of them",
                    count=len(named),
                    exercise=exercise,
                )
            )
        return texts.pop()
    wrong: Unreadable | None = None
    for path in submission.files:
        if path.suffix == ".py" and any(is_named(path, other.name) for other in EXERCISES):
            continue  # the file of another exercise
        try:
            text = read_text(path)
            cells = code_cells(text, printable(path.name)[:80]) if path.suffix == ".ipynb" else [text]
        except (Unreadable, UserError) as error:
            wrong = wrong or Unreadable(str(error))
            continue
        found = solution_among(cells, EXERCISES.find(exercise))
        if found is not None:
            return found
    if wrong:
        raise wrong
    return None


def has_file_of(submission: Submission, exercise: str) -> bool:
    """Return whether a submission has a file that is named like an exercise, readable or not."""
    return any(path.suffix == ".py" and is_named(path, exercise) for path in submission.files)


def is_named(path: Path, exercise: str) -> bool:
    """Return whether a file is named like an exercise: softmax-backward.py, also Softmax_Backward (2).py."""
    stem = re.sub(r"(\s*\(\d+\)|-\d+)$", "", path.stem.lower().replace("_", "-"))
    return stem == exercise
