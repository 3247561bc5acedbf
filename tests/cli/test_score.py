"""npformer score and npformer pretrained as a person uses them, with an untrained translator."""

import dataclasses
import json
import shutil
from datetime import date
from pathlib import Path

import pytest
from commands import refused, said
from toy_pretrained import FIELDS, SENTENCE, toy_card, toy_checkpoint, toy_codec

from npformer.cli.main import main
from npformer.data.casing import Casing
from npformer.generation.bleu_statistics import bleu_half_width, sentence_counts
from npformer.pretrained import Card, read_pretrained, save_pretrained, store, weights_fingerprint
from npformer.storage.checkpoint import save_checkpoint

SOURCES = ["A man is riding a bicycle.", "a man .", "Two dogs!"]
REFERENCES = ["ein mann fährt fahrrad .", "ein mann .", "zwei hunde !"]
RAW = ["Ein Mann fährt Fahrrad.", "Ein Mann.", "Zwei Hunde!"]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """Return a folder with a test set in two forms, a run and a pretrained toy translator."""
    monkeypatch.chdir(tmp_path)
    for name, lines in {"test.en": SOURCES, "test.de": REFERENCES, "raw.de": RAW}.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    Path("runs/toy").mkdir(parents=True)
    for name in ("last", "best"):
        save_checkpoint(toy_checkpoint(seed=int(name == "last")), f"runs/toy/{name}.safetensors")
    Path("shelf").mkdir()
    monkeypatch.setattr(store, "FOLDER", tmp_path / "shelf")
    target = dataclasses.replace(toy_codec("de"), casing=Casing.from_lines(RAW))
    shown = toy_card(beam=3, length_penalty=0.8)
    save_pretrained(toy_checkpoint(target=target), "shelf/en-de.safetensors", shown)
    Path("card.json").write_text(json.dumps(FIELDS), encoding="utf-8")
    return tmp_path


EXPORT = "pretrained --export runs/toy --out out.safetensors --card card.json"


def lines_of(name):
    return Path(name).read_text(encoding="utf-8").splitlines()


def scored(capsys, line):
    """Return the numbers of npformer score."""
    return json.loads(said(capsys, f"score {line} --json"))


def test_the_score_of_a_pretrained_translator(capsys):
    found = scored(capsys, "test.en test.de --model en-de")
    assert 0 <= found["bleu"] < 5
    assert "tok:none" in found["signature"]
    assert (found["setting"], found["sentences"]) == ("tokenised", 3)
    assert (found["beam"], found["length_penalty"]) == (3, 0.8)  # the settings on the model card
    assert (found["source"], found["reference"]) == ("test.en", "test.de")
    assert found["seconds"] > 0
    assert found["empty"] + found["brevity_penalty"] >= 0
    assert len(found["weights"]) == 12


def test_the_interval_and_the_lengths_of_a_score(capsys):
    """Twenty copies of two sentences give an interval that depends on the seed."""
    Path("many.en").write_text("a man is\na man on a red bike of his son here now\n" * 20)
    Path("many.de").write_text("ein\nein mann ist rot\n" * 20)
    score = "many.en many.de --model en-de --text tokenised"
    found = scored(capsys, score)
    assert (found["samples"], found["seed"]) == (1000, 12345)
    lengths = [(each["least"], each["most"], each["sentences"]) for each in found["by_length"]]
    assert lengths == [(1, 9, 20), (10, 14, 20)]
    printed = said(capsys, f"score {score} --out found.de")
    counts = sentence_counts(lines_of("found.de"), lines_of("many.de"), "none")
    assert found["half_width"] == bleu_half_width(counts)
    other = scored(capsys, f"{score} --seed 3")
    assert other["half_width"] == bleu_half_width(counts, seed=3)
    assert other["seed"] == 3
    assert printed.startswith(f"BLEU {found['bleu']:.2f} ± {found['half_width']:.2f}  nrefs:1|")
    first, second = (f"{each['bleu']:.2f} ± {each['half_width']:.2f}" for each in found["by_length"])
    lines = printed.splitlines()[-3:]
    assert lines[0] == "by the length of the source:"
    assert lines[1].split() == f"1-9 words BLEU {first} 20 sentences".split()
    assert lines[2].split() == f"10-14 words BLEU {second} 20 sentences".split()


