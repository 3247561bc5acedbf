"""Tokenizers of the library `tokenizers`: the pieces of some texts, and damaged files."""

import json
import random
import shutil
import sys

import pytest
from refused import refused

pytest.importorskip("sentencepiece")
tokenizers = pytest.importorskip("tokenizers")

import tokenizer_folders  # noqa: E402  it imports both

from npformer.interop.library_tokenizer import _BYTE_LEVEL  # noqa: E402  it stands below that line
from npformer.interop.tokenizers import load_tokenizer  # noqa: E402  it stands below that line


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory):
    return tokenizer_folders.gpt2(tmp_path_factory.mktemp("gpt2") / "older")


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return tokenizer_folders.bert(tmp_path_factory.mktemp("bert") / "older")


@pytest.fixture
def json_folder(tmp_path, bert):
    """Return a folder with the tokenizer.json of a BERT, and settings that name its mask."""
    folder = tmp_path / "json"
    folder.mkdir()
    load_tokenizer(bert, "bert")._tokenizer.save(str(folder / "tokenizer.json"))
    tokenizer_folders.write_json(folder / "tokenizer_config.json", {"mask_token": "[MASK]"})
    return folder


def test_a_character_of_several_tokens_is_shown_byte_by_byte(gpt2):
    encoding = load_tokenizer(gpt2, "gpt2").encode("a 𝄞")
    assert encoding.pieces[0] == "a"
    shown = "".join(encoding.pieces[1:]).replace(r"\x", "")
    assert shown in (" " + "𝄞".encode().hex(), "".join(f"{byte:02x}" for byte in " 𝄞".encode()))
    assert {offset for offset in encoding.offsets if offset != (0, 1)} <= {(1, 2), (2, 3), (1, 3)}
    assert encoding.offsets[-1] == (2, 3)


def test_the_bytes_of_a_vocabulary_are_those_of_the_library():
    letters = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    decode = tokenizers.decoders.ByteLevel().decode
    assert set(letters) == set(_BYTE_LEVEL)
    for letter, byte in _BYTE_LEVEL.items():
        assert decode([letter]) == bytes([byte]).decode(errors="replace")


def test_words_keep_the_readers_spelling(bert):
    encoding = load_tokenizer(bert, "bert").encode("THE Ma\u0301n\u0301 [MASK]")
    assert encoding.pieces[0] == "[CLS]"
    assert encoding.pieces[-2:] == ["[MASK]", "[SEP]"]
    assert "".join(encoding.pieces[1:-2]) == "THEMa\u0301n\u0301"
    assert encoding.offsets[-1] == (0, 0)


def test_special_tokens_have_ids(bert, gpt2):
    tokenizer = load_tokenizer(bert, "bert")
    assert tokenizer.piece(tokenizer.mask_id) == "[MASK]"
    assert tokenizer.piece(tokenizer.unknown_id) == "[UNK]"
    assert tokenizer.special_ids == {0, 1, 2, 3, 4}
    bytes_only = load_tokenizer(gpt2, "gpt2")
    assert (bytes_only.mask_id, bytes_only.unknown_id, bytes_only.special_ids) == (None, None, {0})


def test_truncation_padding_and_dropout_of_a_file_are_not_used(json_folder, gpt2):
    path = json_folder / "tokenizer.json"
    whole = load_tokenizer(json_folder, "bert").encode("the man and the king")
    limited = load_tokenizer(json_folder, "bert")._tokenizer
    limited.enable_truncation(4)
    limited.enable_padding(length=99)
    limited.save(str(path))
    content = json.loads(path.read_text())
    assert content["truncation"]
    assert content["padding"]
    assert load_tokenizer(json_folder, "bert").encode("the man and the king") == whole

    load_tokenizer(gpt2, "gpt2")._tokenizer.save(str(path))
    whole = load_tokenizer(json_folder, "gpt2").encode("the man and the king").ids
    content = json.loads(path.read_text())
    content["model"]["dropout"] = 0.99
    tokenizer_folders.write_json(path, content)
    assert load_tokenizer(json_folder, "gpt2").encode("the man and the king").ids == whole


