"""Averaging checkpoints, and a run that averages its last snapshots, with and without interruptions."""

import dataclasses
import math

import numpy as np
import pytest
from training_runs import assert_same, losses, stop_after
from training_worker import tiny_dataset, tiny_model, tiny_run, tiny_training

from npformer import UserError
from npformer.data import DataLoader
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import load_checkpoint, save_checkpoint
from npformer.training import (
    Averaged,
    RunFolder,
    Saved,
    average,
    evaluate,
    read_log,
    resume,
    train,
    validator,
)
from npformer.training.presets import find_preset

AVERAGING = {"average_last": 3, "average_every": 4}


def entries(run_dir):
    return [entry for entry in read_log(run_dir) if "averaged" in entry]


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    run = tmp_path_factory.mktemp("averaged") / "run"
    tiny_run(run, **AVERAGING)
    return run


@pytest.fixture(scope="module")
def moments(unbroken):
    """Load the snapshots of the unbroken run."""
    return [load_checkpoint(path) for path in RunFolder(unbroken).snapshots()]


def test_the_mean_of_two_computed_by_hand(moments):
    one, two = moments[:2]
    result = average([one, two])
    for name, value in result.parameters.items():
        a, b = one.parameters[name].astype(float), two.parameters[name].astype(float)
        assert value.dtype == np.float32
        np.testing.assert_array_equal(value, ((a + b) / 2).astype(np.float32), strict=True)
    assert (result.step, result.m, result.v) == (two.step, None, None)


def test_the_mean_of_one_or_of_equal_checkpoints_is_the_same_checkpoint(moments):
    for copies in (1, 2, 7):
        result = average([moments[0]] * copies)
        for name, value in moments[0].parameters.items():
            assert np.array_equal(result.parameters[name], value), name


def test_small_differences_are_not_lost_in_the_sum(moments):
    """Average numbers near 1 that differ in their last bits, which a sum in float32 would lose."""
    ones = {"x": np.ones(3, np.float32)}
    up = {"x": np.full(3, 1 + 2.0**-22, np.float32)}
    many = [dataclasses.replace(moments[0], parameters=each) for each in (ones, up) * 500]
    assert average(many).parameters["x"].tolist() == [1 + 2.0**-23] * 3


def test_no_checkpoints_and_checkpoints_of_other_models_are_refused(tmp_path, moments):
    with pytest.raises(UserError, match="no checkpoints to average"):
        average([])
    tiny_run(tmp_path / "wide", model={"d_ff": 32}, steps=1)
    with pytest.raises(UserError, match=r"of step \d+ and \d+ have different models or vocabularies"):
        average([moments[0], load_checkpoint(tmp_path / "wide" / "last.safetensors")])
    tiny_run(tmp_path / "words", data={"vocab": 13}, model={"target_vocab": 13}, steps=1)
    with pytest.raises(UserError, match="different models or vocabularies"):
        average([load_checkpoint(tmp_path / "words" / "last.safetensors"), moments[0]])


def test_a_run_averages_its_last_snapshots(unbroken, moments):
    assert [each.step for each in moments] == [12, 16, 20]
    assert all(each.m is None for each in moments)
    averaged = load_checkpoint(unbroken / "averaged.safetensors")
    for name, value in averaged.parameters.items():
        assert np.array_equal(value, average(moments).parameters[name])
    # the snapshot of the last step is the model of the last checkpoint
    last = load_checkpoint(unbroken / "last.safetensors")
    assert all(
        np.array_equal(moments[-1].parameters[name], last.parameters[name]) for name in last.parameters
    )


def test_the_average_is_evaluated_on_the_validation_sentences(unbroken):
    (entry,) = entries(unbroken)
    model = model_from_checkpoint(load_checkpoint(unbroken / "averaged.safetensors"))
    measured = evaluate(model, DataLoader(tiny_dataset().valid, **tiny_training().batching).epoch())
    assert entry["averaged"] == 3
    assert entry["averaged_loss"] == measured.loss
    assert entry["averaged_accuracy"] == measured.accuracy
    assert entry["averaged_objective"] == measured.objective


@pytest.mark.parametrize("better", [True, False])
def test_the_best_checkpoint_is_the_better_of_the_average_and_the_best_step(tmp_path, monkeypatch, better):
    plain, calls = validator.evaluate, []

    def spoiled(model, batches):
        calls.append(True)
        found = plain(model, batches)
        return found._replace(objective=0.5 if better else 99.0) if len(calls) == 8 else found

    monkeypatch.setattr(validator, "evaluate", spoiled)
    run, events = RunFolder(tmp_path / "run"), []
    tiny_run(run.path, **AVERAGING, report=events.append)
    assert len(calls) == 8  # after steps 3, 6 ... 18 and 20, and for the average
    (told,) = (event for event in events if isinstance(event, Averaged))
    assert (told.step, told.snapshots, told.best) == (20, 3, better)
    best, averaged, last = (load_checkpoint(path) for path in (run.best, run.averaged, run.last))
    same = all(np.array_equal(best.parameters[name], averaged.parameters[name]) for name in best.parameters)
    assert same == better
    assert last.best_loss == best.best_loss == (0.5 if better else min(best_objectives(run.path)))
    assert [event.path for event in events if isinstance(event, Saved)].count(run.averaged) == 1


def best_objectives(run_dir):
    return [entry["valid_objective"] for entry in read_log(run_dir) if "valid_objective" in entry]


