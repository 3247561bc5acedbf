"""The model that lessons 13 and 15 share: trained once, and found again."""

import pytest
from training_worker import tiny_dataset, tiny_model, tiny_training

from npformer.course import trained as module
from npformer.course.trained import Recipe, lesson_recipe, prepare, trained
from npformer.errors import UserError
from npformer.training import RunFolder, Stepped, train
from npformer.training.matching import check_fits


def tiny_recipe(**changes):
    """Four steps on sequences of numerals; changes are to the training."""
    dataset = tiny_dataset()
    return Recipe(dataset, tiny_model(dataset), tiny_training(**({"steps": 4} | changes)))


def test_the_lessons_recipe_fits_together_and_is_always_the_same():
    recipe = lesson_recipe()
    check_fits(recipe.dataset, recipe.model)
    assert recipe.training.steps is not None
    again = lesson_recipe()
    assert recipe[1:] == again[1:]
    assert recipe.dataset.fingerprint == again.dataset.fingerprint


def test_it_trains_once_and_is_found_again(tmp_path):
    events = []
    checkpoint = trained(tmp_path / "run", recipe=tiny_recipe(), report=events.append)
    assert sum(isinstance(event, Stepped) for event in events) == 4
    assert checkpoint.training_config == tiny_recipe().training
    events.clear()
    again = trained(tmp_path / "run", recipe=tiny_recipe(), report=events.append)
    assert events == []
    assert (again.m == checkpoint.m).all()


def test_without_a_recipe_it_is_that_of_the_lessons(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "lesson_recipe", tiny_recipe)
    monkeypatch.chdir(tmp_path)
    assert trained().training_config == tiny_recipe().training
    assert (tmp_path / "runs/lesson13/best.safetensors").exists()


def test_an_empty_folder_is_to_be_trained_in(tmp_path):
    assert prepare(tmp_path, tiny_recipe())
    assert prepare(tmp_path / "not there", tiny_recipe())
    assert not (tmp_path / "not there").exists()


@pytest.mark.parametrize(
    "other",
    [
        {"steps": 5},
        {"seed": 8},
        {"learning_rate": 0.02},
    ],
    ids=str,
)
def test_a_run_of_another_recipe_makes_room(tmp_path, other):
    run = RunFolder(tmp_path)
    train(tmp_path, *tiny_recipe())
    (tmp_path / "notes.txt").write_text("mine")
    assert prepare(tmp_path, tiny_recipe(**other))
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
    assert not run.last.exists()


def test_other_sentences_are_another_recipe(tmp_path):
    train(tmp_path, *tiny_recipe())
    assert prepare(tmp_path, tiny_recipe()._replace(dataset=tiny_dataset(seed=2)))


def test_a_broken_or_missing_checkpoint_is_trained_anew(tmp_path):
    for name in ("best", "last"):
        trained(tmp_path, recipe=tiny_recipe())
        path = getattr(RunFolder(tmp_path), name)
        path.write_bytes(path.read_bytes()[:-1])
        assert prepare(tmp_path, tiny_recipe())
    trained(tmp_path, recipe=tiny_recipe())
    RunFolder(tmp_path).best.unlink()
    assert prepare(tmp_path, tiny_recipe())


def test_half_a_training_is_refused_and_begun_anew(tmp_path, monkeypatch):
    def half(folder, dataset, model, training, **settings):
        return train(folder, dataset, model, training, stop=lambda: True, **settings)

    monkeypatch.setattr(module, "train", half)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path, recipe=tiny_recipe())
    monkeypatch.undo()
    assert RunFolder(tmp_path).last.exists()
    assert trained(tmp_path, recipe=tiny_recipe()).training_config.steps == 4


def test_what_cannot_be_removed_is_named(tmp_path):
    RunFolder(tmp_path).last.mkdir()
    with pytest.raises(UserError, match=r"last\.safetensors cannot be removed"):
        prepare(tmp_path, tiny_recipe())
