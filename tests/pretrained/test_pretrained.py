"""The pretrained translators: reproducible bytes, half the size, and detection of invalid files."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from paths import ROOT
from safetensors import numpy as safetensors
from toy_pretrained import FIELDS, PIECES, SENTENCE, toy_card, toy_checkpoint, toy_codec

from npformer import UserError
from npformer.generation import Translator
from npformer.models.registry import config_from_checkpoint
from npformer.pretrained import (
    Card,
    MeasuredScore,
    names,
    read_pretrained,
    save_pretrained,
    store,
    weights_fingerprint,
)
from npformer.storage.checkpoint import load_checkpoint, save_checkpoint

MEASURED = {
    "source": "test.en",
    "reference": "test.de",
    "setting": "tokenised",
    "bleu": 12.345,
    "signature": "nrefs:1|tok:none",
    "beam": 5,
    "length_penalty": 0.6,
    "sentences": 1000,
    "empty": 0,
    "weights": "",
}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "en-de.safetensors"
    save_pretrained(toy_checkpoint(), path, toy_card())
    return path


@pytest.fixture
def shelf(monkeypatch, tmp_path, path):
    """Return the folder of the pretrained translators, with the toy as en-de."""
    monkeypatch.setattr(store, "FOLDER", tmp_path)
    return tmp_path


def test_a_saved_translator_loads_unchanged(shelf):
    saved, (model, source, target, card) = toy_checkpoint(), read_pretrained("en-de")
    codecs = (source.to_json(), target.to_json())
    assert (*codecs, card) == (saved.source_codec, saved.target_codec, toy_card())
    assert model.config == config_from_checkpoint(saved)
    for name, value in model.state_dict().items():
        assert value.dtype == np.float32
        assert np.array_equal(value, saved.parameters[name].astype(np.float16))
        assert np.allclose(value, saved.parameters[name], rtol=2**-11, atol=2**-25)


def test_any_safetensors_reader_reads_the_weights(path):
    tensors = safetensors.load_file(path)
    assert {value.dtype for value in tensors.values()} == {np.dtype(np.float16)}
    assert tensors.keys() == toy_checkpoint().parameters.keys()


def test_the_same_model_gives_the_same_bytes(tmp_path, path):
    again = tmp_path / "again.safetensors"
    checkpoint = toy_checkpoint()
    checkpoint.parameters.update(dict(reversed(checkpoint.parameters.items())))
    save_pretrained(checkpoint, again, toy_card())
    assert again.read_bytes() == path.read_bytes()
    save_pretrained(toy_checkpoint(), again, toy_card(hours=3))
    assert again.read_bytes() != path.read_bytes()


def test_names(shelf):
    assert names() == ["en-de"]
    (shelf / "fr-en.safetensors").write_bytes(b"")
    (shelf / "store.py").write_bytes(b"")
    assert names() == ["en-de", "fr-en"]


def test_unknown_names(shelf, monkeypatch, tmp_path):
    with pytest.raises(UserError, match=r"unknown translator 'en-dee': did you mean en-de\?"):
        read_pretrained("en-dee")
    with pytest.raises(UserError, match=r"there is no translator .*nowhere\.safetensors"):
        read_pretrained("nowhere.safetensors")
    monkeypatch.setattr(store, "FOLDER", tmp_path / "empty")
    with pytest.raises(UserError, match="no translator 'en-de': none ships with this copy of npformer"):
        read_pretrained("en-de")


def test_any_altered_byte_is_found(path):
    data = path.read_bytes()
    rng = np.random.default_rng(0)
    for place in [*range(16), *rng.integers(16, len(data), 60)]:
        altered = bytearray(data)
        altered[place] ^= 1 << rng.integers(8)
        path.write_bytes(altered)
        with pytest.raises(UserError, match=r"altered.*install npformer again, or export it again"):
            read_pretrained(str(path))
    for length in (0, 7, 100, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:length])
        with pytest.raises(UserError, match="was cut short"):
            read_pretrained(str(path))


def test_checkpoints_and_translators_are_not_confused(tmp_path, path):
    save_checkpoint(toy_checkpoint(), tmp_path / "run.safetensors")
    with pytest.raises(UserError, match="not a translator of npformer"):
        read_pretrained(str(tmp_path / "run.safetensors"))
    with pytest.raises(UserError, match="not a checkpoint of npformer"):
        load_checkpoint(path)


def test_another_format(path, monkeypatch):
    monkeypatch.setattr(store, "FORMAT", 2)
    save_pretrained(toy_checkpoint(), path, toy_card())
    assert read_pretrained(str(path)).card == toy_card()
    monkeypatch.setattr(store, "FORMAT", 1)
    with pytest.raises(UserError, match="has format 2, and this npformer reads up to 1: install a newer"):
        read_pretrained(str(path))


def test_codecs_that_do_not_fit_the_model(path, monkeypatch):
    fewer = toy_codec("de", PIECES[1:])
    with pytest.raises(UserError, match="the target vocabulary has"):
        save_pretrained(toy_checkpoint(target=fewer), path, toy_card())
    monkeypatch.setattr(store, "codec_from_json", lambda text: fewer)
    with pytest.raises(UserError, match="the source vocabulary has"):
        read_pretrained(str(path))


@pytest.mark.parametrize("value", [65536.0, -1e9, np.inf, np.nan])
def test_weights_that_float16_cannot_hold(path, value):
    checkpoint, before = toy_checkpoint(), path.read_bytes()
    name = next(iter(checkpoint.parameters))
    checkpoint.parameters[name].flat[3] = value
    with pytest.raises(UserError, match=f"{name} has weights beyond what float16 holds"):
        save_pretrained(checkpoint, path, toy_card())
    assert path.read_bytes() == before


def test_a_place_that_is_not_writable(tmp_path):
    with pytest.raises(UserError, match="cannot be written"):
        save_pretrained(toy_checkpoint(), tmp_path / "no" / "x.safetensors", toy_card())
    with pytest.raises(UserError, match=r"does not end in \.safetensors"):
        save_pretrained(toy_checkpoint(), tmp_path / "x.bin", toy_card())


def test_only_scores_of_these_weights_are_accepted(path):
    fingerprint = weights_fingerprint(read_pretrained(str(path)).model.state_dict())
    right = MeasuredScore.from_dict(MEASURED | {"weights": fingerprint, "seconds": 3.0})
    save_pretrained(toy_checkpoint(), path, toy_card(scores=(right,)))
    assert read_pretrained(str(path)).card.scores == (right,)
    # the scores of the run itself were measured before the weights were rounded
    for state in (toy_checkpoint().parameters, toy_checkpoint(seed=1).parameters):
        wrong = MeasuredScore.from_dict(MEASURED | {"weights": weights_fingerprint(state)})
        with pytest.raises(UserError, match="measured with other weights"):
            save_pretrained(toy_checkpoint(), path, toy_card(scores=(wrong,)))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"title": " "}, "the card's title is ' '"),
        ({"data": 3}, "the entry 'data' of the model card is 3, not a text"),
        ({"hours": 0}, "the card's hours are 0"),
        ({"hours": "two"}, "the entry 'hours' of the model card is 'two', not a number"),
        ({"date": "31.1.2026"}, "write it as 2026-01-31"),
        ({"beam": 0}, "the card's beam is 0"),
        ({"length_penalty": -1}, "the card's length_penalty is -1"),
        ({"score": 41}, r"has an unknown entry 'score' \(did you mean scores\?\)"),
        ({"colour": 1}, r"has an unknown entry 'colour' \(perhaps a newer npformer wrote it\)"),
        ({"format": 2}, "the model card has format 2, and this npformer reads up to 1"),
        ({"beam": 10**6}, "the card's beam is 1,000,000: it must be at most 1,000"),
        ({"hours": float("inf")}, "the card's hours are inf"),
        ({"scores": [{"bleu": 41}]}, "the score has no entry 'source': give the JSON that"),
        ({"scores": [41]}, "the score is a whole number and not a JSON object"),
    ],
)
def test_incomplete_cards_are_refused(changes, message):
    with pytest.raises(UserError, match=message):
        Card.from_dict(FIELDS | changes)


def test_a_card_has_all_its_fields():
    assert Card.from_dict(json.loads(json.dumps(toy_card().to_dict()))) == toy_card()
    for name in FIELDS.keys() - {"example"}:
        with pytest.raises(UserError, match=f"the model card has no entry '{name}'"):
            Card.from_dict({key: value for key, value in FIELDS.items() if key != name})
    with pytest.raises(UserError, match="the model card is a list and not a JSON object"):
        Card.from_dict([])


def test_the_section_of_the_readme():
    text = toy_card(scores=(MeasuredScore.from_dict(MEASURED),)).section("en-de")
    assert text.startswith("## The translator that ships: English to German\n")
    assert f'npformer translate --model en-de "{SENTENCE}"\n' in text
    assert "| licence | for tests |\n" in text
    assert "| recipe | 4 + 4 layers &#124; none of them trained |\n" in text
    assert "| test.de, 1,000 sentences | tokenised | 12.35 | 5 | nrefs:1&#124;tok:none |\n" in text
    tables = [block for block in text.split("\n\n") if block.startswith("|")]
    for table in tables:  # the same number of cells in every row
        assert len({line.count("|") for line in table.strip().splitlines()}) == 1


def test_any_english_sentence_is_accepted_and_the_german_is_detokenized(shelf):
    model, source, target, _ = read_pretrained("en-de")
    assert source.encode(SENTENCE) == source.encode("a man is riding a bicycle .")
    assert 1 not in source.encode(SENTENCE.upper())  # no <UNK>
    assert Translator(model, source, target).translate([SENTENCE], max_length=5)


def test_translating_imports_neither_training_nor_optional_packages(shelf):
    code = (
        "import sys; from pathlib import Path; from npformer.pretrained import store; "
        f"store.FOLDER = Path({str(shelf)!r}); from npformer.cli.main import main; "
        f"status = main(['translate', '--model', 'en-de', {SENTENCE!r}]); "
        "unwanted = {'sentencepiece', 'sacrebleu', 'matplotlib', 'socket', 'npformer.training'}; "
        "print(status, *(unwanted & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


# The pretrained translator of this checkout.


def test_the_pretrained_translator_is_small_and_has_a_score():
    assert "en-de" in names()
    for name in names():
        path = store.FOLDER / f"{name}.safetensors"
        assert path.stat().st_size <= 6_000_000
        model, _, _, card = read_pretrained(name)
        assert {each.weights for each in card.scores} == {weights_fingerprint(model.state_dict())}
        assert {each.setting for each in card.scores} == {"tokenised", "raw"}


def documentation():
    """The text of the README and of the pages in docs/."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return "\n".join(page.read_text(encoding="utf-8") for page in pages)


def test_the_documentation_has_the_measured_scores():
    text = documentation()
    for name in names():
        card = read_pretrained(name).card
        assert f"npformer translate --model {name} " in text
        assert f"`{card.command}`" in text
        for score in card.scores:
            cells = [score.reference, f"{score.bleu:.2f}", score.signature.replace("|", "&#124;")]
            rows = [line for line in text.splitlines() if all(cell in line for cell in cells)]
            assert len(rows) == 1, cells


def test_the_pretrained_translator_translates():
    model, source, target, card = read_pretrained("en-de")
    translator = Translator(model, source, target)
    (found,) = translator.translate([SENTENCE], beam=card.beam, length_penalty=card.length_penalty)
    assert found.startswith("ein mann")


def test_the_documentation_names_only_existing_translators():
    shown = set(re.findall(r"--model ([a-z]+-[a-z]+) ", documentation()))
    assert shown <= set(names())
