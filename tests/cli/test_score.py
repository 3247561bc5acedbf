"""npformer score and npformer pretrained as a person uses them, with an untrained translator."""

import dataclasses
import json
from datetime import date
from pathlib import Path

import pytest
from toy_pretrained import FIELDS, SENTENCE, toy_card, toy_checkpoint, toy_codec

from npformer.cli.main import main
from npformer.data.casing import Casing
from npformer.generation.bleu_statistics import bleu_half_width, sentence_counts
from npformer.generation.invented_words import find_invented_words, words_of
from npformer.pretrained import (
    Card,
    attention,
    read_pretrained,
    save_pretrained,
    store,
    weights_fingerprint,
)
from npformer.pretrained.template import card_template
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


def said(capsys, *arguments):
    assert main(list(arguments)) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments):
    """Run a command that must fail and return its error message, which is one sentence."""
    status = main(list(arguments))
    printed = capsys.readouterr()
    assert status == 2, printed
    assert printed.out == ""
    assert printed.err.startswith("npformer: ")
    assert printed.err.count("\n") == 1
    return printed.err


def test_the_score_of_a_pretrained_translator(capsys):
    found = json.loads(said(capsys, "score", "test.en", "test.de", "--model", "en-de", "--json"))
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
    score = ["score", "many.en", "many.de", "--model", "en-de", "--text", "tokenised"]
    found = json.loads(said(capsys, *score, "--json"))
    assert (found["samples"], found["seed"]) == (1000, 12345)
    assert [(each["least"], each["most"], each["sentences"]) for each in found["by_length"]] == [
        (1, 9, 20),
        (10, 14, 20),
    ]
    translations = Path("found.de")
    printed = said(capsys, *score, "--out", str(translations))
    counts = sentence_counts(
        translations.read_text(encoding="utf-8").splitlines(),
        Path("many.de").read_text().splitlines(),
        "none",
    )
    assert found["half_width"] == bleu_half_width(counts)
    other = json.loads(said(capsys, *score, "--json", "--seed", "3"))
    assert other["half_width"] == bleu_half_width(counts, seed=3)
    assert other["seed"] == 3
    assert printed.startswith(f"BLEU {found['bleu']:.2f} ± {found['half_width']:.2f}  nrefs:1|")
    first, second = (f"{each['bleu']:.2f} ± {each['half_width']:.2f}" for each in found["by_length"])
    lines = printed.splitlines()[-3:]
    assert lines[0] == "by the length of the source:"
    assert lines[1].split() == f"1-9 words BLEU {first} 20 sentences".split()
    assert lines[2].split() == f"10-14 words BLEU {second} 20 sentences".split()


def test_invented_words_are_counted_if_the_known_ones_are_given(capsys):
    score = ["score", "test.en", "test.de", "--model", "en-de", "--text", "tokenised"]
    plain = json.loads(said(capsys, *score, "--json"))
    assert not {"invented", "invented_words", "words", "known_words"} & set(plain)
    assert "invented" not in said(capsys, *score)
    words = [word for line in REFERENCES for word in words_of(line)]
    Path("known.de").write_text("\n".join(words))
    found = json.loads(said(capsys, *score, "--known-words", "known.de", "--out", "found.de", "--json"))
    lines = Path("found.de").read_text(encoding="utf-8").splitlines()
    expected = find_invented_words(lines, SOURCES, REFERENCES, frozenset(words))
    assert found["known_words"] == "known.de"
    assert found["words"] == expected.words
    assert found["invented"] == len(expected.invented) > 0
    assert found["invented_in_reference"] == expected.in_reference == 0
    assert found["invented_words"] == sorted(set(expected.invented))
    *_, last, shown = said(capsys, *score, "--known-words", "known.de").splitlines()
    share = 100 * len(expected.invented) / expected.words
    counts = f"{len(expected.invented)} of {expected.words}, of which 0 are also in the reference"
    assert last == f"{share:.2f} % of the words are invented: {counts}"
    assert shown.startswith(f"  {expected.invented[0]}")
    Path("all.de").write_text("\n".join(lines))
    said_all = said(capsys, *score, "--known-words", "all.de")
    assert said_all.splitlines()[-1].startswith("0.00 % of the words are invented: 0 of ")


