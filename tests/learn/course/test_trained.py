"""The trained models of the lessons: the translator that is trained once, and the one of a short training."""

import pytest
from training_worker import tiny_dataset, tiny_model, tiny_training

from npformer.interop import export_folder
from npformer.learn.course.trained import (
    LessonTraining,
    partly_trained,
    prepare,
    short_gpt2,
    trained,
)
from npformer.training import RunFolder, Stepped, TrainingConfig, train


def tiny_recipe(**changes):
    """Return the settings of a training with four steps on sequences of digits, with changes."""
    dataset = tiny_dataset()
    return LessonTraining(dataset, tiny_model(dataset), tiny_training(**({"steps": 4} | changes)))


def test_it_trains_once_and_is_loaded_afterwards(tmp_path):
    events = []
    checkpoint = trained(tmp_path / "run", recipe=tiny_recipe(), report=events.append)
    assert sum(isinstance(event, Stepped) for event in events) == 4
    assert TrainingConfig(**checkpoint.training_settings) == tiny_recipe().training
    events.clear()
    again = trained(tmp_path / "run", recipe=tiny_recipe(), report=events.append)
    assert events == []
    assert (again.m == checkpoint.m).all()


OTHERS = [
    *(tiny_recipe(**other) for other in ({"steps": 5}, {"seed": 8}, {"learning_rate": 0.02})),
    tiny_recipe()._replace(dataset=tiny_dataset(seed=2)),
]


@pytest.mark.parametrize("other", OTHERS, ids=["steps", "seed", "learning rate", "sentences"])
def test_a_run_with_other_settings_or_sentences_is_replaced(tmp_path, other):
    train(tmp_path, *tiny_recipe())
    (tmp_path / "notes.txt").write_text("mine")
    assert prepare(tmp_path, other)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_missing_or_damaged_checkpoint_is_trained_again(tmp_path):
    assert prepare(tmp_path, tiny_recipe())
    assert prepare(tmp_path / "not there", tiny_recipe())
    assert not (tmp_path / "not there").exists()
    for name in ("best", "last"):
        trained(tmp_path, recipe=tiny_recipe())
        path = getattr(RunFolder(tmp_path), name)
        path.write_bytes(path.read_bytes()[:-1])
        assert prepare(tmp_path, tiny_recipe())
    trained(tmp_path, recipe=tiny_recipe())
    RunFolder(tmp_path).best.unlink()
    assert prepare(tmp_path, tiny_recipe())


def test_a_short_training_leaves_no_test_sentence_in_the_training_set():
    model, french, english, learned, test = partly_trained(steps=1)
    assert (len(learned), len(test)) == (2000, 300)
    sources = [tuple(source) for source, _ in learned + test]
    assert len(set(sources)) == 2300
    assert max(len(target) for _, target in learned + test) == 7
    assert (model.config.source_vocab, model.config.target_vocab) == (len(french), len(english))
    assert model.values.dtype == "float64"


def test_the_short_gpt2_has_the_parts_of_gpt2_and_learns(tmp_path):
    model, dataset, losses = short_gpt2(steps=20)
    assert losses[-1] < losses[0] - 1
    export_folder(model, tmp_path / "model", "gpt2")
    assert model.config.vocab_size == len(dataset.codec.tokens)
