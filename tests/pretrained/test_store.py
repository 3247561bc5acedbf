"""The pretrained translators: reproducible bytes, half the size, and detection of invalid files."""

import subprocess
import sys

import numpy as np
import pytest
from safetensors import numpy as safetensors
from toy_pretrained import PIECES, SENTENCE, toy_card, toy_checkpoint, toy_codec

from npformer import UserError
from npformer.models.registry import config_from_checkpoint
from npformer.pretrained import (
    load,
    names,
    read_pretrained,
    save_pretrained,
    store,
    weights_fingerprint,
)
from npformer.storage.checkpoint import load_checkpoint, save_checkpoint


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


def test_a_saved_translator_loads_unchanged(shelf, path):
    saved, (model, source, target, card) = toy_checkpoint(), read_pretrained("en-de")
    codecs = {"source": source.to_json(), "target": target.to_json()}
    assert (codecs, card) == (saved.codecs, toy_card())
    assert model.config == config_from_checkpoint(saved)
    for name, value in model.state_dict().items():
        assert value.dtype == np.float32
        assert np.array_equal(value, saved.parameters[name].astype(np.float16))
        assert np.allclose(value, saved.parameters[name], rtol=2**-11, atol=2**-25)
    tensors = safetensors.load_file(path)  # any reader of safetensors reads the weights
    assert {value.dtype for value in tensors.values()} == {np.dtype(np.float16)}
    assert tensors.keys() == saved.parameters.keys()


def test_names(shelf, monkeypatch, tmp_path):
    (shelf / "fr-en.safetensors").write_bytes(b"")
    (shelf / "store.py").write_bytes(b"")
    assert names() == ["en-de", "fr-en"]
    with pytest.raises(UserError, match=r"unknown translator 'en-dee': did you mean en-de\?"):
        read_pretrained("en-dee")
    with pytest.raises(UserError, match=r"there is no translator .*nowhere\.safetensors"):
        read_pretrained("nowhere.safetensors")
    monkeypatch.setattr(store, "FOLDER", tmp_path / "empty")
    with pytest.raises(UserError, match="no translator 'en-de': none ships with this copy of npformer"):
        read_pretrained("en-de")


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


def test_the_pretrained_translator_is_small_and_has_a_score():
    assert "en-de" in names()
    for name in names():
        path = store.FOLDER / f"{name}.safetensors"
        assert path.stat().st_size <= 6_000_000
        model, _, _, card = read_pretrained(name)
        assert {each.weights for each in card.scores} == {weights_fingerprint(model.state_dict())}
        assert {each.setting for each in card.scores} == {"tokenised", "raw"}
    assert load("en-de").translate(SENTENCE).lower().startswith("ein mann")
