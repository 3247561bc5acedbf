"""Datasets: the sources of the pairs, their parts, and making them again from a description."""

import dataclasses
import json

import pytest

from npformer import UserError
from npformer.data import UNK
from npformer.data.dataset import PairDataset, builtin_dataset, files_dataset, open_dataset, task_dataset
from npformer.data.filters import Counts

ENGLISH = ["A dog runs .", "The cat sleeps .", "A cat eats the fish .", "The dog eats it .", "Dogs run ."]
FRENCH = [
    "Un chien court .",
    "Le chat dort .",
    "Un chat mange le poisson .",
    "Le chien le mange .",
    "Ils vont .",
]


@pytest.fixture
def files(tmp_path):
    def write(name, lines):
        path = tmp_path / name
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write("train.en", ENGLISH * 8), write("train.fr", FRENCH * 8)


@pytest.fixture(scope="module")
def builtin():
    return builtin_dataset()


def assert_opened_again(dataset):
    """Check that the description, written as JSON, makes an equal dataset."""
    one, other = dataset, open_dataset(json.loads(json.dumps(dataset.description)))
    for name in ("train", "valid", "test", "source", "target"):
        assert getattr(one, name) == getattr(other, name), name
    assert one.fingerprint == other.fingerprint


@pytest.mark.parametrize("settings", [{}, {"subwords": 60}])
def test_a_dataset_knows_that_capitals_were_lost(files, settings):
    assert files_dataset(*files, **settings).lost_case
    assert not files_dataset(*files, lowercase=False, **settings).lost_case
    for path in files:
        path.write_text(path.read_text(encoding="utf-8").lower(), encoding="utf-8")
    assert not files_dataset(*files, **settings).lost_case


def test_the_builtin_corpus_in_both_directions(builtin):
    back = open_dataset(json.loads(json.dumps(builtin.description | {"direction": "fr-en"})))
    assert len(builtin.train) > 10_000
    assert back.train == [(target, source) for source, target in builtin.train]
    assert (builtin.source, builtin.target) == (back.target, back.source)
    assert (builtin.source.language.name, builtin.target.language.name) == ("en", "fr")
    assert list(builtin.sizes) == ["source_vocab", "target_vocab"]
    assert [*builtin.sizes.values()] == [len(side.vocabulary) for side in (builtin.source, builtin.target)]
    assert builtin.fingerprint != back.fingerprint


def test_files_give_ids_words_and_a_validation_part(files):
    dataset = files_dataset(*files)
    assert (len(dataset.train), len(dataset.valid), len(dataset.test)) == (38, 2, 0)
    source, target = dataset.train[0]
    assert dataset.source.decode(source) == "a dog runs."
    assert dataset.target.decode(target) == "un chien court."
    assert dataset.target.language.elision
    assert_opened_again(dataset)


def test_validation_and_test_files(files, tmp_path):
    for name, lines in (("valid.en", ENGLISH[:2]), ("valid.fr", FRENCH[:2])):
        (tmp_path / name).write_text("\n".join(lines))
    more = (tmp_path / "valid.en", tmp_path / "valid.fr")
    dataset = files_dataset(*files, valid=more, test=more)
    assert (len(dataset.train), len(dataset.valid), len(dataset.test)) == (40, 2, 2)
    assert_opened_again(dataset)


def test_limits(files):
    assert len(files_dataset(*files, limit=10).train) == 9
    short = files_dataset(*files, max_length=5)
    assert short.dropped == 16
    assert max(len(side) + 1 for pair in short.train for side in pair) == 5
    assert files_dataset(*files, vocab_size=9).sizes == {"source_vocab": 9, "target_vocab": 9}
    assert "Dogs" in files_dataset(*files, lowercase=False).source.vocabulary
    rare = files_dataset(*files, min_count=9).source.vocabulary
    assert "eats" in rare
    assert "fish" not in rare


def test_tasks():
    dataset = task_dataset("reverse", n=50, length=6, vocab=9)
    assert all(target == source[::-1] for source, target in dataset.train + dataset.valid + dataset.test)
    assert (len(dataset.train), len(dataset.valid), len(dataset.test)) == (50, 5, 5)
    source = dataset.source.encode("3 0 4")
    assert source == [7, 4, 8]
    assert dataset.target.decode(source[::-1]) == "4 0 3"
    assert_opened_again(dataset)
    assert all(target == source for source, target in task_dataset("copy").train)