def test_the_score_as_text(capsys):
    score = "score test.en raw.de --model runs/toy"
    printed = said(capsys, f"{score} --beam 2")
    assert printed.startswith("BLEU ")
    assert "tok:13a" in printed
    assert "counted on text as people write it (detected from the references; --text overrides it)" in printed
    assert "3 sentences in " in printed
    assert "beam 2, length penalty 0.6; " in printed
    assert "detected from the references" not in said(capsys, f"{score} --text raw")


CAPITALS = "the references have capitals and the translations are in lower case, so BLEU counts"
NO_CAPITALS = "the translations have capitals and the references are in lower case, so BLEU counts"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("raw.de --text raw --model runs/toy", CAPITALS),
        ("raw.de --text tokenised --model runs/toy", CAPITALS),
        ("test.de --text raw --model runs/toy", ""),
        ("test.de --text tokenised --model runs/toy", ""),
        ("raw.de --text raw --model en-de", ""),
        ("test.de --text raw --model en-de", NO_CAPITALS),
    ],
)
def test_text_of_another_case_is_reported(capsys, line, words):
    """The run translates to lower case; the pretrained translator restores capitals in raw text."""
    assert main(["score", "test.en", *line.split()]) == 0
    told = capsys.readouterr().err
    assert told.startswith(f"npformer: {words}") if words else told == ""
    assert told.count("\n") == bool(words)


def test_text_out_and_limit(capsys):
    score, forms = "test.en test.de --model en-de --out found.de", {}
    for text in ("tokenised", "raw"):
        found = scored(capsys, f"{score} --text {text}")
        assert found["setting"] == text
        assert "translations" not in found
        forms[text] = Path("found.de").read_text(encoding="utf-8").split("\n")
        assert len(forms[text]) == 4  # a line break after each of three
    translator = read_pretrained("en-de")
    assert forms["raw"] == [translator.target.detokenize(line) for line in forms["tokenised"]]
    assert scored(capsys, f"{score} --limit 2 --text tokenised")["sentences"] == 2
    assert lines_of("found.de") == forms["tokenised"][:2]


def test_score_translates_exactly_what_translate_translates(capsys):
    said(capsys, "score test.en raw.de --model en-de --out found.de")
    printed = said(capsys, "translate --model en-de", *SOURCES)
    assert printed == Path("found.de").read_text(encoding="utf-8")
    assert printed != printed.lower()  # capitals are restored in both


def test_a_run_is_chosen_by_folder_or_by_file(capsys):
    """Without --model, it is the run trained last; where there is none, the translator that ships."""
    best = said(capsys, "translate", SENTENCE)
    assert said(capsys, "translate --model runs/toy/best.safetensors", SENTENCE) == best
    last = said(capsys, "translate --model runs/toy --last", SENTENCE)
    assert said(capsys, "translate --model runs/toy/last.safetensors", SENTENCE) == last
    assert last != best
    shutil.rmtree("runs")
    assert main(["translate", SENTENCE]) == 0
    out, err = capsys.readouterr()
    there_is_none = "npformer: there is no run below runs/ or tour/"
    assert err == f"{there_is_none}, so this is en-de, a translator that ships\n"
    assert out == said(capsys, "translate --model en-de", SENTENCE)


def test_the_list_and_a_card(capsys):
    printed = said(capsys, "pretrained")
    for words in ("en-de", "English to German", *(str(FIELDS[name]) for name in ("data", "licence", "date"))):
        assert words in printed
    assert said(capsys, "pretrained en-de") == printed
    (found,) = json.loads(said(capsys, "pretrained --json"))
    count = read_pretrained("en-de").model.count_parameters()
    assert (found["name"], found["hours"], found["parameters"]) == ("en-de", FIELDS["hours"], count)
    assert f"parameters  {count:,}\n" in printed
    assert said(capsys, "pretrained en-de --markdown") == read_pretrained("en-de").card.section("en-de")
    Path("shelf/en-de.safetensors").unlink()
    assert said(capsys, "pretrained").startswith("No translator ships with this copy")
    assert json.loads(said(capsys, "pretrained --json")) == []


def test_a_run_is_exported_scored_and_exported_with_its_score(capsys):
    assert "wrote out.safetensors" in said(capsys, EXPORT)
    assert read_pretrained("out.safetensors").card.scores == ()
    for reference in ("test.de", "raw.de"):
        score = said(capsys, f"score --model out.safetensors test.en {reference} --json")
        Path(f"{reference}.json").write_text(score, encoding="utf-8")
    assert "2 scores" in said(capsys, f"{EXPORT} --scores test.de.json raw.de.json")
    scores = read_pretrained("out.safetensors").card.scores
    settings = [(each.reference, each.setting) for each in scores]
    assert settings == [("test.de", "tokenised"), ("raw.de", "raw")]
    assert "raw.de" in said(capsys, "pretrained out.safetensors")
    error = refused(capsys, f"{EXPORT} --last --scores test.de.json")
    assert "was measured with other weights" in error


