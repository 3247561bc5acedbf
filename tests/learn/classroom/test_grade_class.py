"""Grading a class: in parallel, with an interruption, and again; the CSV file and the pages."""

import contextlib
import csv
import io
import os
import re
import sys
from pathlib import Path
from typing import ClassVar

import pytest
from classroom_solutions import HARMFUL, RIGHT, UNTOUCHED, WRONG
from parsed_page import ParsedPage
from waiting import wait_until

from npformer.errors import UserError
from npformer.language import speaking
from npformer.learn.classroom import grade_class as module
from npformer.learn.classroom.assess import SOLVED, assess, without_solution
from npformer.learn.classroom.assignment import Assignment
from npformer.learn.classroom.feedback import escaped, feedback_page, page_name
from npformer.learn.classroom.grade_class import StudentsWork, grade_class, read_class
from npformer.learn.classroom.reports import class_page, common_mistakes, csv_text
from npformer.learn.classroom.submissions import find_submissions
from npformer.learn.classroom.worker import Worker

NAME = "softmax-backward"
ASSIGNMENT = Assignment((NAME,), seed=5, seconds=1.5)


class QuickWorker:
    """A worker that judges by the text, so that a test takes no time."""

    graded: ClassVar[list[str]] = []

    def assess(self, assignment, name, text):
        self.graded.append(text)
        status = SOLVED if text == RIGHT else "wrong"
        points = assignment.points if text == RIGHT else 0.0
        return module.Result(name, status, points, assignment.points, f"{status}: {len(text)}")

    def close(self):
        """Do nothing."""


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(module, "Worker", QuickWorker)
    QuickWorker.graded = []
    return QuickWorker.graded


def works_of(texts):
    return [StudentsWork(student, {NAME: text}) for student, text in texts.items()]


def test_a_real_class_with_every_kind_of_submission(tmp_path, monkeypatch):
    folder, here = tmp_path / "class", tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    texts = {"right": RIGHT, "wrong": WRONG, "untouched": UNTOUCHED}
    texts |= {kind: HARMFUL[kind] for kind in ("loops", "writes")}
    for student, text in texts.items():
        (folder / student).mkdir(parents=True)
        (folder / student / f"{NAME}.py").write_text(text)
    (folder / "binary.py").write_bytes(b"\0")
    (folder / "missing").mkdir()
    works = read_class(ASSIGNMENT, find_submissions(folder))
    finished = []
    graded = grade_class(ASSIGNMENT, works, tmp_path / "store", 2, lambda work: finished.append(work.student))
    assert graded == len(texts)
    assert sorted(finished) == sorted(work.student for work in works)
    due = {"right": SOLVED, "writes": SOLVED, "wrong": "wrong", "loops": "wrong", "untouched": "untouched"}
    due |= {"binary": "unreadable", "missing": "missing"}
    assert {work.student: work.results[NAME].status for work in works} == due
    assert all(work.points == 10 * (due[work.student] == SOLVED) for work in works)
    assert all("\n" not in work.results[NAME].message for work in works)
    assert not list(here.iterdir()), "a solution writes into a folder of its own"


@pytest.mark.parametrize("language", ["en", "zh_CN"])
def test_a_mistake_is_counted_whatever_its_line(language):
    texts = (WRONG, "# later\n" + WRONG, "x" + WRONG, "# later\nx" + WRONG)  # two raise an exception
    works = works_of(dict(zip("abcd", texts, strict=True)))
    with speaking(language):
        for work in works:
            work.results[NAME] = assess(Assignment((NAME,)), NAME, work.texts[NAME])
        assert [*common_mistakes(NAME, works).values()] == [2, 2]


def test_results_are_kept_and_only_changes_are_graded_again(tmp_path, quick):
    texts = {"ada": RIGHT, "bob": WRONG, "cleo": RIGHT}
    assert grade_class(ASSIGNMENT, works_of(texts), tmp_path, 2) == 2  # two of the three are equal
    again = works_of(texts | {"bob": RIGHT, "dora": "x = 1"})
    assert grade_class(ASSIGNMENT, again, tmp_path, 2) == 1
    assert [work.points for work in again] == [10, 10, 10, 0]
    other = Assignment((NAME,), seed=6, seconds=2)
    assert grade_class(other, works_of(texts), tmp_path, 2) == 2


def test_a_damaged_result_is_graded_again(tmp_path, quick):
    grade_class(ASSIGNMENT, works_of({"ada": RIGHT}), tmp_path, 1)
    (file,) = tmp_path.glob("*.json")
    for damage in ("", "{", file.read_text().replace("solved", "perfect", 1)):
        file.write_text(damage)
        works = works_of({"ada": RIGHT})
        assert grade_class(ASSIGNMENT, works, tmp_path, 1) == 1
        assert works[0].points == 10


