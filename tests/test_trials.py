"""Trials of faults: those that a record leaves out, those that are tried again, and for how long."""

import argparse
import json

import pytest
from trials import circle
from trials import record as records
from trials.circle import add_options, all_test_files, try_all
from trials.reach import Reach, functions_of
from trials.record import Record
from trials.trial import PASSED, ROOT, Outcome, judge

TEST, OTHER = "nn/test_one.py", "nn/test_other.py"


class Fault:
    """A fault that changes nothing, with the attributes that the record reads."""

    def __init__(self, name, file, declaration="x = 1 -> x = 2"):
        self.name, self.file, self.declaration = name, file, declaration


FAULTS = [Fault("first", "one.py"), Fault("second", "one.py"), Fault("third", "two.py")]


@pytest.fixture
def root(tmp_path, monkeypatch):
    """Make a small project, whose test uses a helper, and return its folder."""
    files = {
        "npformer/one.py": "x = 1",
        "npformer/two.py": "x = 1",
        "npformer/checking/cases.py": "",
        "tests/conftest.py": "import strict",
        "tests/helpers/strict.py": "",
        "tests/helpers/tiny.py": "from deeper import size",
        "tests/helpers/deeper.py": "size = 3",
        "tests/helpers/unused.py": "",
        f"tests/{TEST}": "from tiny import model\nfrom npformer.checking import gradcheck",
        f"tests/{OTHER}": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(records, "ROOT", tmp_path)
    monkeypatch.setattr(records, "TESTS", tmp_path / "tests")
    monkeypatch.delenv(records.NIGHTLY, raising=False)
    records.forget_files()
    yield tmp_path
    records.forget_files()


@pytest.fixture
def tried(root):
    """Record that TEST caught the first two faults and OTHER the third.

    Return a function that gives the names of the faults that must be tried now.
    """
    path = root / "caught.json"
    record = Record(path, FAULTS)
    for fault, test in zip(FAULTS, (TEST, TEST, OTHER), strict=True):
        record.update(fault, f"tests/{test}::test_it[a::b]")
    record.write()

    def names(faults=FAULTS):
        records.forget_files()
        return [fault.name for fault in Record(path, FAULTS).changed(faults)]

    return names


def test_nothing_is_tried_again_where_nothing_changed(tried):
    assert tried() == []


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("npformer/one.py", ["first", "second"]),
        ("npformer/two.py", ["third"]),
        (f"tests/{TEST}", ["first", "second"]),
        (f"tests/{OTHER}", ["third"]),
        ("tests/helpers/tiny.py", ["first", "second"]),
        ("tests/helpers/deeper.py", ["first", "second"]),
        ("tests/helpers/unused.py", []),
        ("npformer/checking/cases.py", ["first", "second"]),
        ("tests/conftest.py", ["first", "second", "third"]),
        ("tests/helpers/strict.py", ["first", "second", "third"]),
    ],
)
def test_a_changed_file_tries_the_faults_that_it_decides(root, tried, file, expected):
    path = root / file
    path.write_text(f"{path.read_text()}\ny = 2")
    assert tried() == expected


def test_a_deleted_test_decides_nothing(root, tried):
    (root / "tests" / OTHER).unlink()
    assert tried() == ["third"]


def test_a_new_or_changed_fault_is_tried(tried):
    changed = Fault("first", "one.py", "x = 1 -> x = 3")
    new = Fault("new", "one.py")
    assert tried([changed, *FAULTS[1:], new]) == ["first", "new"]


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"first": 3}', '{"first": ["nn/test_one.py"]}'])
def test_a_missing_or_damaged_record_tries_everything(root, tried, text):
    path = root / "caught.json"
    path.unlink()
    if text is not None:
        path.write_text(text)
    assert tried() == ["first", "second", "third"]


def test_everything_is_tried_at_night(tried, monkeypatch):
    monkeypatch.setenv(records.NIGHTLY, "1")
    assert tried() == ["first", "second", "third"]


def test_a_fault_that_was_not_caught_is_forgotten(root, tried):
    record = Record(root / "caught.json", FAULTS[:2])
    record.update(FAULTS[0], "")
    record.write()
    assert list(json.loads((root / "caught.json").read_text())) == ["second"]
    assert tried() == ["first", "third"]


ID = "tests/nn/test_one.py::test_it[a - b]"