def test_the_score_as_text(capsys):
    printed = said(capsys, "score", "test.en", "raw.de", "--model", "runs/toy", "--beam", "2")
    assert printed.startswith("BLEU ")
    assert "tok:13a" in printed
    assert "counted on text as people write it (detected from the references; --text overrides it)" in printed
    assert "3 sentences in " in printed
    assert "beam 2, length penalty 0.6; " in printed
    assert "detected from the references" not in said(
        capsys, "score", "test.en", "raw.de", "--model", "runs/toy", "--text", "raw"
    )


@pytest.mark.parametrize(
    ("text", "lines", "words"),
    [
        ("raw", "raw.de", "the references have capitals and the translations are in lower case"),
        ("raw", "test.de", None),
        ("tokenised", "test.de", None),
        ("tokenised", "raw.de", "the references have capitals and the translations are in lower case"),
    ],
)
def test_text_of_another_case_is_reported(capsys, text, lines, words):
    """The run translates to lower case; the pretrained translator restores capitals in raw text."""
    score = ["score", "test.en", lines, "--text", text, "--model"]
    assert main([*score, "runs/toy"]) == 0
    told = capsys.readouterr().err
    assert told == ("" if words is None else told)
    assert told.count("\n") == (words is not None)
    assert words is None or told.startswith(f"npformer: {words}, so BLEU counts")
    if text == "raw":
        assert main([*score, "en-de", "--json"]) == 0
        told = capsys.readouterr().err
        cased = "the translations have capitals and the references are in lower case"
        assert (cased in told) == (lines == "test.de")


def test_text_out_and_limit(capsys):
    arguments = ["score", "test.en", "test.de", "--model", "en-de", "--out", "found.de", "--json"]
    forms = {}
    for text in ("tokenised", "raw"):
        found = json.loads(said(capsys, *arguments, "--text", text))
        assert found["setting"] == text
        assert "translations" not in found
        forms[text] = Path("found.de").read_text(encoding="utf-8").split("\n")
        assert len(forms[text]) == 4  # a line break after each of three
    translator = read_pretrained("en-de")
    assert forms["raw"] == [translator.target.detokenize(line) for line in forms["tokenised"]]
    shorter = json.loads(said(capsys, *arguments, "--limit", "2", "--text", "tokenised"))
    assert shorter["sentences"] == 2
    assert Path("found.de").read_text(encoding="utf-8").splitlines() == forms["tokenised"][:2]


def test_score_translates_exactly_what_translate_translates(capsys):
    said(capsys, "score", "test.en", "raw.de", "--model", "en-de", "--out", "found.de")
    printed = said(capsys, "translate", "--model", "en-de", *SOURCES)
    assert printed == Path("found.de").read_text(encoding="utf-8")
    assert printed != printed.lower()  # capitals are restored in both


def test_empty_lines_have_empty_translations(capsys):
    Path("gap.en").write_text("A man.\n\nTwo dogs!\n")
    found = json.loads(said(capsys, "score", "gap.en", "test.de", "--model", "runs/toy", "--json"))
    assert found["empty"] >= 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["test.en", "short.de"], "test.en has 3 lines but short.de has 2"),
        (["test.en", "empty.de"], "empty.de is empty"),
        (["test.en", "gone.de"], "there is no file gone.de"),
        (["test.en", "latin.de"], "latin.de is not UTF-8 text at line 1"),
        (["test.en", "test.de", "--limit", "0"], "--limit is '0'"),
        (["test.en", "test.de", "--seed", "-1"], "--seed is '-1'"),
        (["test.en", "test.de", "--known-words", "gone.de"], "there is no file gone.de"),
        (
            ["test.en", "test.de", "--beam", "1", "--length-penalty", "0.6"],
            "--length-penalty has no effect with a beam of 1",
        ),
        (["test.en", "test.de", "--beam", "0"], "--beam is '0'"),
        (["test.en", "test.de", "--out", "no/found.de"], "there is no folder no"),
        (["test.en", "test.de", "--out", "shelf"], "shelf cannot be written (it is a folder)"),
        (["long.en", "test.de"], "line 2 has"),
        (["test.en", "test.de", "--model", "nowhere"], "there is no run nowhere"),
        (["test.en", "test.de", "--model", "en-ed"], "did you mean en-de?"),
        (["test.en", "test.de", "--model", "en-de", "--last"], "en-de is not the folder of a run"),
    ],
)
def test_invalid_options_of_score_are_refused(capsys, arguments, words):
    Path("short.de").write_text("ein mann .\nzwei .\n")
    Path("empty.de").write_text("")
    Path("latin.de").write_bytes("fährt\n".encode("latin-1") * 3)
    Path("long.en").write_text("a\n" + "b " * 200 + "\nc\n")
    assert words in refused(capsys, "score", *arguments)


