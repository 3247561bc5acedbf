"""Trials of faults: the faults that a record leaves out, and those that are tried again."""

import json

import pytest
from trials import record as records
from trials.record import Record
from trials.trial import PASSED, judge

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
    record = Record(path)
    for fault, test in zip(FAULTS, (TEST, TEST, OTHER), strict=True):
        record.update(fault, test)
    record.write(FAULTS)

    def names(faults=FAULTS, tests=(TEST, OTHER)):
        records.forget_files()
        return [fault.name for fault in Record(path).changed(faults, tests)]

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


def test_a_deleted_or_disregarded_test_decides_nothing(root, tried):
    assert tried(tests=[OTHER]) == ["first", "second"]
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
    record = Record(root / "caught.json")
    record.update(FAULTS[0], "")
    record.write(FAULTS[:2])
    assert list(json.loads((root / "caught.json").read_text())) == ["second"]
    assert tried() == ["first", "third"]


@pytest.mark.parametrize(
    ("status", "output", "caught", "why"),
    [
        (
            1,
            "FAILED tests/nn/test_one.py::test_it[a - b] - assert 0\n1 failed",
            True,
            "test_one.py::test_it[a",
        ),
        (1, "ERROR ../x/tests/nn/test_one.py::test_it\n1 error", True, "test_one.py::test_it"),
        (0, "3 passed", False, PASSED),
        (
            4,
            "ERROR: file not found: tests/nn/test_one.py::x",
            False,
            "the tests did not run: ERROR: file not",
        ),
        (1, "no summary", False, "the tests did not run: no summary"),
    ],
)
def test_a_fault_is_caught_only_if_a_test_failed(status, output, caught, why):
    outcome = judge(status, output, 1.0)
    assert outcome.caught == caught
    assert outcome.why.startswith(why)
    assert outcome.test == ("nn/test_one.py" if caught else "")