@pytest.mark.parametrize(
    ("status", "failure", "caught", "test", "why"),
    [
        (1, ID, True, ID, "nn/test_one.py::test_it[a - b]"),
        (2, "tests/nn/test_one.py", True, "tests/nn/test_one.py", "nn/test_one.py"),
        (0, "", False, "", PASSED),
        (-11, "", True, "chosen", "the tests did not run to their end: last"),
        (-24, "", True, "chosen", "the tests did not run to their end: last"),
        (4, "", False, "", "the tests did not run to their end: last"),
        (5, "", False, "", "the tests did not run to their end: last"),
        (70, "", False, "", "the tests did not run to their end: last"),
    ],
)
def test_the_outcomes_that_count_as_caught(status, failure, caught, test, why):
    outcome = judge(status, "first\nlast\n", failure, ["chosen", "more"], 1.0)
    assert (outcome.caught, outcome.test, outcome.why) == (caught, test, why)
    assert Outcome(None, 1.0, "no end", "").caught


class Change(Fault):
    """A fault that changes one text of a file of the package into another."""

    def __init__(self, old, new):
        super().__init__(old, "functional/linear.py")
        self.old, self.new = old, new

    def changed(self, source):
        assert source.count(self.old) == 1
        return source.replace(self.old, self.new)


def test_the_tests_that_run_for_a_fault():
    source = (ROOT / "npformer/functional/linear.py").read_text(encoding="utf-8")
    line = next(line for line in source.splitlines() if line.startswith("def linear_backward("))
    inside = Change(line, f"{line}  # changed")
    assert functions_of(inside) == {"linear_backward"}
    assert functions_of(Change(source.splitlines()[0], "")) == set()
    beside = "tests/functional/test_linear.py::in_another_process"
    tests = [(beside, 0.0), ("a::fast", 0.1), ("b::middle", 0.2), ("a::slow", 0.3)]
    calls = {"linear_backward": [3, 1], "other": [2]}
    reach = Reach(tests, {f"functional/linear.py: {name}": places for name, places in calls.items()})
    assert reach.of(inside) == (["a::fast", "a::slow", beside], 0.4)
    assert reach.of(Change(source.splitlines()[0], ""))[0] == ["a::fast", "b::middle", "a::slow", beside]


@pytest.fixture
def options(monkeypatch):
    """Return a function that reads options. A trial takes a minute of a clock that otherwise stands."""
    clock = [0.0]

    def attempt(fault, reach, last=""):
        clock[0] += 60
        return (
            Outcome(1, 60.0, "failed", f"tests/{TEST}::test_it")
            if fault.name != "second"
            else Outcome(0, 1, "", "")
        )

    monkeypatch.setattr(circle, "try_fault", attempt)
    monkeypatch.setattr(circle.time, "monotonic", lambda: clock[0])
    parser = argparse.ArgumentParser()
    add_options(parser)
    return lambda *words: parser.parse_args(["--jobs", "1", *words])


def test_no_trial_begins_when_the_time_is_up(root, options, capsys):
    record = Record(root / "caught.json", FAULTS)
    kept = [fault for fault in FAULTS if fault.name != "second"]
    assert try_all(kept, record, options("--changed", "--record", "--minutes", "0.5"))
    printed = capsys.readouterr().out
    assert "1 faults, 1 caught\n1 more are stale" in printed
    (left,) = record.changed(kept)  # a second run goes on where this one ended
    assert left.name not in printed
    assert try_all(kept, record, options("--changed", "--minutes", "0"))
    assert "0 faults, 0 caught" in capsys.readouterr().out


def test_a_fault_that_nothing_notices_is_a_failure(root, options, capsys):
    record = Record(root / "caught.json", FAULTS)
    assert not try_all(FAULTS, record, options("--record"))
    assert "3 faults, 2 caught\nNOT CAUGHT: second" in capsys.readouterr().out
    empty = Record(root / "none.json", FAULTS)
    assert not try_all(FAULTS, empty, options("--minutes", "9"))
    assert "NOT CAUGHT: second" in capsys.readouterr().out
    assert [fault.name for fault in record.changed(FAULTS)] == ["second"]


def test_the_files_with_tests_are_those_of_the_folders_with_mutants():
    files = all_test_files()
    assert len(set(files)) == len(files)
    assert all((ROOT / "tests" / file).is_file() for file in files)
    assert {"functional/test_masks.py", "nn/attention/test_luong.py", "kernels/test_gpu.py"} <= set(files)
