"""Datasets of sentences without translations: hidden tokens, long sentences, files and descriptions."""

import numpy as np
import pytest

from npformer import UserError
from npformer.data import END, PAD, SPECIALS, SentenceDataset, open_dataset, sentence_dataset
from npformer.data.sentences import MASK, masked_batch
from npformer.models.bert import BertConfig
from npformer.models.gpt import GPTConfig

LINES = ["the cat sees the dog", "the dog sees a bird", "", "a bird sees the cat", "the dog eats"] * 8
BATCHING = {"batch_size": 4, "seed": 3}


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "animals.en"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def dataset(file):
    return sentence_dataset(file)


def config(dataset, **changes):
    return BertConfig(**{"d_model": 4, "n_heads": 1, "n_layers": 1} | dataset.sizes | changes)


def original(batch):
    """Return the tokens of a batch without the hiding."""
    return np.where(batch.target_out == PAD, batch.ids, batch.target_out)


def test_the_lines_of_a_file(dataset):
    """The empty lines are left out, and of the 32 others the last one is for validation."""
    assert [dataset.codec.decode(ids) for ids in dataset.train[:3]] == [
        "the cat sees the dog",
        "the dog sees a bird",
        "a bird sees the cat",
    ]
    assert (len(dataset.train), len(dataset.valid)) == (31, 1)
    assert dataset.codec.tokens == (*SPECIALS, "the", "sees", "dog", "a", "bird", "cat", "eats", MASK)
    assert dataset.sizes == {"vocab_size": 12}
    assert dataset.codec.language.name == "en"


def test_other_tokens_are_hidden_in_each_epoch(dataset):
    """One epoch has 8 steps. The sentences of both are the same, and what is hidden differs."""
    steps = dataset.loader(8, **BATCHING).steps()
    epochs = [[next(steps)[0] for _ in range(8)] for _ in range(2)]
    sentences, hidden = [], []
    for epoch in epochs:
        rows = [row for batch in epoch for row in zip(original(batch), batch.target_out, strict=True)]
        rows = [(tuple(ids[ids != PAD]), tuple(np.flatnonzero(targets))) for ids, targets in rows]
        sentences.append(sorted(ids for ids, _ in rows))
        hidden.append(sorted(rows))
    assert sentences[0] == sentences[1] == sorted((*ids, END) for ids in dataset.train)
    assert hidden[0] != hidden[1]


def test_the_batches_depend_on_the_seed_and_the_step_alone(dataset):
    settings = BATCHING | {"accumulate": 2}
    steps = dataset.loader(8, **settings).steps()
    first = [next(steps) for _ in range(9)]
    later = dataset.loader(8, **settings).steps(start=6)
    for expected, found in zip(first[6:], later, strict=False):
        assert len(found) == 2
        for one, other in zip(expected, found, strict=True):
            np.testing.assert_array_equal(one.ids, other.ids)
            np.testing.assert_array_equal(one.target_out, other.target_out)
    other_seed = next(dataset.loader(8, **settings | {"seed": 4}).steps())
    assert other_seed[0].ids.shape != first[0][0].ids.shape or (other_seed[0].ids != first[0][0].ids).any()


def test_each_batch_is_masked_with_its_own_generator(dataset):
    """Batch b of step s gets the generator [seed, b, s, 1]."""
    loader = dataset.loader(8, **BATCHING, accumulate=2)
    for step, batches in zip(range(1, 4), loader.steps(), strict=False):
        for number, batch in enumerate(batches):
            sentences = [ids[(ids != PAD) & (ids != END)].tolist() for ids in original(batch)]
            expected = masked_batch(sentences, 11, np.random.default_rng([3, number, step, 1]))
            np.testing.assert_array_equal(batch.ids, expected.ids)


def test_long_sentences_are_divided_and_nothing_is_lost(dataset):
    """A model that reads 4 tokens gets pieces of 3, with the end symbol."""
    loader = dataset.loader(4, **BATCHING)
    assert max(map(len, loader.examples)) == 3
    pieces, sentences = (np.concatenate(parts).tolist() for parts in (loader.examples, dataset.train))
    assert pieces == sentences
    assert next(loader.steps())[0].ids.shape[1] <= 4


def test_pieces_without_a_known_word_are_left_out(tmp_path):
    """In them nothing could be hidden."""
    path = tmp_path / "rare.en"
    path.write_text("zebra gnu\nthe dog\nthe yak okapi emu\nthe dog\nthe dog\n", encoding="utf-8")
    dataset = sentence_dataset(path, min_count=2)
    assert len(dataset.train) == 4
    assert len(dataset.loader(10, **BATCHING).examples) == 3
    assert len(dataset.loader(2, **BATCHING).examples) == 5  # the, dog, the, the, dog
    for batches in zip(range(20), dataset.loader(2, batch_size=1).steps(), strict=False):
        assert batches[1][0].tokens == 1


def test_the_vocabulary(file):
    dataset = sentence_dataset(file, vocab_size=7)
    assert dataset.codec.tokens == (*SPECIALS, "the", "sees", MASK)
    assert dataset.loader(8, **BATCHING).make([[4, 5]], np.random.default_rng(0)).ids.max() <= 6
    assert "eats" not in sentence_dataset(file, min_count=9).codec.tokens
    file.write_text("The cat\nthe Dog\n", encoding="utf-8")
    assert sentence_dataset(file).codec.tokens == (*SPECIALS, "cat", "the", MASK)
    cased = sentence_dataset(file, lowercase=False)
    assert cased.codec.tokens == (*SPECIALS, "The", "cat", MASK)
    assert cased.remarks == []
    assert sentence_dataset(file).remarks == [
        "the text has capitals and is converted to lower case: --cased keeps the capitals"
    ]


def test_the_description_makes_the_dataset_again(file, tmp_path, monkeypatch):
    dataset = sentence_dataset(file, vocab_size=9, min_count=2, lowercase=False)
    monkeypatch.chdir(tmp_path)
    again = open_dataset(dataset.description)
    assert isinstance(again, SentenceDataset)
    assert (again.train, again.valid, again.codec) == (dataset.train, dataset.valid, dataset.codec)
    assert again.fingerprint == dataset.fingerprint
    assert sentence_dataset(file, vocab_size=8).fingerprint != dataset.fingerprint


@pytest.mark.parametrize(
    ("text", "settings", "sentence"),
    [
        ("the cat\n\n", {}, "animals.en has 1 line with text, and one is for validation"),
        ("", {}, "is empty: give a file with one sentence a line"),
        ("a b\nc d\n", {"vocab_size": 5}, "vocab_size is 5: it must be more than 5, the number of special"),
        ("a b\nc d\n", {"min_count": 2}, "no word of the sentences occurs 2 times or more"),
        ("a b\nc d\n", {"min_count": 0}, "min_count is 0: it must be a whole number, 1 or more"),
    ],
)
def test_files_and_settings_that_cannot_be_used(file, text, settings, sentence):
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=sentence):
        sentence_dataset(file, **settings)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda d: config(d, vocab_size=13), "vocab_size is 13, but the dataset's vocabulary has 12 entries"),
        (lambda d: config(d, pad_id=1), "pad_id is 1: the vocabulary has padding at 0"),
        (lambda d: config(d, max_length=1), "max_length is 1: it must be 2 or more, for a word and the end"),
        (lambda d: GPTConfig(**d.sizes), "the model reads text and the dataset has sentences"),
    ],
)
def test_a_model_must_fit(dataset, make, sentence):
    dataset.check_model(config(dataset))
    with pytest.raises(UserError, match=sentence):
        dataset.check_model(make(dataset))