def test_an_interruption_loses_nothing(tmp_path, quick):
    texts = {f"s{number}": f"x = {number}" for number in range(9)}
    count = []

    def interrupt(work):
        count.append(work)
        if len(count) == 4:
            raise KeyboardInterrupt

    works = works_of(texts)
    with pytest.raises(KeyboardInterrupt):
        grade_class(ASSIGNMENT, works, tmp_path, 2, interrupt)
    assert sum(bool(work.results) for work in works) == 4
    rows = list(csv.DictReader(io.StringIO(csv_text(ASSIGNMENT, works))))
    assert sum(row["status"] == "not graded" for row in rows) == 5
    quick.clear()
    assert grade_class(ASSIGNMENT, works_of(texts), tmp_path, 2) == 5
    assert len(quick) == 5


def processes_of(module):
    """Return the numbers of the processes that run a module of Python, with the numbers of their parents."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((process / "stat").read_text().rpartition(")")[2].split()[1])
            if module.encode() in (process / "cmdline").read_bytes():
                found.add((process.name, parent))
    return found


def workers():
    """Return the numbers of the children of this process that are workers."""
    return {number for number, parent in processes_of("npformer.learn") if parent == os.getpid()}


@pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc")
def test_a_worker_that_is_closed_leaves_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    works = works_of({"ada": "while True: pass\n" + RIGHT})
    before, solutions = workers(), processes_of("npformer.learn.tasks.child")

    def close_soon():
        wait_until(lambda: processes_of("npformer.learn.tasks.child") - solutions)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "wait", lambda *arguments, **settings: close_soon())
    with pytest.raises(KeyboardInterrupt):
        grade_class(Assignment((NAME,), seed=5, seconds=60), works, tmp_path / "store", 1)
    assert workers() <= before
    assert not list(tmp_path.glob("npformer-*"))


def test_a_worker_that_dies_is_one_result_and_starts_again(monkeypatch):
    worker = Worker()
    try:
        worker._started().kill()
        worker._process.wait()
        process = worker._started()
        process.kill()
        monkeypatch.setattr(process, "poll", lambda: None)  # not noticed yet
        assert "was ended" in worker.assess(ASSIGNMENT, NAME, RIGHT).message
        assert worker.assess(ASSIGNMENT, NAME, UNTOUCHED).status in ("untouched", "wrong")
    finally:
        worker.close()


# ---------------------------------------------------------------------------------------------------------
# Reports

NASTY = [
    "=cmd()",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "\x1b[31m",
    "a\nb",
    "Ada",
    "ada",
    "é\udce9",
    "x" * 300,
]


def nasty_works():
    result = without_solution(ASSIGNMENT, NAME, "wrong", "<b>it is</b> & 3\x1b")
    return [StudentsWork(student, {NAME: "</pre><script>x</script>"}, {NAME: result}) for student in NASTY]


def test_names_of_pages_are_plain_and_differ():
    names = [page_name(student) for student in NASTY]
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,60}\.html", name) for name in names)
    assert len({name.lower() for name in names}) == len(names)


def test_no_student_has_the_page_of_the_class_or_of_another_student():
    names = ["class", "Class", "con", "com1", "nul"]
    names += [page_name(student).removesuffix(".html") for student in (*NASTY, *names)]  # chosen on purpose
    pages = [page_name(name) for name in {*NASTY, *names}]
    assert len({page.lower() for page in pages}) == len(pages)
    assert not {"class.html", "con.html", "com1.html", "nul.html"} & {page.lower() for page in pages}
    assert page_name("ada") == "ada.html"
    assert page_name("ada-lovelace-1") == "ada-lovelace-1.html"


def test_a_folder_of_results_with_links_is_refused_in_one_sentence(tmp_path, quick):
    works, store = works_of({"ada": RIGHT}), tmp_path / "store"
    outside = tmp_path / "outside"
    outside.write_text("old")
    store.mkdir()
    (store / f"{module._key(ASSIGNMENT, NAME, RIGHT)}.json").symlink_to(outside)
    with pytest.raises(UserError, match="outside its folder"):
        grade_class(ASSIGNMENT, works, store, 1)
    assert outside.read_text() == "old"


def test_a_csv_cell_is_no_formula_and_one_line():
    text = csv_text(ASSIGNMENT, nasty_works())
    text.encode()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0][:4] == ["student", "exercise", "points", "status"]
    assert len(rows) == 1 + len(NASTY)
    assert rows[1][0] == "'=cmd()"
    assert all("\n" not in cell and not cell.startswith(("=", "+", "-", "@")) for row in rows for cell in row)


def test_pages_are_well_formed_and_run_nothing():
    works = nasty_works()
    for text in (*(feedback_page(work, [NAME]) for work in works), class_page(ASSIGNMENT, works)):
        text.encode()
        page = ParsedPage(text)
        assert not {"script", "img", "link", "b"} & set(page.tags)
        assert '<html lang="en">' in text
        assert "http" not in text
        assert "\x1b" not in text


def test_a_page_shows_the_diagnosis_and_the_solution():
    work = works_of({"ada": WRONG})[0]
    work.results[NAME] = module.Result(
        NAME, "wrong", 0, 10, "20 of 20 entries are wrong", ("the sum is left out",), "dx:\n  + -", "hello"
    )
    text = feedback_page(work, [NAME])
    for shown in ("20 of 20 entries are wrong", "the sum is left out", "  + -", "hello", "0 of 10 points"):
        assert shown in text
    assert "  1  import numpy" in text
    assert escaped(WRONG.splitlines()[-2]) in text
