"""The command line as a person uses it: what works, and what is said when it does not."""

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from npformer.cli import COMMANDS, main

TINY = ["--set", "d_model=16", "--set", "d_ff=16", "--set", "n_heads=2", "--set", "n_layers=1"]
QUICK = [*TINY, "--steps", "6", "--set", "validate_every=3", "--set", "checkpoint_every=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a run on two small files, trained for six steps."""
    path = tmp_path_factory.mktemp("cli")
    (path / "train.en").write_text("the cat sleeps\nthe dog eats\na cat eats\n" * 10, encoding="utf-8")
    (path / "train.fr").write_text("le chat dort\nle chien mange\nun chat mange\n" * 10, encoding="utf-8")
    os.chdir(path)
    assert main(["train", "train.en", "train.fr", "--run", "runs/tiny", *QUICK]) == 0
    return path


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder)


def refused(capsys, *arguments):
    """Run a command that must fail, and return the one sentence it says."""
    status = main(list(arguments))
    printed = capsys.readouterr()
    assert status == 2, printed
    assert printed.err.startswith("npformer: ")
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    return printed.err


def test_help_names_every_command(capsys):
    assert main([]) == 0
    printed = capsys.readouterr().out
    assert all(command in printed for command in COMMANDS)
    assert "The course begins with npformer lesson 0." in printed
    for command in COMMANDS:
        with pytest.raises(SystemExit) as stopped:
            main([command, "--help"])
        assert stopped.value.code == 0
        assert "usage: npformer " + command in capsys.readouterr().out


def test_an_unknown_command_is_status_2(capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["translat"])
    assert stopped.value.code == 2
    assert "invalid choice" in capsys.readouterr().err


