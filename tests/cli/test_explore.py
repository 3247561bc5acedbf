"""npformer explore as a person uses it."""

import json
import re
import shlex
import webbrowser
from pathlib import Path
from types import SimpleNamespace

import pytest
from commands import refused
from word_translator import word_checkpoint

import npformer
from npformer.cli import explore as command
from npformer.cli.main import main, make_parser
from npformer.storage.checkpoint import save_checkpoint

DOG = "the dog is tired"


@pytest.fixture(autouse=True)
def place(runs):
    """Work in a folder with a run of each kind, of which that with whole words is the newest."""
    Path("runs/words").mkdir()
    save_checkpoint(word_checkpoint(), "runs/words/last.safetensors")


def head_of(path):
    """Return the data of a page without its numbers."""
    return json.loads(re.search(r'id="head">(.*?)</script>', Path(path).read_text(encoding="utf-8"))[1])


def test_the_page_of_the_run_trained_last(capsys):
    assert main(["explore", DOG]) == 0
    size = Path("explorer.html").stat().st_size / 1e6
    said = capsys.readouterr()
    assert said.out == f"wrote explorer.html ({size:.1f} MB): open it in a browser\n"
    assert said.err == ""
    head = head_of("explorer.html")
    assert (head["kind"], head["example"]["source"]) == ("live", DOG)
    assert Path("explorer.html").read_text("utf-8") == npformer.load("runs/words").explore(DOG).html


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("bert", "the [MASK] sees", "computes an encoder-decoder Transformer or a GPT, and this is a bert"),
        ("translator", "a man", "reads whole words or characters, and the tokens of this model are subwords"),
    ],
)
def test_a_model_that_is_not_live_has_a_recorded_page(name, text, reason, capsys):
    assert main(["explore", text, "--model", f"runs/{name}"]) == 0
    recorded = "npformer: the page shows recorded arrays and computes nothing itself, because a live page"
    assert capsys.readouterr().err == f"{recorded} {reason}\n"
    assert head_of("explorer.html")["kind"] == "recorded"
    assert Path("explorer.html").read_text("utf-8") == npformer.load(f"runs/{name}").explore(text).html


def test_a_gpt_of_characters_has_a_live_page(capsys):
    assert main(["explore", "the cat", "--model", "runs/gpt"]) == 0
    assert capsys.readouterr().err == ""
    head = head_of("explorer.html")
    assert (head["kind"], head["architecture"], head["example"]["source"]) == ("live", "gpt", "the cat")


@pytest.mark.parametrize(("texts", "is_noted"), [(["the", "cat"], True), (["the cat", "the"], False)])
def test_words_without_quotation_marks_are_noted(texts, is_noted, capsys):
    assert main(["explore", *texts, "--model", "runs/gpt"]) == 0
    assert ("write a sentence in quotation marks" in capsys.readouterr().err) == is_noted


def test_without_a_sentence_the_page_has_an_example(capsys, monkeypatch):
    assert main(["explore"]) == 0
    assert head_of("explorer.html")["example"]["source"] == command.ANIMAL
    capsys.readouterr()
    no_example = "there is no example for this model: give a sentence that it can read"
    assert refused(capsys, "explore", "--model", "runs/gpt") == no_example
    monkeypatch.setattr(command, "ANIMAL", "a zebra")
    assert refused(capsys, "explore") == no_example


@pytest.mark.parametrize(("name", "kind"), [("words", "live"), ("bert", "recorded")])
def test_a_word_that_the_model_does_not_know_is_read_as_by_translate(name, kind, capsys):
    assert main(["explore", "the zebra", "--model", f"runs/{name}"]) == 0
    assert "npformer: the model does not know 'zebra' and reads <UNK> instead" in capsys.readouterr().err
    head = head_of("explorer.html")
    assert (head["kind"], head["example"]["source"]) == (kind, "the zebra")


def test_the_example_of_a_model_card():
    assert command.example_for(npformer.load("en-de")) == npformer.load("en-de").card.example != ""


@pytest.mark.parametrize("found", [True, False])
def test_open(found, capsys, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open_new_tab", lambda address: opened.append(address) or found)
    assert main(["explore", DOG, "--out", "my page.html", "--open"]) == 0
    assert opened == [Path("my page.html").resolve().as_uri()]
    said = capsys.readouterr().err
    assert said == ("" if found else "npformer: no browser was found: open my page.html in one\n")


def suggested(capsys):
    """Return the arguments of the command that the last note names, or None if no note names one."""
    *_, last = ["", *capsys.readouterr().err.splitlines()]
    found = re.fullmatch(r"npformer: to see how .* number by number: npformer (explore .*)", last)
    return shlex.split(found[1]) if found else None


@pytest.mark.parametrize(
    ("text", "options", "kind"),
    [
        (DOG, [], "encoder"),
        ("the animal didn't cross", ["--model", "runs/words", "--last"], "encoder"),
        ("the cat ate", ["--model", "runs/gpt"], "self"),
        ("the [MASK] sees", ["--model", "runs/bert"], "self"),
    ],
)
@pytest.mark.usefixtures("figures")
def test_attention_names_the_command_that_opens_its_page(text, options, kind, capsys, monkeypatch):
    monkeypatch.setattr(webbrowser, "open_new_tab", lambda address: True)
    assert main(["attention", "--kind", kind, text, *options]) == 0
    named = suggested(capsys)
    assert named == ["explore", *(options or ["--model", "runs/words"]), "--open", text]
    assert main(named) == 0
    assert head_of("explorer.html")["example"]["source"] == text


def test_the_command_for_a_text_that_looks_like_an_option():
    tokenizer = SimpleNamespace(encode=lambda text: SimpleNamespace(ids=[1, 2]))
    model = SimpleNamespace(name="-m", tokenizer=tokenizer, unknown_words=lambda text: [])
    words = shlex.split(command.explore_command(model, "-5 degrees"))
    assert words == ["npformer", "explore", "--model", "./-m", "--open", "--", "-5 degrees"]
    assert make_parser("explore").parse(words[2:]).sentence == ["-5 degrees"]