def test_the_fingerprint_distinguishes_datasets(files):
    fingerprints = {
        files_dataset(*files).fingerprint,
        files_dataset(*files, shared=True).fingerprint,
        files_dataset(*files, limit=12).fingerprint,
        files_dataset(*files, lowercase=False).fingerprint,
        task_dataset().fingerprint,
        task_dataset(seed=1).fingerprint,
    }
    assert len(fingerprints) == 6
    dataset = task_dataset()
    for part in ("train", "valid"):
        examples = getattr(dataset, part)
        changed = dataclasses.replace(dataset, **{part: [*examples[:-1], ([4], [5])]})
        assert changed.fingerprint not in fingerprints
    files[1].write_text("\n".join([*FRENCH * 7, *FRENCH[::-1]]))
    assert files_dataset(*files).fingerprint not in fingerprints


# --- subwords, and pairs left out ---


def test_subwords_are_shared_by_both_sides(files):
    dataset = files_dataset(*files, subwords=50, filtered=False)
    assert dataset.sizes == {"source_vocab": 50, "target_vocab": 50}
    assert dataset.source.vocabulary is dataset.target.vocabulary
    assert (dataset.source.language.name, dataset.target.language.name) == ("en", "fr")
    assert [len(part) for part in (dataset.train, dataset.valid, dataset.test)] == [38, 2, 0]
    source, target = dataset.train[0]
    assert (dataset.source.decode(source), dataset.target.decode(target)) == (
        "a dog runs .",
        "un chien court .",
    )
    assert_opened_again(dataset)


def test_subwords_are_not_learned_from_validation_sentences(files):
    for path in files:
        path.write_text(path.read_text(encoding="utf-8") + "漢\n", encoding="utf-8")
    dataset = files_dataset(*files, subwords=50, filtered=False)
    assert "漢" not in dataset.source.vocabulary
    assert UNK in dataset.valid[-1][0]


def test_pairs_left_out_are_counted(files):
    source, target = files
    source.write_text("a b\n\na b\nc d\n" + "e " * 60 + "\n" + "f g h\n", encoding="utf-8")
    target.write_text("x\ny\nx\nz\ne\n" + "w w w w\n", encoding="utf-8")
    plain = files_dataset(source, target, max_length=4)
    assert plain.counts == Counts(pairs=6, empty=1, long=2)
    dataset = files_dataset(source, target, max_length=4, filtered=True)
    assert dataset.counts == Counts(pairs=6, empty=1, long=1, uneven=1, repeated=1)
    assert dataset.dropped == 4
    assert len(dataset.train) + len(dataset.valid) == 2
    assert open_dataset(dataset.description).counts == dataset.counts


def test_a_description_from_before_subwords_existed_still_opens(files):
    dataset = files_dataset(*files)
    for name in ("subwords", "text", "filtered"):
        del dataset.description[name]
    assert_opened_again(dataset)


@pytest.mark.parametrize(
    ("make", "arguments", "sentence"),
    [
        (builtin_dataset, ["en-de"], "direction is 'en-de': choose one of en-fr, fr-en"),
        (task_dataset, ["sort"], "task is 'sort': choose one of copy, reverse"),
        (open_dataset, [{"kind": "dream"}], "no kind of dataset 'dream'"),
        (open_dataset, [{"kind": "task", "colour": 1}], "of kind 'task' has an unknown entry 'colour'"),
        (PairDataset, [[], [], [], None, None], "no training sentences"),
    ],
)
def test_invalid_descriptions_are_refused(make, arguments, sentence):
    with pytest.raises(UserError, match=sentence):
        make(*arguments)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"max_length": 1}, "max_length is 1"),
        ({"vocab_size": 2}, "max_size is 2"),
        ({"text": "tokenised"}, "text is 'tokenised', which needs subwords"),
        ({"text": "tok", "subwords": 50}, "text is 'tok': choose one of"),
        *(
            ({"subwords": 50} | other, "leave out vocab_size, min_count and shared")
            for other in ({"vocab_size": 100}, {"min_count": 2}, {"shared": True})
        ),
        *(
            (words | limit, "no pair of .* is left to train on")
            for words in ({}, {"subwords": 50})
            for limit in ({"limit": 1}, {"max_length": 2})
        ),
        ({"subwords": 0}, "subwords is 0"),
        ({"subwords": 5000}, "the largest size possible is"),
    ],
)
def test_invalid_settings_of_files_are_refused(files, settings, sentence):
    with pytest.raises(UserError, match=sentence):
        files_dataset(*files, **settings)
