"""npformer exercise as a learner uses it: start, wrong, hint, right; and solution files that misbehave."""

import json
import os

import pytest
from commands import refused
from processor_time import processor_time

from npformer.cli.main import main
from npformer.learn.exercises import EXERCISES
from npformer.learn.tasks.process import check

RIGHT = "    return y * (dy - (dy * y).sum(-1, keepdims=True))\n"


@pytest.fixture
def file(tmp_path, monkeypatch, capsys):
    """Run `npformer exercise start` in a temporary folder and return the path of the file."""
    monkeypatch.chdir(tmp_path)
    assert main(["exercise", "start", "softmax-backward"]) == 0
    assert "npformer exercise check" in capsys.readouterr().out
    return tmp_path / "exercises" / "softmax-backward.py"


def append(file, text):
    file.write_text(file.read_text(encoding="utf-8") + text, encoding="utf-8")


def state(capsys, name):
    assert main(["exercise", "list"]) == 0
    return next(line for line in capsys.readouterr().out.splitlines() if f" {name} " in line).split()[-1]


def test_from_start_to_solved(file, capsys):
    assert state(capsys, "softmax-backward") == "started"
    assert main(["exercise", "check"]) == 1
    assert "returns nothing" in capsys.readouterr().out
    stub = file.read_text(encoding="utf-8")
    append(file, "    return y * dy\n")
    assert main(["exercise", "check"]) == 1
    out = capsys.readouterr().out
    assert "the term with the sum over the row is left out" in " ".join(out.split())
    assert "+ too large" in out
    assert main(["exercise", "hint"]) == 0
    assert "Hint 1 of 3" in capsys.readouterr().out
    assert main(["exercise", "hint", "softmax-backward"]) == 0
    assert "Hint 2 of 3" in capsys.readouterr().out
    file.write_text(stub + RIGHT, encoding="utf-8")
    with processor_time() as used:
        assert main(["exercise", "check"]) == 0
    assert used.seconds < 3
    assert "is solved: 10 checks" in capsys.readouterr().out
    assert state(capsys, "softmax-backward") == "solved"


def test_an_untouched_file_is_started_again(file, capsys):
    text = file.read_bytes()
    (file.parent / ".progress.json").unlink()  # as if the start had been interrupted
    assert main(["exercise", "start", "softmax-backward"]) == 0
    assert file.read_bytes() == text
    assert json.loads((file.parent / ".progress.json").read_text())["current"] == file.stem


def test_a_damaged_note_is_kept_and_mentioned(file, capsys):
    note = file.parent / ".progress.json"
    note.write_text("{")
    assert main(["exercise", "hint", "softmax-backward"]) == 0
    assert "was damaged: a copy of it is" in " ".join(capsys.readouterr().err.split())
    assert (file.parent / ".progress.json.damaged").read_text() == "{"


def test_a_note_of_a_newer_version_is_refused(file, capsys):
    note = file.parent / ".progress.json"
    note.write_text('{"format": 2}')
    for action in ("list", "hint", "start"):
        arguments = [action] if action == "list" else [action, "softmax-backward"]
        assert "install a newer npformer" in refused(capsys, "exercise", *arguments)
    assert note.read_text() == '{"format": 2}'


def test_start_does_not_overwrite_a_file(file, capsys):
    append(file, "# mine\n")
    assert "exists already" in refused(capsys, "exercise", "start", "softmax-backward")
    assert file.read_text(encoding="utf-8").endswith("# mine\n")


def test_solution_prints_the_code_of_the_package(capsys):
    assert main(["exercise", "solution", "residual-backward"]) == 0
    out = capsys.readouterr().out
    assert "post_norm_backward is npformer's PostNormResidual.backward" in out
    assert "dx, dh = self.norm.backward(dy, cache.add_norm)" in out
    assert "pre_norm_backward is npformer's PreNormResidual.backward" in out
    assert "residual.py:" in out