def test_score_without_sacrebleu(capsys, monkeypatch):
    from npformer import UserError
    from npformer.cli import score

    def missing():
        raise UserError("BLEU needs sacrebleu, which is not installed: pip install sacrebleu")

    monkeypatch.setattr(score, "require_sacrebleu", missing)
    assert "pip install sacrebleu" in refused(capsys, "score", "test.en", "test.de", "--model", "runs/toy")


def test_translate_with_a_pretrained_model(capsys, monkeypatch):
    printed = said(capsys, "translate", "--model", "en-de", SENTENCE)
    assert len(printed.splitlines()) == 1
    assert said(capsys, "translate", "--model", "en-de", SENTENCE.upper()) == printed
    assert said(capsys, "translate", "--model", "en-de", "a man is riding a bicycle .") == printed
    monkeypatch.setattr(store, "FOLDER", Path("nowhere"))
    assert "no translator ships with this copy of npformer" in refused(
        capsys, "translate", "--model", "en-de", SENTENCE
    )


def test_a_run_is_chosen_by_folder_or_by_file(capsys):
    best = said(capsys, "translate", SENTENCE)
    assert said(capsys, "translate", "--model", "runs/toy/best.safetensors", SENTENCE) == best
    last = said(capsys, "translate", "--model", "runs/toy", "--last", SENTENCE)
    assert said(capsys, "translate", "--model", "runs/toy/last.safetensors", SENTENCE) == last
    assert last != best


def test_without_a_run_the_pretrained_models_are_named(capsys, monkeypatch):
    monkeypatch.chdir("shelf")
    assert "give --model RUN or --model en-de" in refused(capsys, "translate", SENTENCE)


def test_attention_of_a_pretrained_model(capsys, monkeypatch):
    asked, real = [], attention.translate_ids

    def translate(model, sources, **settings):
        asked.append(settings)
        return real(model, sources, **settings)

    monkeypatch.setattr(attention, "translate_ids", translate)
    printed = said(capsys, "attention", "--model", "en-de", "--kind", "cross", SENTENCE)
    translation = printed.splitlines()[0].removeprefix(f"{SENTENCE} → ")
    assert translation != printed.splitlines()[0]
    assert translation != translation.lower()
    assert Path("attention/cross_lines.png").stat().st_size > 5000
    assert asked[0] | {"beam": 3, "length_penalty": 0.8} == asked[0]  # with the settings of translate


def test_subwords_are_labelled_as_words_in_pictures(capsys):
    arguments = ["attention", "--model", "en-de", "--kind", "encoder", SENTENCE, "--word"]
    assert "wrote attention/encoder_lines.png" in said(capsys, *arguments, "·ing")
    assert "'▁man' is not a query here" in refused(capsys, *arguments, "▁man")


def test_the_list_and_a_card(capsys):
    printed = said(capsys, "pretrained")
    for words in ("en-de", "English to German", *(str(FIELDS[name]) for name in ("data", "licence", "date"))):
        assert words in printed
    assert said(capsys, "pretrained", "en-de") == printed
    (found,) = json.loads(said(capsys, "pretrained", "--json"))
    assert found["name"] == "en-de"
    assert found["hours"] == FIELDS["hours"]
    count = read_pretrained("en-de").model.count_parameters()
    assert found["parameters"] == count
    assert f"parameters  {count:,}\n" in printed
    assert said(capsys, "pretrained", "en-de", "--markdown") == read_pretrained("en-de").card.section("en-de")
    Path("shelf/en-de.safetensors").unlink()
    assert said(capsys, "pretrained").startswith("No translator ships with this copy")
    assert json.loads(said(capsys, "pretrained", "--json")) == []


