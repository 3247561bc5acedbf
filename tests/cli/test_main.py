"""The command line as a person uses it: commands that work, and the messages of those that fail."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import npformer
from npformer import UserError
from npformer.cli import tour
from npformer.cli.main import COMMANDS, main

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
    """Run a command that must fail and return its error message, which is one sentence."""
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


def test_the_help_of_the_tour_names_the_number_of_steps(capsys):
    with pytest.raises(SystemExit):
        main(["tour", "--help"])
    assert "(default: 2800)" in " ".join(capsys.readouterr().out.split())


def test_an_unknown_command_has_status_2(capsys):
    assert "there is no command 'translat': did you mean translate?" in refused(capsys, "translat")


def test_translate_prints_a_line_for_each_sentence(capsys):
    assert main(["translate", "the cat sleeps", "the dog eats", "--model", "runs/tiny"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_translate_uses_the_latest_run(capsys):
    assert main(["translate", "the cat sleeps"]) == 0


def stdin(monkeypatch, data):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


def test_translate_reads_standard_input(capsys, monkeypatch):
    stdin(monkeypatch, b"the cat sleeps\r\nthe dog eats")
    assert main(["translate", "--model", "runs/tiny", "--beam", "1"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_an_empty_line_of_standard_input_stays_empty(capsys, monkeypatch):
    stdin(monkeypatch, b"the cat sleeps\n\nthe dog eats\n")
    assert main(["translate", "--model", "runs/tiny"]) == 0
    lines = capsys.readouterr().out.split("\n")
    assert len(lines) == 4
    assert lines[1] == ""
    stdin(monkeypatch, b"\n")
    assert main(["translate", "--model", "runs/tiny"]) == 0
    assert capsys.readouterr().out == "\n"


def test_an_empty_argument_is_refused(capsys):
    assert "line 2 is empty" in refused(capsys, "translate", "the cat", " ", "--model", "runs/tiny")


def test_an_empty_line_at_a_terminal_is_reported_and_the_next_is_translated(capsys, monkeypatch):
    """At a terminal, an empty line is reported as a mistake, and the next line is translated."""
    stdin(monkeypatch, b"\nthe cat sleeps\n")
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    assert main(["translate", "--model", "runs/tiny"]) == 0
    printed = capsys.readouterr()
    assert "line 1 is empty" in printed.err
    assert len(printed.out.splitlines()) == 1


def test_unknown_words_are_reported(capsys):
    assert main(["translate", "the zebra sleeps", "--model", "runs/tiny"]) == 0
    assert "line 1: the model does not know 'zebra'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"the \xff dog\n", "line 1, is not valid UTF-8"),
        (b"", "standard input is empty"),
        (b"cat " * 100, "line 1 has 101 tokens"),
    ],
)
def test_invalid_inputs_of_translate_are_refused(capsys, monkeypatch, data, words):
    stdin(monkeypatch, data)
    assert words in refused(capsys, "translate", "--model", "runs/tiny")


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
        assert run in refused(capsys, "translate", "hello", "--model", run)
        assert run in refused(capsys, "train", "--resume", run)


def test_a_run_that_does_not_exist(capsys):
    assert "there is no run nowhere" in refused(capsys, "translate", "hello", "--model", "nowhere")
    assert "nowhere" in refused(capsys, "train", "--resume", "nowhere")


@pytest.mark.parametrize("option", ["--pretrained", "--run=runs/tiny"])
def test_an_option_of_an_earlier_version_names_its_new_name(capsys, option):
    words = f"npformer translate has no argument {option}: it is now called --model"
    assert words in refused(capsys, "translate", "hello", option)


def test_a_run_is_not_overwritten(capsys):
    sentence = refused(capsys, "train", "train.en", "train.fr", "--run", "runs/tiny", *QUICK)
    assert "--resume" in sentence


def test_text_with_capitals_is_lowercased_with_a_word_about_it_or_stays_cased(capsys):
    Path("cased.en").write_text("The cat sleeps\nthe Dog eats\na cat eats\n" * 10, encoding="utf-8")
    every, about = ["--unfiltered"], "the text has capitals and is converted to lower case"
    for name, options in {"lowered": [], "cased": ["--cased"], "plain": []}.items():
        source = "train.en" if name == "plain" else "cased.en"
        assert main(["train", source, "train.fr", "--run", f"runs/{name}", *options, *every, *QUICK]) == 0
        assert (about in capsys.readouterr().out) == (name == "lowered")
    assert npformer.load("runs/cased").unknown_words("the Cat the cat") == ["Cat"]
    assert npformer.load("runs/lowered").unknown_words("the Cat the cat") == []


def test_the_number_of_parameters_is_printed_first(capsys):
    assert main(["train", "train.en", "train.fr", "--run", "runs/counted", *QUICK]) == 0
    count = npformer.load("runs/counted").model.count_parameters()
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == f"{count:,} parameters, 6 steps to go"
    assert not any("nan" in line for line in lines)


def test_a_finished_run_is_made_longer(capsys):
    assert main(["train", "train.en", "train.fr", "--run", "runs/longer", *QUICK]) == 0
    assert main(["train", "--resume", "runs/longer", "--steps", "9"]) == 0
    printed = capsys.readouterr().out
    assert "step      6  note: made longer, to 9 steps: the learning rate decays anew\n" in printed
    assert "finished after step 9" in printed


def test_resume_continues_the_training(capsys):
    steady = [*QUICK, "--set", "schedule=constant"]
    assert main(["train", "train.en", "train.fr", "--run", "runs/more", *steady]) == 0
    assert main(["train", "--resume", "runs/more", "--steps", "8"]) == 0
    log = Path("runs/more/log.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(log[-1])["step"] == 8


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
        (["train.en"], "1 file was given"),
        (["--set", "d_model=10", "--set", "n_heads=4"], "not divisible by n_heads 4"),
        (["--set", "d_modell=10"], "there is no setting d_modell: a model has"),
        (["--set", "d_model"], "write NAME=VALUE"),
        (["--set", "norm=before"], "choose one of post, pre"),
        (["--architecture", "paper-bas"], "did you mean paper-base?"),
        (["--preset", "smal"], "small"),
        (["--backend", "cupy"], "needs CuPy and a GPU that answers"),
        (["--steps", "0"], "--steps is '0'"),
        (["--workers", "0"], "--workers is '0': give a whole number, 1 or more"),
        (["--threads", "0"], "--threads is '0': give a whole number, 1 or more"),
        (["--recipe", "small"], "npformer train has no argument --recipe: it is now called --preset"),
        (
            ["--model", "paper-base"],
            "npformer train has no argument --model: it is now called --architecture",
        ),
        (
            ["--stepz=3"],
            "npformer train has no argument --stepz=3: did you mean --steps?",
        ),
        (["--resume", "runs/tiny", "--seed", "0"], "--seed has no effect with --resume"),
        (["--valid", "train.en", "train.fr"], "--valid has an effect only with two files"),
        (["--resume", "runs/tiny", "--cased"], "--cased has no effect with --resume"),
        (["--resume", "runs/tiny", "--steps", "5"], "has made 6 steps already"),
        (["--cased"], "--cased has an effect only with two files"),
        (["--preset", "multi30k-en-de", "--cased"], "--cased has an effect only with two files"),
    ],
)
def test_invalid_options_of_train_are_refused(capsys, folder, arguments, words):
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
    assert "all correct" in capsys.readouterr().out
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


def test_gradcheck_of_a_file_of_the_user(capsys, folder):
    (folder / "own.py").write_text(OWN)
    assert main(["gradcheck", "own.py:double", "--shape", "2,3"]) == 1
    assert "1.5 times the correct one" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nonsense"], "no component is called 'nonsense'"),
        (["own.py"], "names a file, and no layer or function in it"),
        (["own.py:double"], "give --shape"),
        (["own.py:double", "--shape", "2,x"], "--shape is '2,x': give the sizes of its axes"),
        (["own.py:doubel", "--shape", "2"], "did you mean double?"),
        (["own.py:lonely", "--shape", "2"], "no lonely_backward"),
        (["own.py:Needy", "--shape", "2"], "cannot be made without arguments"),
        (["own.py:Raising", "--shape", "2"], "ZeroDivisionError in line 16"),
        (["gone.py:double", "--shape", "2"], "there is no file gone.py"),
        (["wrong.py:double", "--shape", "2"], "wrong.py could not be run: SyntaxError"),
    ],
)
def test_invalid_targets_of_gradcheck_are_refused(capsys, folder, arguments, words):
    (folder / "own.py").write_text(OWN)
    (folder / "wrong.py").write_text("def (")
    assert words in refused(capsys, "gradcheck", *arguments)


@pytest.mark.slow
def test_a_short_tour(capsys, folder):
    (folder / "little/run").mkdir(parents=True)
    (folder / "little/run/last.safetensors").write_text("of an earlier tour")
    assert main(["tour", "--steps", "3", "--out", "little"]) == 0
    printed = capsys.readouterr().out
    for words in (
        "1. Train",
        "2. Translate",
        "3. Check",
        "4. Look",
        "5. Explore",
        "What next",
        "all correct",
    ):
        assert words in printed
    assert len(list((folder / "little").glob("*.png"))) >= 4
    assert "wrote little/explorer.html: open it in a browser" in printed
    assert "npformer explore --model little/run --open" in printed
    head = re.search(r'id="head">(.*?)</script>', (folder / "little/explorer.html").read_text("utf-8"))[1]
    assert json.loads(head)["kind"] == "live"
    assert json.loads(head)["example"]["source"] == tour.IT_SENTENCES[0]
    last = npformer.load(folder / "little/run", last=True)
    assert (folder / "little/explorer.html").read_text("utf-8") == last.explore(tour.IT_SENTENCES[0]).html


def test_the_tour_replaces_its_page_or_says_that_it_cannot(folder, monkeypatch):
    trained = SimpleNamespace(explore=lambda sentence: SimpleNamespace(html=f"page of {sentence}"))
    monkeypatch.setattr(
        tour, "load", lambda name, last: trained if (name, last) == (folder / "deep/tour/run", True) else None
    )
    for _ in range(2):
        path = tour.write_page(folder / "deep/tour")
        assert path.read_text("utf-8") == f"page of {tour.IT_SENTENCES[0]}"
    path.unlink()
    path.mkdir()
    with pytest.raises(UserError, match=r"explorer.html cannot be written \(.*\): give another --out"):
        tour.write_page(folder / "deep/tour")


def test_no_traceback_from_a_process(folder):
    """Run python -m npformer in a process of its own: a mistake prints one line on standard error."""
    command = [sys.executable, "-m", "npformer", "translate", "hello", "--model", "nowhere"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("npformer: there is no run nowhere")
    assert done.stderr.count("\n") == 1
