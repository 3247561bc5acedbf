"""Datasets of one long text: where it is split, which windows make a batch, and which texts are refused."""

import itertools
import json

import numpy as np
import pytest

from npformer import UserError
from npformer.data.dataset import open_dataset, task_dataset
from npformer.data.text import TextLoader, text_dataset
from npformer.models.gpt import GPTConfig
from npformer.models.transformer import TransformerConfig

ALPHABET = "".join(map(chr, range(33, 133)))  # 100 different characters, so that a window shows its place


def dataset_of(tmp_path, text, **settings):
    """Return the dataset of a file with this text, a str or bytes."""
    path = tmp_path / "text.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return text_dataset(path, **settings)


@pytest.fixture
def alphabet(tmp_path):
    """Return the dataset of a text whose tokens are 0 .. 99, of which 90 are for training."""
    return dataset_of(tmp_path, ALPHABET)


def test_tiny_shakespeare_is_split_as_nanogpt_splits_it():
    dataset = text_dataset()
    assert (len(dataset.train), len(dataset.valid)) == (1_003_854, 111_540)
    assert dataset.sizes == {"vocab_size": 65}
    assert dataset.codecs["text"].decode(dataset.train[:14]) == "First Citizen:"
    assert dataset.tokens_per_character == 1
    assert dataset.train.dtype == np.uint8


# the windows


@pytest.mark.parametrize("settings", [{"batch_size": 5}, {"batch_tokens": 35}, {"batch_tokens": 41}])
def test_targets_are_the_inputs_shifted_by_one(alphabet, settings):
    for batches in itertools.islice(alphabet.loader(7, seed=3, **settings).steps(), 40):
        (batch,) = batches
        assert batch.ids.shape == batch.target_out.shape == (5, 7)
        assert batch.tokens == 35
        assert batch.ids.dtype == np.int64
        np.testing.assert_array_equal(batch.target_out, batch.ids + 1)  # as the text itself
        np.testing.assert_array_equal(np.diff(batch.ids), 1)


def test_no_window_crosses_from_training_to_validation(alphabet):
    """Every token for training is read and predicted, and none for validation."""
    loader = alphabet.loader(7, batch_size=2000)
    (batch,) = next(loader.steps())
    assert set(batch.ids[:, 0]) == set(range(83))
    assert set(batch.target_out[:, -1]) == set(range(7, 90))


def test_the_windows_depend_on_seed_step_and_batch_only(alphabet):
    def some(seed=0, start=0):
        steps = alphabet.loader(7, seed=seed, batch_size=4, accumulate=2).steps(start)
        first = itertools.islice(steps, 6 - start)
        return [batch.ids[:, 0].tolist() for batches in first for batch in batches]

    assert some() == some()
    assert some(start=4) == some()[8:]
    assert some(seed=1) != some()
    assert len(set(map(tuple, some()))) == 12


def test_validation_reads_the_whole_text_once(alphabet):
    batches = alphabet.validation_batches(4, batch_size=2, seed=5, accumulate=3)
    assert [batch.ids.tolist() for batch in batches] == [[[90, 91, 92, 93], [94, 95, 96, 97]], [[98]]]
    assert [batch.target_out.tolist() for batch in batches] == [[[91, 92, 93, 94], [95, 96, 97, 98]], [[99]]]


@pytest.mark.parametrize(("n", "predicted"), [(0, 0), (1, 0), (2, 1), (5, 4), (9, 8), (14, 13)])
def test_each_token_but_the_first_is_predicted_once(n, predicted):
    batches = TextLoader(np.arange(n), 4, batch_size=2).consecutive()
    targets = [token for batch in batches for row in batch.target_out.tolist() for token in row]
    assert targets == list(range(1, predicted + 1))
    assert all(len(batch.ids) <= 2 for batch in batches)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "give either batch_size"),
        ({"batch_size": 2, "batch_tokens": 9}, "give either batch_size"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 2, "seed": -1}, "seed is -1"),
        ({"batch_size": 2, "accumulate": 0}, "accumulate is 0: it must be a whole number, 1 or more"),
    ],
)
def test_impossible_batches_are_refused(alphabet, settings, sentence):
    pairs = task_dataset("copy", n=5)
    for make in (alphabet.loader, alphabet.validation_batches, pairs.loader):
        with pytest.raises(UserError, match=sentence):
            make(7, **settings)