def test_an_exported_file_gets_scores_and_capitals_without_its_run(capsys):
    export = "pretrained --export en-de"
    for options in ("", "--out new.safetensors", "--card card.json"):
        error = refused(capsys, f"{export} {options}")
        assert "en-de is already an exported file: give --out FILE" in error
    measured = said(capsys, "score --model en-de test.en test.de --known-words test.de --json")
    Path("test.json").write_text(measured, encoding="utf-8")
    assert "1 score" in said(capsys, f"{export} --out new.safetensors --scores test.json")
    old, new = read_pretrained("en-de"), read_pretrained("new.safetensors")
    assert dataclasses.replace(new.card, scores=()) == old.card
    assert (new.source, new.target) == (old.source, old.target)
    assert weights_fingerprint(new.model.state_dict()) == weights_fingerprint(old.model.state_dict())
    printed = said(capsys, "pretrained new.safetensors")
    (score,) = new.card.scores
    assert f"BLEU        {score.score} on test.de, beam 3, {score.invented_words} invented words: " in printed
    assert f"1-9 words {score.by_length[0].bleu:.2f}\n" in printed
    assert "  npformer score --model new test.en test.de --known-words test.de\n" in printed
    # the scores stay if there are no new ones
    Path("capitals.de").write_text("Ein Abc, ein Xyz.\n", encoding="utf-8")
    again = "pretrained --export new.safetensors --out again.safetensors"
    said(capsys, f"{again} --casing capitals.de")
    assert read_pretrained("again.safetensors").card == new.card
    assert read_pretrained("again.safetensors").target.detokenize("das xyz .") == "Das Xyz."
    # another card has no scores but those that are given with it
    limit = {"what": "questions", "source": "Why?", "translation": "Ein."}
    Path("card.json").write_text(json.dumps(FIELDS | {"limits": [limit]}), encoding="utf-8")
    said(capsys, f"{again} --card card.json")
    assert read_pretrained("again.safetensors").card.scores == ()
    assert "cannot      questions: Why? → Ein.\n" in said(capsys, "pretrained again.safetensors")
    other = json.loads(measured) | {"weights": "0" * 12}
    Path("test.json").write_text(json.dumps(other), encoding="utf-8")
    assert "was measured with other weights" in refused(capsys, f"{again} --scores test.json")
    assert ".safetensors" in refused(capsys, f"{export} --out new.bin --casing capitals.de")


def test_the_template_of_a_card_is_written_filled_in_and_exported(capsys):
    export, card, days = "pretrained --export runs/toy", Path("runs/toy/card.json"), [str(date.today())]
    assert f"wrote {card}: replace what begins with TO WRITE:" in said(capsys, export)
    days.append(str(date.today()))  # midnight may have passed
    content = json.loads(card.read_text(encoding="utf-8"))
    fields = [field.name for field in dataclasses.fields(Card) if field.name != "scores"]
    assert list(content) == fields
    assert content["title"] == "English to German"
    assert content["date"] in days
    total = sum(value.size for value in toy_checkpoint().parameters.values())
    assert content["training"].startswith(f"transformer with {total:,} parameters, n_layers 2, d_model 16")
    assert "7 steps, batch_size 2, optimizer adam, schedule warmup, " in content["training"]
    to_write = {name for name, value in content.items() if "TO WRITE:" in str(value)}
    assert to_write == {"data", "licence", "command", "hours", "machine", "example", "comparison"}

    kept = card.read_bytes()
    assert "exists and is left as it is: give --out FILE" in refused(capsys, export)
    error = refused(capsys, f"{export} --out out.safetensors")
    assert "has TO WRITE: in data, licence, command, hours, machine, example, comparison" in error
    assert card.read_bytes() == kept

    card.write_text(json.dumps(content | {name: FIELDS[name] for name in to_write}), encoding="utf-8")
    assert "wrote out.safetensors" in said(capsys, f"{export} --out out.safetensors")
    assert read_pretrained("out.safetensors").card.licence == FIELDS["licence"]
