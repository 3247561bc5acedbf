"""The tokenizer of Marian: languages, unknown pieces, parts of a character, and damaged files."""

import json
import random
import shutil
import sys

import pytest

pytest.importorskip("tokenizers")
pytest.importorskip("sentencepiece")

import tokenizer_folders
from refused import refused

from npformer.interop.tokenizers import load_tokenizer


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return tokenizer_folders.marian(tmp_path_factory.mktemp("marian") / "older")


@pytest.fixture
def folder(whole, tmp_path):
    """Return a copy of the folder that a test may change."""
    return shutil.copytree(whole, tmp_path / "copy")


def vocabulary(folder):
    return json.loads((folder / "vocab.json").read_text(encoding="utf-8"))


def test_a_code_of_the_target_language_is_one_token(whole):
    ids, pieces, offsets = load_tokenizer(whole, "marian").encode(">>de<< the")
    assert (ids[0], pieces[0], offsets[0]) == (vocabulary(whole)[">>de<<"], ">>de<<", (0, 6))
    assert (ids[-1], pieces[-1], offsets[-1]) == (vocabulary(whole)["</s>"], "</s>", (0, 0))
    assert "".join(pieces[1:-1]) == "the"  # sentencepiece leaves out the spaces before a text
    assert offsets[-2][1] == 10


def test_an_unknown_code_and_unknown_pieces_have_the_unknown_id(whole):
    tokenizer = load_tokenizer(whole, "marian")
    assert tokenizer.encode(">>none<<").ids == [tokenizer.unknown_id, vocabulary(whole)["</s>"]]
    encoding = tokenizer.encode("the ဪ")
    place = encoding.pieces.index("ဪ")
    assert encoding.ids[place] == tokenizer.unknown_id
    assert encoding.offsets[place] == (4, 5)


def test_parts_of_a_character_cover_it_and_show_their_own_text(whole):
    encoding = load_tokenizer(whole, "marian").encode("½x")
    parts = [offset for offset in encoding.offsets if offset == (0, 1)]
    assert len(parts) >= 2
    assert "".join(encoding.pieces[:-1]).lstrip("▁ ") == "1⁄2x"


def test_target_sentences_use_the_model_of_the_target(whole):
    import sentencepiece

    tokenizer, ids = load_tokenizer(whole, "marian"), vocabulary(whole)
    text = "the king and his bicycle"
    model = sentencepiece.SentencePieceProcessor(model_file=str(whole / "target.spm"))
    expected = [ids.get(piece, ids["<unk>"]) for piece in model.encode(text, out_type=str)] + [ids["</s>"]]
    assert tokenizer.for_target.encode(text).ids == expected != tokenizer.encode(text).ids


def test_a_special_token_that_the_vocabulary_lacks_has_the_next_id(folder):
    ids = vocabulary(folder)
    del ids["<pad>"]
    tokenizer_folders.write_json(folder / "vocab.json", ids)
    assert load_tokenizer(folder, "marian").encode("<pad>").ids == [len(ids), ids["</s>"]]


def test_missing_files_and_a_missing_library(folder, monkeypatch):
    for name in ("source.spm", "target.spm", "vocab.json"):
        kept = (folder / name).rename(folder / "kept")
        with refused(f" has no {name}: save the tokenizer there with transformers, or"):
            load_tokenizer(folder, "marian")
        kept.rename(folder / name)
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with refused(r"needs the library sentencepiece, .*: pip install 'npformer\[hf\]'"):
        load_tokenizer(folder, "marian")


LSTRIP = {"pad_token": {"content": "<pad>", "lstrip": True}}
UNSUPPORTED = {
    "npformer reads only Marian tokenizers with one vocabulary": {"separate_vocabs": True},
    "which can make the ids random: remove this entry": {"sp_model_kwargs": {"enable_sampling": True}},
    "'<pad>' .* has single_word, lstrip or rstrip": LSTRIP,
    "vocab.json has no token '<none>' for unknown pieces": {"unk_token": "<none>"},
    "unk_token in .* is 5, not a token": {"unk_token": 5},
}


@pytest.mark.parametrize(("message", "settings"), UNSUPPORTED.items())
def test_settings_that_are_not_supported(folder, message, settings):
    tokenizer_folders.write_json(folder / "tokenizer_config.json", settings)
    with refused(message):
        load_tokenizer(folder, "marian")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "vocab.json is not JSON"),
        (b"[" * 100_000, "is nested deeper than"),
        (b"[]", "and not a JSON object"),
        (b'{"<unk>": "1"}', "has an id that is not a whole number"),
        (b'{"<unk>": -1}', "has an id that is not a whole number"),
        (b'{"a": 1}', "has no token '<unk>'"),
    ],
)
def test_damaged_vocabularies(folder, content, message):
    (folder / "vocab.json").write_bytes(content)
    with refused(message):
        load_tokenizer(folder, "marian")


def test_damaged_models_give_one_sentence_or_a_tokenizer(folder):
    rng, path, n_refused = random.Random(0), folder / "source.spm", 0
    data = path.read_bytes()
    for _ in range(100):
        path.write_bytes(tokenizer_folders.damaged(data, rng))
        n_refused += tokenizer_folders.is_refused(folder, "marian")
    assert n_refused > 50
    path.write_bytes(b"")
    with refused(r"source\.spm is not a model that sentencepiece reads"):
        load_tokenizer(folder, "marian")