def test_a_text_is_longer_than_a_window():
    with pytest.raises(UserError, match="length is 0: it must be a whole number, 1 or more"):
        TextLoader(np.arange(5), 0, batch_size=2)
    with pytest.raises(UserError, match="the text has 5 tokens and length is 5: give a longer text, or"):
        next(TextLoader(np.arange(5), 5, batch_size=2).steps())


# files


@pytest.mark.parametrize("tokens", ["characters", "bytes", "subwords"])
def test_a_description_gives_the_same_dataset_again(tmp_path, tokens):
    settings = {"vocab_size": 30} if tokens == "subwords" else {}
    dataset = dataset_of(tmp_path, "the cat sees the dog\n" * 50, tokens=tokens, **settings)
    again = open_dataset(json.loads(json.dumps(dataset.description)))
    assert again.fingerprint == dataset.fingerprint
    assert again.codec == dataset.codec
    np.testing.assert_array_equal(again.train, dataset.train)
    assert dataset_of(tmp_path, "the cat sees the dig\n" * 50, tokens=tokens, **settings).fingerprint != (
        dataset.fingerprint
    )


def test_bits_per_character_know_how_many_bytes_a_character_has(tmp_path):
    dataset = dataset_of(tmp_path, "a" * 90 + "éé" * 5, tokens="bytes")
    assert dataset.tokens_per_character == 2


def test_windows_line_ends_and_byte_order_marks_are_removed(tmp_path):
    dataset = dataset_of(tmp_path, "\ufeffone\r\ntwo\r\n")
    assert dataset.codec.decode([*dataset.train, *dataset.valid]) == "one\ntwo\n"


def test_subwords_are_learned_from_the_training_part_and_know_all_characters(tmp_path):
    dataset = dataset_of(tmp_path, "the cat " * 100 + "the zoo " * 8, tokens="subwords", vocab_size=12)
    assert dataset.codec.tokens[12:] == ("o", "z")
    assert dataset.codec.decode(dataset.valid).endswith("zoo ")
    assert dataset.tokens_per_character < 1


@pytest.mark.parametrize(
    ("text", "settings", "sentence"),
    [
        ("", {}, r"text\.txt is empty: give a file with text"),
        (b"", {"tokens": "bytes"}, r"text\.txt is empty"),
        ("aaaa", {}, r"text\.txt has only the character 'a': give a text with at least two"),
        (b"\xff\xff", {"tokens": "bytes"}, "has only the character"),
        (b"caf\xe9 noir", {}, r"text\.txt is not UTF-8 text at line 1 \(byte 0xe9\): save it as UTF-8, or "),
        ("abc", {"tokens": "words"}, "tokens is 'words': choose one of characters, bytes, subwords"),
        ("abc", {"vocab_size": 9}, "vocab_size is 9 and tokens is 'characters': it is for subwords only"),
        ("abc", {"tokens": "subwords", "vocab_size": 0}, "vocab_size is 0: it must be"),
    ],
)
def test_texts_without_anything_to_learn_are_refused(tmp_path, text, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        dataset_of(tmp_path, text, **settings)


# models that fit


def test_the_model_that_fits_a_text(alphabet):
    config = GPTConfig.preset("small", **alphabet.sizes, context=89)
    alphabet.check_model(config)
    for changes, sentence in (
        ({"vocab_size": 99}, "vocab_size is 99, but .*text.txt has 100 different tokens"),
        ({"context": 90}, "text.txt has 90 tokens for training, and the model's context is 90: give"),
        ({"pad_id": 0}, "pad_id is 0, and the windows of a text have no padding"),
    ):
        with pytest.raises(UserError, match=sentence):
            alphabet.check_model(config.replace(**changes))


def test_a_model_and_a_dataset_of_different_kinds_are_refused(alphabet):
    with pytest.raises(UserError, match="the model reads sentence pairs and the dataset has text: choose"):
        alphabet.check_model(TransformerConfig())
    with pytest.raises(UserError, match="the model reads text and the dataset has sentence pairs: choose"):
        task_dataset("copy", n=5).check_model(GPTConfig())
