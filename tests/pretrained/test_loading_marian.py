"""npformer.load of a Marian folder: text, ids, attention, saliency, commands, and what is refused."""

import json
import shutil
from itertools import chain

import numpy as np
import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")

from marian_folders import LENGTH, marian_folder, sentences
from tokenizer_folders import change_json

import npformer
from npformer import UserError
from npformer.cli.main import main
from npformer.data import pad
from npformer.generation import beam_search
from npformer.pretrained import Translator

TEXT = "First Citizen:"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return marian_folder(tmp_path_factory.mktemp("marian") / "model")


@pytest.fixture(scope="module")
def loaded(folder):
    return npformer.load(folder, dtype="float64")


@pytest.fixture
def copied(folder, tmp_path):
    """Return a copy of the folder that a test may change."""
    return shutil.copytree(folder, tmp_path / "copy")


def test_translations_are_those_of_the_search_in_the_folder(loaded):
    assert isinstance(loaded, Translator)
    texts = sentences(12)
    settings = {"beam": 4, "length_penalty": 1.0, "max_length": 12, "n_best": 1}
    settings |= {"allow_unk": True, "rules": "transformers", "renormalize": True}
    expected = []
    for text in texts:
        ids = pad([loaded.tokenizer.encode(text).ids], loaded.model.config.pad_id)
        (found,) = beam_search(loaded.model, ids, **settings)
        expected.append(loaded.tokenizer.decode(found[0].ids))
    assert loaded.translate(texts) == expected
    assert len(set(expected)) > 8
    assert loaded.translate(texts[0]) == expected[0]
    assert loaded.translate([texts[1], "", " "]) == [expected[1], "", ""]
    parts = list(loaded.translate_stream([*texts[:3], "", texts[3]], batch_tokens=1))
    assert [*chain.from_iterable(parts)] == [*expected[:3], "", expected[3]]
    assert loaded.translate(texts, beam=2) != expected


def test_a_code_of_the_target_language_is_read(loaded):
    codes, words = ("", ">>de<< ", ">>fr<< "), ("First", "Citizen", "the man")
    translations = {tuple(loaded.translate([code + word for word in words])) for code in codes}
    assert len(translations) == 3
    found = loaded.attention(">>fr<< " + TEXT)
    assert found.source_tokens[0] == ">>fr<<"
    assert loaded.unknown_words(">>fr<< " + TEXT) == []
    assert loaded.unknown_words(f"{TEXT} ဪ, ဪ") == ["ဪ"]
    assert ">>none<<" in loaded.unknown_words(f">>none<< {TEXT}")


def test_the_attention_of_a_text_has_its_pieces(loaded):
    found = loaded.attention(TEXT)
    encoding = loaded.tokenizer.encode(TEXT)
    assert found.source_tokens == encoding.pieces
    assert "".join(found.source_tokens).lstrip("▁") == f"{TEXT}</s>"
    assert found.target_tokens == ["<pad>", *found.predicted_tokens[:-1]]
    assert found.predicted_tokens[-1] == "</s>"
    assert found.translation == loaded.translate(TEXT)
    cross = found.cache.decoder.layers[1].cross.attention.weights
    assert np.array_equal(found.weights["cross"][1], cross[0])


def test_logits_and_attention_of_ids_need_no_tokenizer(copied):
    (copied / "source.spm").unlink()
    (copied / "generation_config.json").unlink()
    loaded = npformer.load(copied)
    source, target_in = np.array([[5, 6, 0]]), np.array([[loaded.model.config.start_id, 7]])
    logits, cache = loaded.model.forward(source, target_in)
    assert logits.dtype == np.float32
    assert np.array_equal(loaded.logits(source, target_in), logits)
    found = loaded.attention(source, target_in)
    assert np.array_equal(found["cross"][0], cache.decoder.layers[0].cross.attention.weights)
    with pytest.raises(UserError, match=r"copy has no source\.spm"):
        loaded.translate(TEXT)


@pytest.mark.parametrize("method", ["translate", "attention", "saliency"])
def test_sentences_that_are_too_long_or_empty(loaded, method):
    with pytest.raises(UserError, match=rf"^(line 1|the sentence) has \d+ tokens, .* limit is {LENGTH}: "):
        getattr(loaded, method)("First Citizen " * LENGTH)
    if method != "translate":
        with pytest.raises(UserError, match=r"^the sentence ' ' is empty: write at least one word$"):
            getattr(loaded, method)(" ")


def test_what_a_folder_cannot_do_is_said_when_it_is_asked_for(copied):
    change_json(copied / "generation_config.json", repetition_penalty=1.5)
    loaded = npformer.load(copied)
    assert loaded.logits([[5, 0]], [[7]]).shape[:2] == (1, 1)
    with pytest.raises(UserError, match=r"repetition_penalty is 1\.5"):
        loaded.translate(TEXT)
    change_json(copied / "config.json", eos_token_id=3)
    with pytest.raises(UserError, match=r"copy: the end symbol .* has the ids \[0\], and that .* \[3\]: use"):
        _ = npformer.load(copied).tokenizer


def test_the_score_of_a_folder(folder, tmp_path, capsys):
    pytest.importorskip("sacrebleu")
    texts = sentences(6)
    (tmp_path / "source").write_text("\n".join(texts), encoding="utf-8")
    translations = npformer.load(folder).translate(texts)
    (tmp_path / "target").write_text("\n".join(translations), encoding="utf-8")
    files = [str(tmp_path / "source"), str(tmp_path / "target")]
    assert main(["score", "--model", str(folder), *files, "--text", "raw", "--json"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["bleu"] == pytest.approx(100)
    assert (row["beam"], row["rules"], row["max_length"]) == (4, "transformers", 12)
    assert main(["score", "--model", str(folder), *files, "--text", "tokenised"]) == 0


def test_a_folder_has_no_codecs(folder, loaded, capsys):
    with pytest.raises(UserError, match="has a tokenizer and no codecs"):
        _ = loaded.codec
    assert main(["masks", "--model", str(folder), "First Citizen"]) == 2
    assert "has a tokenizer and no codecs" in capsys.readouterr().err