def test_a_run_is_exported_scored_and_exported_with_its_score(capsys):
    export = ["pretrained", "--export", "runs/toy", "--out", "out.safetensors", "--card", "card.json"]
    assert "wrote out.safetensors" in said(capsys, *export)
    assert read_pretrained("out.safetensors").card.scores == ()
    score = ["score", "--model", "out.safetensors", "test.en", "--json"]
    for reference in ("test.de", "raw.de"):
        Path(f"{reference}.json").write_text(said(capsys, *score, reference), encoding="utf-8")
    assert "2 scores" in said(capsys, *export, "--scores", "test.de.json", "raw.de.json")
    scores = read_pretrained("out.safetensors").card.scores
    assert [(each.reference, each.setting) for each in scores] == [
        ("test.de", "tokenised"),
        ("raw.de", "raw"),
    ]
    assert "raw.de" in said(capsys, "pretrained", "out.safetensors")
    other = [*export, "--last", "--scores", "test.de.json"]
    assert "was measured with other weights" in refused(capsys, *other)


def test_an_exported_file_gets_scores_and_capitals_without_its_run(capsys, monkeypatch):
    export = ["pretrained", "--export", "en-de"]
    for arguments in ([], ["--out", "new.safetensors"], ["--card", "card.json"]):
        assert "en-de is an exported file already: give --out FILE" in refused(capsys, *export, *arguments)
    measured = said(
        capsys, "score", "--model", "en-de", "test.en", "test.de", "--known-words", "test.de", "--json"
    )
    Path("test.json").write_text(measured, encoding="utf-8")
    out = ["--out", "new.safetensors"]
    assert "1 scores" in said(capsys, *export, *out, "--scores", "test.json")
    old, new = read_pretrained("en-de"), read_pretrained("new.safetensors")
    assert dataclasses.replace(new.card, scores=()) == old.card
    assert (new.source, new.target) == (old.source, old.target)
    assert weights_fingerprint(new.model.state_dict()) == weights_fingerprint(old.model.state_dict())
    printed = said(capsys, "pretrained", "new.safetensors")
    (score,) = new.card.scores
    assert f"BLEU        {score.score} on test.de, beam 3, {score.invented_words} invented words: " in printed
    assert f"1-9 words {score.by_length[0].bleu:.2f}\n" in printed
    command = "npformer score --model new test.en test.de --known-words test.de"
    assert f"  {command}\n" in printed
    # the scores stay if there are no new ones
    Path("capitals.de").write_text("Ein Abc, ein Xyz.\n", encoding="utf-8")
    again = ["pretrained", "--export", "new.safetensors", "--out", "again.safetensors"]
    said(capsys, *again, "--casing", "capitals.de")
    assert read_pretrained("again.safetensors").card == new.card
    assert read_pretrained("again.safetensors").target.detokenize("das xyz .") == "Das Xyz."
    # another card has no scores but those that are given with it
    limit = {"what": "questions", "source": "Why?", "translation": "Ein."}
    Path("card.json").write_text(json.dumps(FIELDS | {"limits": [limit]}), encoding="utf-8")
    said(capsys, *again, "--card", "card.json")
    assert read_pretrained("again.safetensors").card.scores == ()
    assert "cannot      questions: Why? → Ein.\n" in said(capsys, "pretrained", "again.safetensors")
    other = json.loads(measured) | {"weights": "0" * 12}
    Path("test.json").write_text(json.dumps(other), encoding="utf-8")
    assert "was measured with other weights" in refused(capsys, *again, "--scores", "test.json")
    assert ".safetensors" in refused(capsys, *export, "--out", "new.bin", "--casing", "capitals.de")


def test_capitals_are_learned_from_a_text(capsys):
    Path("capitals.de").write_text("Ein Abc, ein Xyz.\n", encoding="utf-8")
    export = ["pretrained", "--export", "runs/toy", "--out", "out.safetensors", "--card", "card.json"]
    said(capsys, *export)
    before = read_pretrained("out.safetensors").target
    said(capsys, *export, "--casing", "capitals.de")
    after = read_pretrained("out.safetensors").target
    assert (before.detokenize("das xyz ."), after.detokenize("das xyz .")) == ("das xyz.", "Das Xyz.")
    assert after.encode("Das Xyz.") == before.encode("Das Xyz.")
    Path("capitals.de").write_text("ein abc\n")
    assert "no capitals to learn from" in refused(capsys, *export, "--casing", "capitals.de")