def test_translate_prints_a_line_for_each_sentence(capsys):
    assert main(["translate", "the cat sleeps", "the dog eats", "--run", "runs/tiny"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_translate_takes_the_run_trained_last(capsys):
    assert main(["translate", "the cat sleeps"]) == 0


def stdin(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_translate_reads_standard_input(capsys, monkeypatch):
    stdin(monkeypatch, b"the cat sleeps\r\nthe dog eats")
    assert main(["translate", "--run", "runs/tiny", "--beam", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_person_who_types_may_make_mistakes(capsys, monkeypatch):
    """At a terminal, an empty line is told of, and the next is translated."""
    stdin(monkeypatch, b"\nthe cat sleeps\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert main(["translate", "--run", "runs/tiny"]) == 0
    printed = capsys.readouterr()
    assert "line 1 is empty" in printed.err
    assert len(printed.out.splitlines()) == 1


def test_unknown_words_are_told(capsys):
    assert main(["translate", "the zebra sleeps", "--run", "runs/tiny"]) == 0
    assert "line 1: the model does not know 'zebra'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"the cat\n\nthe dog\n", "line 2 is empty"),
        (b"the cat\nthe \xff dog\n", "line 2, is not valid UTF-8"),
        (b"", "standard input is empty"),
        (b"cat " * 100, "line 1 has 101 tokens"),
    ],
)
def test_what_translate_refuses_to_read(capsys, monkeypatch, data, words):
    stdin(monkeypatch, data)
    assert words in refused(capsys, "translate", "--run", "runs/tiny")


def broken_copy(folder, name, change):
    """A run whose checkpoints are changed."""
    target = folder / "runs" / name
    target.mkdir(exist_ok=True)
    data = (folder / "runs/tiny/last.safetensors").read_bytes()
    for file in ("last.safetensors", "best.safetensors"):
        (target / file).write_bytes(change(data))
    return f"runs/{name}"


def test_broken_checkpoints(capsys, folder):
    cut = broken_copy(folder, "cut", lambda data: data[: len(data) // 2])
    altered = broken_copy(folder, "altered", lambda data: data[:-9] + bytes([data[-9] ^ 1]) + data[-8:])
    for run in (cut, altered):
        assert run in refused(capsys, "translate", "hello", "--run", run)
        assert run in refused(capsys, "train", "--resume", run)


def test_no_such_run(capsys):
    assert "there is no run nowhere" in refused(capsys, "translate", "hello", "--run", "nowhere")
    assert "nowhere" in refused(capsys, "train", "--resume", "nowhere")


def test_a_run_is_not_overwritten(capsys):
    sentence = refused(capsys, "train", "train.en", "train.fr", "--run", "runs/tiny", *QUICK)
    assert "--resume" in sentence


def test_resume_goes_on(capsys):
    steady = [*QUICK, "--set", "schedule=constant"]
    assert main(["train", "train.en", "train.fr", "--run", "runs/more", *steady]) == 0
    assert main(["train", "--resume", "runs/more", "--steps", "8"]) == 0
    log = Path("runs/more/log.jsonl").read_text(encoding="utf-8").splitlines()
    assert max(json.loads(line)["step"] for line in log) == 8


FILES = {
    "short.fr": b"le chat dort\n",
    "latin.fr": "le chat dort\nété\n".encode("latin-1") + b"x\n" * 28,
    "empty.fr": b"",
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train.en", "short.fr"], "30"),
        (["train.en", "latin.fr"], "latin.fr"),
        (["train.en", "empty.fr"], "empty.fr"),
        (["train.en", "missing.fr"], "missing.fr"),
        (["train.en"], "1 files were given"),
        (["--set", "d_model=10", "--set", "n_heads=4"], "not divisible by n_heads 4"),
        (["--set", "d_modell=10"], "--set d_modell: no setting of that name"),
        (["--set", "d_model"], "write NAME=VALUE"),
        (["--set", "norm=before"], "choose one of post, pre"),
        (["--model", "paper-bas"], "did you mean paper-base?"),
        (["--recipe", "smal"], "small"),
        (["--backend", "cupy"], "needs CuPy and a GPU that answers"),
        (["--steps", "0"], "steps is 0"),
        (["--resume", "runs/tiny", "--seed", "0"], "--seed was given beside it"),
        (["--valid", "train.en", "train.fr"], "--valid goes with two files"),
    ],
)
def test_what_train_refuses(capsys, folder, arguments, words):
    for name, data in FILES.items():
        (folder / name).write_bytes(data)
    assert words in refused(
        capsys, "train", *arguments, *([] if "--resume" in arguments else ["--run", "new"])
    )
    assert not (folder / "new").exists()


def test_gradcheck_of_some_components_as_json(capsys):
    assert main(["gradcheck", "softmax", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {"name", "tensor", "error", "method", "ok"} <= set(rows[0])
    assert {row["name"] for row in rows} == {"softmax", "log-softmax"}


def test_gradcheck_as_a_table(capsys):
    assert main(["gradcheck", "layer norm"]) == 0
    assert "all right" in capsys.readouterr().out
    assert main(["gradcheck", "layer norm", "--verbose"]) == 0
    assert "gain" in capsys.readouterr().out
    assert main(["gradcheck", "--list"]) == 0
    assert "layer norm\n" in capsys.readouterr().out


OWN = """
import numpy as np

def double(x):
    return 2 * x, None

def double_backward(dy, cache):
    return 3 * dy

class Needy:
    def __init__(self, size):
        self.size = size

class Raising:
    def forward(self, x):
        return 1 / 0
    def backward(self, dy, cache):
        return dy

def lonely(x):
    return x, None
"""


def test_gradcheck_of_ones_own_file(capsys, folder):
    (folder / "own.py").write_text(OWN)
    assert main(["gradcheck", "own.py:double", "--shape", "2,3"]) == 1
    assert "1.5 times the right one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "no component is called 'nonsense'"),
        (["own.py"], "names a file and nothing in it"),
        (["own.py:double"], "give --shape"),
        (["own.py:double", "--shape", "2,x"], "is not a shape"),
        (["own.py:doubel", "--shape", "2"], "did you mean double?"),
        (["own.py:lonely", "--shape", "2"], "no lonely_backward"),
        (["own.py:Needy", "--shape", "2"], "cannot be made without arguments"),
        (["own.py:Raising", "--shape", "2"], "ZeroDivisionError in line 16"),
        (["gone.py:double", "--shape", "2"], "there is no file gone.py"),
        (["wrong.py:double", "--shape", "2"], "wrong.py could not be run: SyntaxError"),
    ],
)
def test_what_gradcheck_refuses(capsys, folder, arguments, words):
    (folder / "own.py").write_text(OWN)
    (folder / "wrong.py").write_text("def (")
    assert words in refused(capsys, "gradcheck", *arguments)


def test_the_tour_in_little(capsys, folder):
    (folder / "little/run").mkdir(parents=True)
    (folder / "little/run/last.safetensors").write_text("of an earlier tour")
    assert main(["tour", "--steps", "3", "--out", "little"]) == 0
    printed = capsys.readouterr().out
    for words in ("1. Train", "2. Translate", "3. Check", "4. Look", "What next", "all right"):
        assert words in printed
    assert len(list((folder / "little").glob("*.png"))) >= 4


def test_no_traceback_from_a_process(folder):
    """As a person sees it: python -m npformer, a mistake, one line on standard error."""
    command = [sys.executable, "-m", "npformer", "translate", "hello", "--run", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("npformer: there is no run nowhere")
    assert done.stderr.count("\n") == 1
