"""Averaging checkpoints, and a run that averages its last snapshots, with and without interruptions."""

import dataclasses

import numpy as np
import pytest
from training_runs import assert_same, logged, stop_after
from training_worker import tiny_run

from npformer import UserError
from npformer.storage.checkpoint import load_checkpoint, save_checkpoint
from npformer.training import Averaged, RunFolder, Saved, average, resume, validator

AVERAGING = {"average_last": 3, "average_every": 4}


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Return the folder of a finished run that no test changes."""
    run = RunFolder(tmp_path_factory.mktemp("averaged") / "run")
    tiny_run(run.path, **AVERAGING)
    return run


@pytest.fixture(scope="module")
def moments(unbroken):
    """Load the snapshots of the unbroken run."""
    return [load_checkpoint(path) for path in unbroken.snapshots()]


@pytest.fixture
def run(tmp_path):
    """Return the folder of a run that does not exist yet."""
    return RunFolder(tmp_path / "run")


def same_parameters(one, other):
    return all(np.array_equal(one.parameters[name], value) for name, value in other.parameters.items())


def told_of_average(events):
    (told,) = (event for event in events if isinstance(event, Averaged))
    return told


def test_the_mean_of_two_computed_by_hand(moments):
    one, two = moments[:2]
    result = average([one, two])
    for name, value in result.parameters.items():
        a, b = one.parameters[name].astype(float), two.parameters[name].astype(float)
        np.testing.assert_array_equal(value, ((a + b) / 2).astype(np.float32), strict=True)
    assert (result.step, result.m, result.v) == (two.step, None, None)


def test_no_checkpoints_and_checkpoints_of_other_models_are_refused(moments):
    one = moments[0]
    with pytest.raises(UserError, match="no checkpoints to average"):
        average([])
    wide = dataclasses.replace(one, model_settings=one.model_settings | {"d_ff": 32})
    words = dataclasses.replace(one, codecs=one.codecs | {"target": {}})
    for other in (wide, words):
        with pytest.raises(UserError, match="of step 12 and 12 have different models or vocabularies"):
            average([one, other])


def test_a_run_averages_its_last_snapshots(unbroken, moments):
    assert [each.step for each in moments] == [12, 16, 20]
    assert all(each.m is None for each in moments)
    assert same_parameters(load_checkpoint(unbroken.averaged), average(moments))
    assert same_parameters(load_checkpoint(unbroken.last), moments[-1])


@pytest.mark.parametrize("better", [True, False])
def test_the_best_checkpoint_is_the_better_of_the_average_and_the_best_step(run, monkeypatch, better):
    plain, calls = validator.evaluate, []

    def spoiled(model, batches):
        calls.append(True)
        found = plain(model, batches)
        return found._replace(objective=0.5 if better else 99.0) if len(calls) == 8 else found

    monkeypatch.setattr(validator, "evaluate", spoiled)
    events = []
    tiny_run(run.path, **AVERAGING, report=events.append)
    assert len(calls) == 8  # after steps 3, 6 ... 18 and 20, and for the average
    told = told_of_average(events)
    assert (told.step, told.snapshots, told.best) == (20, 3, better)
    best, averaged, last = (load_checkpoint(path) for path in (run.best, run.averaged, run.last))
    assert same_parameters(best, averaged) == better
    lowest = 0.5 if better else min(logged(run.path, "valid_objective"))
    assert last.best_loss == best.best_loss == lowest
    assert [event.path for event in events if isinstance(event, Saved)].count(run.averaged) == 1


def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(run, unbroken):
    for index, steps in enumerate((4, 4, 5, 3)):
        tiny_run(run.path, **AVERAGING, stop=stop_after(steps), resume=index > 0)
    assert tiny_run(run.path, **AVERAGING, resume=True).finished
    assert_same(run.path, unbroken.path)


def test_snapshots_after_the_last_checkpoint_are_replaced(run, unbroken):
    """After a crash there are snapshots of steps that the resumed run makes again."""
    tiny_run(run.path, **AVERAGING, stop=stop_after(13))
    late = load_checkpoint(unbroken.averaged)  # its parameters differ from those of step 16
    for step in (14, 15, 16):
        save_checkpoint(late, run.snapshot(step))
    tiny_run(run.path, **AVERAGING, resume=True)
    assert_same(run.path, unbroken.path)


def test_a_damaged_snapshot_is_left_out(run):
    tiny_run(run.path, **AVERAGING, stop=stop_after(17))
    path = run.snapshot(12)
    path.write_bytes(path.read_bytes()[:-9])
    tiny_run(run.path, **AVERAGING, resume=True)
    assert logged(run.path, "averaged") == [2]
    expected = average([load_checkpoint(run.snapshot(step)) for step in (16, 20)])
    assert same_parameters(load_checkpoint(run.averaged), expected)


def test_an_average_cannot_be_trained_further(run, unbroken):
    averaged = unbroken.averaged.read_bytes()
    run.path.mkdir()
    run.last.write_bytes(averaged)
    with pytest.raises(UserError, match=r"last\.safetensors is an average: without"):
        resume(run.path)
    # nor is an average suggested as a checkpoint to resume from
    run.last.write_bytes(b"broken")
    run.best.write_bytes(averaged)
    with pytest.raises(UserError, match="not a complete safetensors file") as error:
        resume(run.path)
    assert "copy it" not in str(error.value)