def test_the_template_of_a_card_is_written_filled_in_and_exported(capsys):
    export, card = ["pretrained", "--export", "runs/toy"], Path("runs/toy/card.json")
    assert f"wrote {card}: replace what begins with TO WRITE:" in said(capsys, *export)
    content = json.loads(card.read_text(encoding="utf-8"))
    fields = [field.name for field in dataclasses.fields(Card) if field.name != "scores"]
    assert list(content) == fields
    assert content["title"] == "English to German"
    assert content["date"] == date.today().isoformat()
    total = sum(value.size for value in toy_checkpoint().parameters.values())
    assert content["training"].startswith(f"transformer with {total:,} parameters, n_layers 2, d_model 16")
    assert "7 steps, batch_size 2, schedule warmup, " in content["training"]
    to_write = {name for name, value in content.items() if "TO WRITE:" in str(value)}
    assert to_write == {"data", "licence", "command", "hours", "machine", "example", "comparison"}

    kept = card.read_bytes()
    assert "exists and is left as it is: give --out FILE" in refused(capsys, *export)
    error = refused(capsys, *export, "--out", "out.safetensors")
    assert "has TO WRITE: in data, licence, command, hours, machine, example, comparison" in error
    assert card.read_bytes() == kept

    card.write_text(json.dumps(content | {name: FIELDS[name] for name in to_write}), encoding="utf-8")
    assert "wrote out.safetensors" in said(capsys, *export, "--out", "out.safetensors")
    assert read_pretrained("out.safetensors").card.licence == FIELDS["licence"]


def test_a_missing_card_gets_its_template_and_the_export_is_refused(capsys):
    export = ["pretrained", "--export", "runs/toy", "--out", "out.safetensors", "--card", "new.json"]
    assert "there was no card new.json, and its template is there now" in refused(capsys, *export)
    assert "TO WRITE:" in Path("new.json").read_text(encoding="utf-8")
    assert not Path("out.safetensors").exists()


def test_the_template_knows_the_hours_and_the_files_of_a_run():
    checkpoint = dataclasses.replace(
        toy_checkpoint(source=toy_codec("plain")),
        dataset={"kind": "files", "source": "a.en", "target": "b.de", "limit": None},
        m=None,
        training_settings=toy_checkpoint().training_settings | {"average_last": 3},
    )
    Path("runs/toy/log.jsonl").write_text('{"step": 1, "seconds": 60}\n{"step": 2, "seconds": 9123.4}\n')
    content = card_template(checkpoint, Path("runs/toy"))
    assert content["hours"] == 2.5
    assert content["title"].startswith("TO WRITE:")
    assert content["command"].startswith("npformer train a.en b.de TO WRITE:")
    assert content["data"].endswith("(kind files, source a.en, target b.de)")
    assert content["training"].endswith("average of the last 3 snapshots")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["en-dee"], "did you mean en-de?"),
        (["--out", "x.safetensors"], "has an effect only with --export"),
        (["--last"], "has an effect only with --export"),
        (["--casing", "raw.de"], "has an effect only with --export"),
        (["--export", "runs/toy", "--card", "card.json"], "the card card.json exists and is left as it is"),
        (
            ["en-de", "--export", "runs/toy", "--out", "x.safetensors", "--card", "card.json"],
            "en-de has no effect with --export",
        ),
        (["--export", "nowhere", "--out", "x.safetensors", "--card", "card.json"], "there is no run nowhere"),
        (["--export", "runs/toy", "--out", "x.bin", "--card", "card.json"], "does not end in"),
        (
            ["--export", "runs/toy", "--out", "x.safetensors", "--card", "no/card.json"],
            "no/card.json cannot be written",
        ),
        (["--export", "runs/toy", "--out", "x.safetensors", "--card", "test.en"], "test.en is not JSON"),
        (
            ["--export", "runs/toy", "--out", "x.safetensors", "--card", "list.json"],
            "the model card is a list and not a JSON object",
        ),
        (
            ["--export", "runs/toy", "--out", "x.safetensors", "--card", "half.json"],
            "half.json: the model card has no entry 'data'",
        ),
        (["--export", "runs/toy", "--out", "x.safetensors", "--card", "proud.json"], "proud.json has scores"),
        (
            [
                "--export",
                "runs/toy",
                "--out",
                "x.safetensors",
                "--card",
                "card.json",
                "--scores",
                "half.json",
            ],
            "half.json: the score has no entry 'source'",
        ),
    ],
)
def test_invalid_options_of_pretrained_are_refused(capsys, arguments, words):
    Path("list.json").write_text("[]")
    Path("half.json").write_text('{"title": "English to German"}')
    Path("proud.json").write_text(json.dumps(FIELDS | {"scores": [{"bleu": 99}]}))
    assert words in refused(capsys, "pretrained", *arguments)
    assert not Path("x.safetensors").exists()
