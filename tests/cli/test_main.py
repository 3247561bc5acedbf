"""The command line as a person uses it: help, translations, training and its continuation, and the tour."""

import json
import re
from functools import partial

import pytest
from commands import said

import npformer
from npformer.checking.cases import all_cases
from npformer.cli import own_command, tour
from npformer.cli.main import COMMANDS, load_command, main
from npformer.data.corpus import builtin_corpus
from npformer.learn.course import trained

TRAIN = (
    "train train.en train.fr --steps 6 --set d_model=16 --set d_ff=16 --set n_heads=2 --set n_layers=1 "
    "--set validate_every=3 --set checkpoint_every=2"
)


@pytest.fixture(autouse=True)
def folder(tmp_path, figures):
    """Work in a folder with two small files. Curves and the pictures of the tour are not written."""
    (tmp_path / "train.en").write_text("the cat sleeps\nthe dog eats\na cat eats\n" * 10)
    (tmp_path / "train.fr").write_text("le chat dort\nle chien mange\nun chat mange\n" * 10)
    return tmp_path


def help_of(capsys, *arguments):
    with pytest.raises(SystemExit) as stopped:
        main([*arguments, "--help"])
    assert stopped.value.code == 0
    return capsys.readouterr().out


def test_help_names_every_command(capsys):
    printed = said(capsys, "")
    assert all(command in printed for command in COMMANDS)
    assert "The course begins with npformer lesson 0." in printed
    for command in COMMANDS:
        assert "usage: npformer " + command in help_of(capsys, command)
    assert "(default: 2800)" in " ".join(help_of(capsys, "tour").split())


def test_a_help_fits_80_columns_and_its_examples_can_be_copied(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in COMMANDS:
        page = help_of(capsys, command)
        assert [line for line in page.splitlines() if len(line) > 80 or re.search(r"\w-$", line)] == []
        epilog, joined = getattr(load_command(command), "EPILOG", ""), page.replace(" \\\n", " ")
        assert " ".join(epilog.split()) in " ".join(joined.split())
        commands = {line.strip() for line in epilog.splitlines() if re.match(r" +npformer .*\"$", line)}
        assert commands <= {" ".join(line.split()) for line in joined.splitlines()}


def test_text_with_capitals_is_lowercased_with_a_word_about_it_or_stays_cased(capsys, folder):
    plain = (folder / "train.en").read_text()
    (folder / "cased.en").write_text(plain.replace("the cat", "The cat").replace("dog", "Dog"))
    cased = TRAIN.replace("train.en", "cased.en") + " --unfiltered"
    about = "the text has capitals and is converted to lower case"
    assert about not in said(capsys, TRAIN, "--run", "runs/plain")
    assert about in said(capsys, cased, "--run", "runs/lowered")
    assert about not in said(capsys, cased, "--cased", "--run", "runs/cased")
    assert npformer.load("runs/cased").unknown_words("the Cat a cat") == ["Cat"]
    assert npformer.load("runs/lowered").unknown_words("the Cat a cat") == []


@pytest.fixture
def short_tour(folder, figures, monkeypatch, some_pairs):
    """Let the tour check few gradients and translate few sentences. All else is as in the long one."""
    cases, corpus = all_cases()[:4], builtin_corpus()
    corpus = corpus._replace(train=corpus.train[:3000], test=corpus.test[::60])
    monkeypatch.setattr(tour, "all_cases", lambda: cases)
    monkeypatch.setattr(tour, "builtin_corpus", lambda: corpus)
    monkeypatch.setattr(trained, "builtin_dataset", lambda: some_pairs)
    return figures


def test_a_short_tour(capsys, folder, short_tour):
    printed = said(capsys, "tour --steps 3 --out little")
    headings = ("1. Train", "2. Translate", "3. Check", "4. Look", "5. Explore", "What next")
    exact = r"Of \d+ unseen sentences, \d+ \(\d+\.\d%\) are exactly right\."
    for words in (*headings, "all correct", "wrote little/explorer.html", "finished after step 3"):
        assert words in printed
    assert len(re.findall(exact, printed)) == 2  # where they are translated, and at the end
    assert "new frames" not in printed
    assert len(short_tour) >= 4
    steps = [line.split(maxsplit=1)[1] for line in printed.splitlines() if re.match(r"  \S*npformer ", line)]
    assert steps[:2] == ['translate --model little/run "the dog is tired"', "lesson 0"]
    assert len(steps) == 3
    for step in steps:
        assert said(capsys, step)
    page = (folder / "little/explorer.html").read_text("utf-8")
    head = json.loads(re.search(r'id="head">(.*?)</script>', page)[1])
    assert (head["kind"], head["example"]["source"]) == ("live", tour.IT_SENTENCES[0])
    assert page == npformer.load(folder / "little/run", last=True).explore(tour.IT_SENTENCES[0]).html
    # a second tour uses the translator of the first
    before = (folder / "little/run/last.safetensors").read_bytes()
    printed = said(capsys, "tour --steps 3 --out little --verbose")
    assert "an earlier tour has trained this translator: little/run/last.safetensors" in printed
    assert "new frames" in printed
    wanted = "little/run holds another run, which the tour does not replace: give another --out"
    assert main(["tour", "--steps", "4", "--out", "little"]) == 2
    assert wanted in capsys.readouterr().err
    assert (folder / "little/run/last.safetensors").read_bytes() == before
    (folder / "little/run/last.safetensors").unlink()
    assert main(["tour", "--steps", "3", "--out", "little"]) == 2  # the best checkpoint is still there
    assert wanted in capsys.readouterr().err


@pytest.mark.parametrize("first", [None, 4])
def test_a_tour_that_was_stopped_goes_on(capsys, folder, short_tour, monkeypatch, first):
    """The first training is stopped before its first checkpoint, or after some steps."""
    for name in ("draw_pictures", "show_evaluation", "show_translations"):
        monkeypatch.setattr(tour, name, lambda *arguments, **settings: [])
    run = folder / "little/run"
    if first is None:
        run.mkdir(parents=True)
        (run / "log.jsonl").write_text('{"step": 0}\n')
    else:
        with monkeypatch.context() as patch:
            steps = iter(range(first))
            stopping = partial(tour.train, stop=lambda: next(steps, None) is None)
            patch.setattr(tour, "train", stopping)
            main(["tour", "--steps", "8", "--out", "little"])
        assert "stopped after step 5: the same command goes on from there" in capsys.readouterr().out
    assert "finished after step 8" in said(capsys, "tour --steps 8 --out little")


@pytest.mark.parametrize(
    ("found", "command"),
    [("here", "npformer"), (None, ".venv/bin/npformer"), ("other", ".venv/bin/npformer")],
)
def test_the_next_steps_begin_with_a_command_that_the_shell_finds(folder, monkeypatch, found, command):
    for place in (".venv/bin", "other"):
        (folder / place).mkdir(parents=True)
        (folder / place / "npformer").touch()
    places = {"here": folder / ".venv/bin/npformer", "other": folder / "other/npformer", None: None}
    monkeypatch.setattr(own_command.sys, "executable", str(folder / ".venv/bin/python"))
    monkeypatch.setattr(own_command.shutil, "which", lambda name: places[found] and str(places[found]))
    assert own_command.own_command() == command
    text = "To go on, run npformer exercise check; npformer compares numbers"
    assert own_command.as_typed(text) == f"To go on, run {command} exercise check; npformer compares numbers"