def assert_same_files(run, other):
    assert_same(run, other)
    names = sorted(path.name for path in other.iterdir())
    assert sorted(path.name for path in run.iterdir()) == names
    for name in names:
        if name.endswith(".safetensors"):
            assert (run / name).read_bytes() == (other / name).read_bytes(), name


@pytest.mark.parametrize("stops", [(1,), (13, 3), (16,), (19,), (4,) * 4])
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(tmp_path, unbroken, stops):
    run = tmp_path / "run"
    for index, steps in enumerate(stops):
        tiny_run(run, **AVERAGING, stop=stop_after(steps), resume=index > 0)
    assert tiny_run(run, **AVERAGING, resume=True).finished
    assert_same_files(run, unbroken)


def test_snapshots_after_the_last_checkpoint_are_replaced(tmp_path, unbroken):
    """After a crash there are snapshots of steps that the resumed run makes again."""
    run = RunFolder(tmp_path / "run")
    tiny_run(run.path, **AVERAGING, stop=stop_after(13))
    late = load_checkpoint(unbroken / "averaged.safetensors")  # its parameters differ from those of step 16
    for step in (14, 15, 16):
        save_checkpoint(late, run.snapshot(step))
    tiny_run(run.path, **AVERAGING, resume=True)
    assert_same_files(run.path, unbroken)


def test_averaging_does_not_change_the_steps(tmp_path, unbroken):
    tiny_run(tmp_path / "run")
    plain = losses(tmp_path / "run")
    assert [entry for entry in losses(unbroken) if "averaged" not in entry] == plain
    assert not (tmp_path / "run" / "averaged.safetensors").exists()
    assert RunFolder(tmp_path / "run").snapshots() == []


def test_a_damaged_snapshot_is_left_out(tmp_path):
    run = RunFolder(tmp_path / "run")
    tiny_run(run.path, **AVERAGING, stop=stop_after(17))
    path = run.snapshot(12)
    path.write_bytes(path.read_bytes()[:-9])
    tiny_run(run.path, **AVERAGING, resume=True)
    assert entries(run.path)[0]["averaged"] == 2
    expected = average([load_checkpoint(run.snapshot(step)) for step in (16, 20)])
    found = load_checkpoint(run.averaged)
    assert all(np.array_equal(found.parameters[name], expected.parameters[name]) for name in found.parameters)


def test_a_run_too_short_for_two_snapshots_has_no_average(tmp_path):
    tiny_run(tmp_path / "run", average_last=3, average_every=15)
    assert entries(tmp_path / "run") == []
    assert not (tmp_path / "run" / "averaged.safetensors").exists()


def test_without_validation_sentences_there_is_an_average_but_no_best(tmp_path):
    dataset = dataclasses.replace(tiny_dataset(), valid=[])
    events = []
    train(tmp_path / "run", dataset, tiny_model(dataset), tiny_training(**AVERAGING), report=events.append)
    (told,) = (event for event in events if isinstance(event, Averaged))
    assert (told.loss, told.best) == (None, False)
    assert not (tmp_path / "run" / "best.safetensors").exists()


def test_an_average_translates_but_cannot_be_trained_further(tmp_path, unbroken):
    run = RunFolder(tmp_path / "run")
    tiny_run(run.path, **AVERAGING)
    run.last.write_bytes(run.averaged.read_bytes())
    with pytest.raises(UserError, match=r"last\.safetensors is an average: without"):
        resume(run.path)
    # nor is an average suggested as a checkpoint to resume from
    run.last.write_bytes(b"broken")
    run.best.write_bytes(run.averaged.read_bytes())
    with pytest.raises(UserError, match="not a complete safetensors file") as error:
        resume(run.path)
    assert "copy it" not in str(error.value)


def test_changing_the_averaging_is_refused_on_resume(tmp_path):
    tiny_run(tmp_path / "run", **AVERAGING, stop=stop_after(5))
    with pytest.raises(UserError, match="average_every is 5 here but 4 in the checkpoint"):
        resume(tmp_path / "run", changes={"average_every": 5})


# the number of steps with a decay


DECAY = {"schedule": "warmup", "warmup_steps": 3, "decay_share": 0.2}


def test_a_run_can_be_made_longer_before_its_decay_begins(tmp_path):
    tiny_run(tmp_path / "whole", steps=30, **DECAY)
    tiny_run(tmp_path / "parts", steps=20, **DECAY, stop=stop_after(16))
    assert resume(tmp_path / "parts", changes={"steps": 30}).finished
    ours, theirs = (load_checkpoint(tmp_path / run / "last.safetensors") for run in ("parts", "whole"))
    assert all(np.array_equal(ours.parameters[name], theirs.parameters[name]) for name in ours.parameters)


@pytest.mark.parametrize(("done", "steps"), [(17, 30), (20, 30), (13, 15)])
def test_a_run_cannot_be_made_longer_after_its_decay_has_begun(tmp_path, done, steps):
    tiny_run(tmp_path / "run", steps=20, **DECAY, stop=stop_after(done))
    with pytest.raises(UserError, match=f"steps is {steps} here but 20 in the checkpoint"):
        resume(tmp_path / "run", changes={"steps": steps})


def test_the_preset_averages_within_its_decay():
    for name in ("multi30k-en-de", "multi30k-en-de-short"):
        config = find_preset(name).training
        first = config.steps - (config.average_last - 1) * config.average_every
        assert config.steps % config.average_every == 0
        assert math.isclose(config.decay_share, 0.2)
        assert first >= 0.8 * config.steps