def test_ids_come_from_any_iterable_and_are_not_negative(gpt2):
    tokenizer = load_tokenizer(gpt2, "gpt2")
    assert tokenizer.decode(iter(tokenizer.encode("the man").ids)) == "the man"
    with refused(r"^-1 is not an id of a token: give whole numbers from 0$"):
        tokenizer.decode([3, -1])


def test_missing_files_and_a_missing_library(tmp_path, gpt2, monkeypatch):
    for family in ("gpt2", "bert", "llama"):
        with refused(r" has no tokenizer\.json: write it with transformers, AutoTokenizer.from_pretrained\("):
            load_tokenizer(tmp_path, family)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with refused(r"needs the library tokenizers, .*: pip install 'npformer\[hf\]'"):
        load_tokenizer(gpt2, "gpt2")


WRONG_TYPES = {
    "do_lower_case": ["yes"],
    "strip_accents": [3],
    "clean_up_tokenization_spaces": [[]],
    "tokenizer_class": [7],
    "mask_token": [["[MASK]"], {"content": 1}, {"content": "[MASK]", "lstrip": "no"}, {"lstrip": False}],
    "extra_special_tokens": ["x", [3]],
    "added_tokens_decoder": [[], *({id_: {"content": "a"}} for id_ in ("x", "9" * 5000)), {"7": "a", "8": 8}],
}


@pytest.mark.parametrize("name", WRONG_TYPES)
def test_settings_of_a_wrong_type(json_folder, name):
    for value in WRONG_TYPES[name]:
        tokenizer_folders.change_json(json_folder / "tokenizer_config.json", **{name: value})
        with refused(r"tokenizer_config.json.*: copy the file again, or save "):
            load_tokenizer(json_folder, "bert")


def test_older_settings(json_folder):
    tokenizer_folders.write_json(json_folder / "special_tokens_map.json", {"eos_token": {"content": "<end>"}})
    tokenizer_folders.write_json(json_folder / "added_tokens.json", {"<new>": 600, "<end>": 601})
    tokenizer = load_tokenizer(json_folder, "bert")
    assert tokenizer.encode("<new><end>").ids[1:-1] == [600, 601]
    assert tokenizer.special_ids >= {601}
    assert 600 not in tokenizer.special_ids
    tokenizer_folders.write_json(json_folder / "added_tokens.json", {"<new>": -2})
    with refused("has the id -2, which is not a whole number of 0 or more"):
        load_tokenizer(json_folder, "bert")


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_damaged_files_give_one_sentence_or_a_tokenizer(json_folder, gpt2, tmp_path, family):
    folder = shutil.copytree(gpt2 if family == "gpt2" else json_folder, tmp_path / "copy")
    rng, path, n_refused = random.Random(0), folder / "tokenizer.json", 0
    whole = path.read_bytes()
    for _ in range(60):
        path.write_bytes(tokenizer_folders.damaged(whole, rng))
        n_refused += tokenizer_folders.is_refused(folder, family)
    assert n_refused > 10


NO_TOKENIZERS = [b"", b"null", b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe"]
NO_TOKENIZERS += [b'{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": [["a", "b"]]}}']
NO_TOKENIZERS += [b'{"version": "1.0", "model": {"type": "WordPiece", "vocab": {"a": -1}}}']


@pytest.mark.parametrize("content", NO_TOKENIZERS, ids=lambda content: content[:20])
def test_no_tokenizer(json_folder, content):
    (json_folder / "tokenizer.json").write_bytes(content)
    with refused(r"tokenizer\.json is not a tokenizer that the library tokenizers reads"):
        load_tokenizer(json_folder, "bert")