def test_check_of_all_and_of_a_path(file, capsys):
    assert main(["exercise", "start", "causal-mask"]) == 0
    append(file, RIGHT)
    assert main(["exercise", "check", "--all"]) == 1
    out = capsys.readouterr().out
    assert "softmax-backward is solved" in out
    assert "causal-mask: not correct yet" in out
    assert main(["exercise", "check", str(file)]) == 0


def test_a_png_of_the_difference(file, capsys, tmp_path):
    append(file, "    return y * dy\n")
    assert main(["exercise", "check", "--png", "difference.png"]) == 1
    assert (tmp_path / "difference.png").read_bytes().startswith(b"\x89PNG")


def test_another_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["exercise", "start", "pad", "--dir", "mine/here"]) == 0
    assert (tmp_path / "mine/here/pad.py").exists()
    assert "--dir mine/here" in capsys.readouterr().out
    assert main(["exercise", "check", "--dir", "mine/here"]) == 1


@pytest.mark.parametrize("note", ["", "[1]", "{bad", '{"current": 3, "solved": 5, "hints": []}'])
def test_a_damaged_progress_file_does_no_harm(file, capsys, note):
    (file.parent / ".progress.json").write_text(note, encoding="utf-8")
    assert state(capsys, "softmax-backward") == "started"
    assert main(["exercise", "hint", "softmax-backward"]) == 0
    append(file, RIGHT)
    assert main(["exercise", "check"]) == 0
    assert json.loads((file.parent / ".progress.json").read_text(encoding="utf-8"))["solved"] == [
        "softmax-backward"
    ]


MISBEHAVING = {
    "raises": ("    raise ValueError('own words')\n", "line 18 raised ValueError: own words"),
    "raises at once": ("\n1 / 0\n", "line 19 raised ZeroDivisionError"),
    "loops": ("    while True:\n        pass\n", "stopped after 1 seconds, in line 1"),
    "prints without end": ("    while True:\n        print('x' * 1000)\n", "stopped after 1 seconds"),
    "syntax": ("    return (\n", "raised SyntaxError"),
    "indentation": ("  return 3\n", "line 18 raised IndentationError"),
    "exits": ("\nimport sys\nsys.exit(0)\n", "ended the program (SystemExit 0)"),
    "exits hard": ("\nimport os\nos._exit(0)\n", "ended the program with status 0"),
    "kills itself": ("\nimport os\nos.kill(os.getpid(), 9)\n", "was killed by signal 9"),
    "asks": ("\ninput()\n", "raised EOFError"),
    "interrupts": ("    raise KeyboardInterrupt\n", "raised KeyboardInterrupt"),
}


SIGNALS = pytest.mark.skipif(os.name == "nt", reason="Windows has no signal 9")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=SIGNALS if name == "kills itself" else ()) for name in MISBEHAVING]
)
def test_files_that_misbehave(name, file):
    text, words = MISBEHAVING[name]
    append(file, text)
    before = file.read_bytes()
    seconds = 1 if "stopped" in words else 600
    verdict = check(EXERCISES, EXERCISES.find("softmax-backward"), file, seconds)
    assert not verdict.solved
    assert words in verdict.message
    assert "\n" not in verdict.message
    assert file.read_bytes() == before


def test_the_output_of_a_solution_is_shown(file, capsys):
    append(file, "    print('dy is', dy.shape)\n" + RIGHT)
    assert main(["exercise", "check"]) == 0
    assert "dy is (4, 5)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("data", "words"), [(b"", "empty"), (b"\xff\xfe\x00", "UTF-8"), (b"x = 3\n", "no function")]
)
def test_files_with_other_contents(file, data, words):
    file.write_bytes(data)
    assert words in check(EXERCISES, EXERCISES.find("softmax-backward"), file).message


def test_the_list_of_one_chapter(file, capsys):
    assert main(["exercise", "list", "5"]) == 0
    out = capsys.readouterr().out
    assert "softmax-backward" in out
    assert "causal-mask" not in out
    assert "0 of 4 solved. To continue: npformer exercise check softmax-backward" in out


def test_the_list_fits_a_terminal_of_100_columns(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    assert main(["exercise", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 120
    assert all(any(f" {each.name} " in line for line in lines) for each in EXERCISES)
