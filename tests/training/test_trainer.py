"""The training loop: equal to the bit after any interruption, with a clear message if it cannot continue."""

import dataclasses
import json
import os
import shutil
import signal
import threading

import numpy as np
import pytest
from training_runs import assert_same, losses, stop_after
from training_worker import tiny_dataset, tiny_model, tiny_run, tiny_training

from npformer import UserError
from npformer.data import dataset as dataset_module
from npformer.data import loader as loader_module
from npformer.data.codecs import TextCodec
from npformer.data.tokens import LANGUAGES
from npformer.data.vocabulary import Vocabulary
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import load_checkpoint, save_checkpoint
from npformer.training import (
    Noted,
    RunFolder,
    Saved,
    Started,
    Stepped,
    Stopped,
    read_log,
    resume,
    train,
    trainer,
    validator,
)
from npformer.training import step as training_step
from npformer.training.optimizer import Adam, cosine
from npformer.training.process import interrupt_between_steps


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    run = tmp_path_factory.mktemp("unbroken") / "run"
    tiny_run(run)
    return run


def test_it_learns(tmp_path):
    data = {"n": 600, "length": 3, "vocab": 8}
    tiny_run(tmp_path / "run", data=data, model={"d_model": 16}, steps=250, validate_every=50, log_every=50)
    valid = [entry for entry in read_log(tmp_path / "run") if "valid_loss" in entry]
    assert valid[-1]["valid_loss"] < 0.5 * valid[0]["valid_loss"]
    assert valid[-1]["valid_accuracy"] > 0.8


def test_the_same_seed_gives_the_same_losses_and_weights(tmp_path, unbroken):
    tiny_run(tmp_path / "again")
    assert_same(tmp_path / "again", unbroken)
    tiny_run(tmp_path / "other", seed=8)
    assert losses(tmp_path / "other") != losses(unbroken)


@pytest.mark.parametrize("stops", [(1,), (3,), (6, 1, 2), (19,), (1,) * 19])
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(tmp_path, unbroken, stops):
    run, done = tmp_path / "run", 0
    for steps in stops:
        result = tiny_run(run, stop=stop_after(steps), resume=done > 0)
        done += steps
        assert (result.step, result.finished) == (done, False)
        assert result.message == f"stopped after step {done}; resume with: npformer train --resume {run}"
    assert tiny_run(run, resume=True).finished
    assert_same(run, unbroken)


HARD = {"batch_size": None, "batch_tokens": 40, "accumulate": 3, "schedule": "cosine", "warmup_steps": 4}
HARD |= {"min_learning_rate": 0.001, "weight_decay": 0.1}


def test_resume_with_accumulation_token_batches_and_a_schedule(tmp_path):
    tiny_run(tmp_path / "whole", **HARD)
    tiny_run(tmp_path / "parts", **HARD, stop=stop_after(11))
    assert resume(tmp_path / "parts").finished
    assert_same(tmp_path / "parts", tmp_path / "whole")


def test_a_resumed_run_knows_the_best_loss_so_far(tmp_path):
    wild = {"learning_rate": 0.3, "validate_every": 1}
    tiny_run(tmp_path / "whole", **wild)
    best = [entry["best"] for entry in read_log(tmp_path / "whole") if "best" in entry]
    stops = [step for step in range(1, 19) if best[step - 1] and not best[step]]
    assert stops, "every validation was the best so far: the test needs a wilder run"
    tiny_run(tmp_path / "parts", **wild, stop=stop_after(stops[-1]))
    tiny_run(tmp_path / "parts", **wild, resume=True)
    assert_same(tmp_path / "parts", tmp_path / "whole")


def test_resume_reads_all_settings_from_the_checkpoint(tmp_path, unbroken):
    tiny_run(tmp_path / "run", stop=stop_after(5))
    assert resume(tmp_path / "run").finished
    assert_same(tmp_path / "run", unbroken)
    assert resume(tmp_path / "run").message.startswith("finished after step 20")


def test_a_checkpoint_without_the_settings_that_were_added_later_resumes(tmp_path, unbroken):
    run = tmp_path / "run"
    tiny_run(run, stop=stop_after(5))
    checkpoint = load_checkpoint(run / "last.safetensors")
    for name in ("min_learning_rate", "weight_decay"):
        del checkpoint.training_settings[name]
    save_checkpoint(checkpoint, run / "last.safetensors")
    assert resume(run).finished
    assert_same(run, unbroken)


def test_weight_decay_reaches_the_optimizer_of_a_run(tmp_path, unbroken):
    tiny_run(tmp_path / "run", weight_decay=0.5)
    ours, theirs = (
        load_checkpoint(run / "last.safetensors").parameters for run in (tmp_path / "run", unbroken)
    )
    name = "encoder.layers.0.feed_forward.inner.weight"
    assert np.linalg.norm(ours[name]) < 0.95 * np.linalg.norm(theirs[name])


def test_a_finished_run_can_be_made_longer(tmp_path, unbroken):
    tiny_run(tmp_path / "run", steps=11)
    resume(tmp_path / "run", changes={"steps": 20})
    ours, theirs = (load_checkpoint(run / "last.safetensors") for run in (tmp_path / "run", unbroken))
    assert ours.step == 20
    for name, value in theirs.parameters.items():
        assert np.array_equal(ours.parameters[name], value), name


def test_a_resumed_run_cuts_the_log_at_its_checkpoint(tmp_path, unbroken):
    run = tmp_path / "run"
    tiny_run(run, stop=stop_after(6))
    shutil.copy(run / "last.safetensors", tmp_path / "kept")
    tiny_run(run, stop=stop_after(5), resume=True)
    shutil.copy(tmp_path / "kept", run / "last.safetensors")  # as after a crash
    with open(run / "log.jsonl", "ab") as log:
        log.write(b'{"step": 12, "lo')
    tiny_run(run, resume=True)
    assert_same(run, unbroken)
    seconds = [entry["seconds"] for entry in read_log(run)]
    assert seconds == sorted(seconds)


def test_events_are_in_order_and_agree_with_the_log(tmp_path):
    events = []
    tiny_run(tmp_path / "run", steps=4, validate_every=4, report=events.append)
    names = [type(event).__name__ for event in events]
    assert " ".join(names[:7]) == "Saved Started Stepped Stepped Saved Stepped Stepped"
    assert " ".join(names[7:]) == "Validated Saved Saved Stopped"
    logged = [entry["loss"] for entry in read_log(tmp_path / "run") if "loss" in entry]
    assert logged == [event.loss for event in events if isinstance(event, Stepped)]
    run = RunFolder(tmp_path / "run")
    assert events[1].parameters == model_from_checkpoint(load_checkpoint(run.last)).count_parameters()
    assert [event.path for event in events if isinstance(event, Saved)][2:] == [run.best, run.last]


def test_best_is_the_checkpoint_of_the_lowest_objective(unbroken):
    log = [entry for entry in read_log(unbroken) if "valid_objective" in entry]
    valid = {entry["step"]: entry["valid_objective"] for entry in log}
    assert list(valid) == [3, 6, 9, 12, 15, 18, 20]
    best = load_checkpoint(unbroken / "best.safetensors")
    assert best.step == min(valid, key=valid.get)
    assert best.best_loss == min(valid.values())


def test_log_lines_are_strict_json_at_the_requested_steps(tmp_path):
    tiny_run(tmp_path / "run", log_every=6)

    def refuse(word):
        raise AssertionError(word)

    lines = (tmp_path / "run" / "log.jsonl").read_text().splitlines()
    entries = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [entry["step"] for entry in entries if "loss" in entry] == [6, 12, 18, 20]
    assert all(entry["tokens_per_second"] > 0 for entry in entries if "loss" in entry)


@pytest.mark.parametrize("k", [4, 16, 28, 60])
def test_the_memory_addresses_of_the_buffers_change_no_bit(monkeypatch, tmp_path, unbroken, k):
    def shifted(array):
        raw = np.zeros(array.nbytes + 128, np.uint8)
        start = -raw.ctypes.data % 64 + k
        view = raw[start : start + array.nbytes].view(array.dtype)
        view[:] = array
        return view

    class ShiftedAdam(Adam):
        def __init__(self, model, **settings):
            model._view(model.parameters(), shifted(model.values), shifted(model.grads))
            super().__init__(model, **settings)
            self.m, self.v = shifted(self.m), shifted(self.v)

    def make(config, model):
        return ShiftedAdam(model, betas=config.betas, eps=config.eps)

    monkeypatch.setattr(trainer, "make_optimizer", make)
    tiny_run(tmp_path / "run")
    assert_same(tmp_path / "run", unbroken)


def test_on_a_device_the_losses_are_the_same(device, tmp_path, unbroken, monkeypatch):
    """Dropout is included, because the host draws its random numbers for both."""
    monkeypatch.setattr(training_step, "generator_near", lambda rng, reference: rng)
    tiny_run(tmp_path / "run", backend="cupy", stop=stop_after(9))
    assert resume(tmp_path / "run").finished
    for ours, theirs in zip(losses(tmp_path / "run"), losses(unbroken), strict=True):
        for name, value in ours.items():
            assert value == pytest.approx(theirs[name], rel=2e-3), name


def test_a_device_draws_the_same_numbers_after_an_interruption(device, tmp_path):
    """Dropout is drawn on the device, which may sum in another order, hence the tolerance."""
    tiny_run(tmp_path / "whole", backend="cupy")
    tiny_run(tmp_path / "run", backend="cupy", stop=stop_after(9))
    assert resume(tmp_path / "run").finished
    for ours, theirs in zip(losses(tmp_path / "run"), losses(tmp_path / "whole"), strict=True):
        for name, value in ours.items():
            assert value == pytest.approx(theirs[name], rel=2e-3), name


# Ctrl-C


def test_ctrl_c_during_an_update_saves_only_the_complete_step(tmp_path, unbroken, monkeypatch):
    plain = Adam.step

    def interrupted(adam, *args):
        if adam.t == 6:
            signal.raise_signal(signal.SIGINT)
        plain(adam, *args)

    monkeypatch.setattr(Adam, "step", interrupted)
    before = signal.getsignal(signal.SIGINT)
    result = tiny_run(tmp_path / "run")
    assert result.step == 7
    assert load_checkpoint(tmp_path / "run" / "last.safetensors").step == 7
    assert signal.getsignal(signal.SIGINT) is before
    monkeypatch.undo()
    tiny_run(tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", unbroken)


def test_a_second_ctrl_c_ends_at_once_and_saves_no_incomplete_step(tmp_path, unbroken, monkeypatch):
    plain = Adam.step

    def interrupted_twice(adam, *args):
        if adam.t == 6:
            adam.model.values *= 2  # half of an update
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
        plain(adam, *args)

    monkeypatch.setattr(Adam, "step", interrupted_twice)
    result = tiny_run(tmp_path / "run")
    assert result.step == 6
    assert "stopped after step 6; resume with" in result.message
    monkeypatch.undo()
    tiny_run(tmp_path / "run", resume=True)
    assert_same(tmp_path / "run", unbroken)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGHUP")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP] if os.name != "nt" else [])
def test_other_signals_stop_a_program_that_handles_them(tmp_path, unbroken, monkeypatch, number):
    plain = Adam.step

    def interrupted(adam, *args):
        if adam.t == 6:
            signal.raise_signal(number)
        plain(adam, *args)

    monkeypatch.setattr(Adam, "step", interrupted)
    handled = []
    before = signal.signal(number, lambda signum, frame: handled.append(signum))
    try:
        result = tiny_run(tmp_path / "run")
        signal.raise_signal(number)
    finally:
        signal.signal(number, before)
    assert (result.step, result.stopped_by, handled) == (7, number, [number])
    with pytest.raises(SystemExit) as ended:
        result.require_finished()
    assert ended.value.code == 128 + number


@pytest.mark.parametrize("kind", [Stepped, Stopped])
def test_a_signal_at_the_very_end_is_not_lost(tmp_path, kind):
    def report(event):
        if isinstance(event, kind) and event.step == event.steps:
            signal.raise_signal(signal.SIGINT)

    result = tiny_run(tmp_path / "run", report=report)
    assert result.finished
    with pytest.raises(KeyboardInterrupt):
        result.require_finished()


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGHUP")
def test_signals_without_a_handler_keep_their_effect():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupt_between_steps() as request:
            assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
            signal.raise_signal(signal.SIGHUP)
            assert request.signum is None
            signal.raise_signal(signal.SIGINT)
            assert request.signum == signal.SIGINT
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGHUP, before)


def test_threads_beside_workers_are_refused(tmp_path):
    dataset = tiny_dataset()
    with pytest.raises(UserError, match="threads is 3 and workers is 2: each worker has one thread"):
        train(tmp_path / "run", dataset, tiny_model(dataset), tiny_training(), workers=2, threads=3)


def test_it_runs_in_a_thread_that_cannot_handle_signals(tmp_path, unbroken):
    thread = threading.Thread(target=tiny_run, args=[tmp_path / "run"])
    thread.start()
    thread.join()
    assert_same(tmp_path / "run", unbroken)


# Errors that end a run


def test_an_update_that_leaves_nan_stops_and_names_the_parameter(tmp_path, monkeypatch):
    plain = Adam.step

    def spoiled(adam, *args):
        plain(adam, *args)
        if adam.t == 8:
            adam.model.decoder[0].cross.output.weight.value[0] = np.nan

    monkeypatch.setattr(Adam, "step", spoiled)
    name = r"decoder\.layers\.0\.cross\.output\.weight"
    with pytest.raises(UserError, match=rf"stopped at step 8: .*parameter {name} \(8, 8\).*NaN; .*of step 6"):
        tiny_run(tmp_path / "run")
    assert load_checkpoint(tmp_path / "run" / "last.safetensors").step == 6
    monkeypatch.undo()
    assert tiny_run(tmp_path / "run", resume=True).finished


def test_a_gradient_of_nan_stops_before_the_update(tmp_path, monkeypatch):
    plain = training_step.loss_and_gradients

    def spoiled(model, batches, rngs, workers, r_drop):
        result = plain(model, batches, rngs, workers, r_drop)
        if spoiled.left == 0:
            model.encoder[0].feed_forward.inner.weight.grad[3] = np.inf
        spoiled.left -= 1
        return result

    spoiled.left = 4
    monkeypatch.setattr(training_step, "loss_and_gradients", spoiled)
    name = r"encoder\.layers\.0\.feed_forward\.inner\.weight"
    with pytest.raises(UserError, match=rf"stopped at step 5: .*the gradient of {name} \(.*holds"):
        tiny_run(tmp_path / "run")
    assert load_checkpoint(tmp_path / "run" / "last.safetensors").step == 4


def test_a_huge_learning_rate_stops_with_the_step_and_the_tensor(tmp_path):
    with pytest.raises(UserError) as error:
        tiny_run(tmp_path / "run", learning_rate=1e30, clip_norm=None)
    message = str(error.value)
    assert "training stopped at step" in message
    assert "the first bad tensor is" in message
    assert "is the last good checkpoint" in message
    checkpoint = load_checkpoint(tmp_path / "run" / "last.safetensors")
    assert all(np.isfinite(value).all() for value in checkpoint.parameters.values())


def test_a_validation_loss_of_nan_stops_as_well(tmp_path, monkeypatch):
    plain = validator.evaluate

    def spoiled(model, batches):
        model.source.tokens.weight.value[5:] = np.nan
        return plain(model, batches)

    monkeypatch.setattr(validator, "evaluate", spoiled)
    with pytest.raises(
        UserError, match=r"at the validation after step 3: .*source\.tokens\.weight .*of step 2"
    ):
        tiny_run(tmp_path / "run")


def test_a_new_run_does_not_overwrite_an_old_one(tmp_path, unbroken):
    before = (unbroken / "last.safetensors").read_bytes()
    with pytest.raises(UserError, match="already holds a run: continue it with npformer train --resume"):
        tiny_run(unbroken)
    assert (unbroken / "last.safetensors").read_bytes() == before


def test_resume_needs_a_checkpoint(tmp_path):
    with pytest.raises(UserError, match=r"there is no checkpoint .*last\.safetensors"):
        resume(tmp_path / "nowhere")
    assert not (tmp_path / "nowhere").exists()


def test_two_processes_cannot_train_in_one_folder(tmp_path):
    pytest.importorskip("fcntl")
    with RunFolder(tmp_path / "run"), pytest.raises(UserError, match="another process is training in"):
        tiny_run(tmp_path / "run")


def test_a_run_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(
        UserError, match=r"cannot be written \(File exists\): choose another folder for the run"
    ):
        tiny_run(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"model": {"d_ff": 32}}, "d_ff is 32 here but 16 in the checkpoint"),
        ({"learning_rate": 0.5}, "learning_rate is 0.5 here but 0.01 in the checkpoint"),
        ({"betas": (0.9, 0.99)}, r"betas is \[0.9, 0.99\] here but \[0.9, 0.98\] in the checkpoint"),
        ({"seed": 9}, "seed is 9 here but 7 in the checkpoint"),
        ({"batch_tokens": 99}, "batch_size is None here but 16 in the checkpoint"),
        ({"data": {"vocab": 13}}, "source_vocab is 13 here but 12 in the checkpoint"),
        ({"data": {"seed": 2}}, "the data are not those of the checkpoint .*kind task, task reverse"),
    ],
)
def test_a_checkpoint_with_other_settings_is_refused(tmp_path, changes, sentence):
    tiny_run(tmp_path / "run", steps=2)
    before = (tmp_path / "run" / "last.safetensors").read_bytes()
    with pytest.raises(UserError, match=sentence):
        tiny_run(tmp_path / "run", **({"steps": 2} | changes), resume=True)
    assert (tmp_path / "run" / "last.safetensors").read_bytes() == before


def test_a_checkpoint_with_another_vocabulary_is_refused(tmp_path):
    dataset = tiny_dataset()
    tiny_run(tmp_path / "run", steps=2)
    words = list(dataset.target.vocabulary.words)
    words[6] = "six"
    other = dataclasses.replace(dataset, target=TextCodec(Vocabulary(tuple(words)), LANGUAGES["plain"]))
    with pytest.raises(UserError, match="token 6 of the target vocabulary is 'six' here but '2' in the"):
        train(tmp_path / "run", other, tiny_model(other), tiny_training(steps=2), resume=True)


def test_a_finished_run_with_a_cosine_is_made_longer_by_another_cosine(tmp_path):
    run, told = tmp_path / "run", []
    tiny_run(run, schedule="cosine", warmup_steps=2, steps=6)
    before = load_checkpoint(run / "last.safetensors")
    result = resume(run, changes={"steps": 16}, report=told.append)
    assert (result.step, result.finished) == (16, True)
    rates = [entry["lr"] for entry in read_log(run) if "lr" in entry]
    peak = 0.01
    assert rates[:6] == [cosine(peak, 6, 2)(step) for step in range(1, 7)]
    assert rates[6:] == [cosine(peak, 10, 1)(step) for step in range(1, 11)]
    assert rates[5] == 0
    assert rates[6] == peak
    (note,) = [event for event in told if isinstance(event, Noted)]
    assert note.step == 6
    assert note.text == "made longer, to 16 steps: the learning rate decays anew"
    (entry,) = [entry for entry in read_log(run) if "lengthened_to" in entry]
    assert (entry["step"], entry["lengthened_to"]) == (6, 16)
    assert before.training_settings["lengthened_after"] is None
    assert load_checkpoint(run / "last.safetensors").training_settings["lengthened_after"] == 6


@pytest.mark.parametrize("schedule", [{"schedule": "cosine"}, {"schedule": "warmup", "decay_share": 0.5}])
def test_a_longer_run_that_is_stopped_and_resumed_equals_an_uninterrupted_one(tmp_path, schedule):
    settings = {**schedule, "warmup_steps": 2, "average_last": 2, "average_every": 3}
    for run in ("whole", "parts"):
        tiny_run(tmp_path / run, steps=6, **settings)
    resume(tmp_path / "whole", changes={"steps": 15})
    resume(tmp_path / "parts", changes={"steps": 15}, stop=stop_after(1))
    resume(tmp_path / "parts", stop=stop_after(5))
    assert resume(tmp_path / "parts").finished
    assert_same(tmp_path / "parts", tmp_path / "whole")
    # and once more
    resume(tmp_path / "whole", changes={"steps": 20})
    rates = [entry["lr"] for entry in read_log(tmp_path / "whole") if "lr" in entry]
    assert len(rates) == 20
    assert rates[5] == rates[14] == rates[19] == 0
    assert min(rates[6:14]) > 0
    assert min(rates[15:19]) > 0


def test_train_resumes_a_longer_run_with_the_settings_that_the_user_gives(tmp_path):
    """The user gives the new number of steps, and the checkpoint knows where the first end was."""
    settings = {"schedule": "cosine", "warmup_steps": 2}
    tiny_run(tmp_path / "run", steps=4, **settings)
    tiny_run(tmp_path / "run", steps=8, **settings, resume=True, stop=stop_after(1))
    assert tiny_run(tmp_path / "run", steps=8, **settings, resume=True).finished
    rates = [entry["lr"] for entry in read_log(tmp_path / "run") if "lr" in entry]
    assert rates[4:] == [cosine(0.01, 4)(step) for step in range(1, 5)]


def test_a_run_that_was_killed_right_after_it_was_made_longer_resumes_as_the_longer_run(tmp_path):
    tiny_run(tmp_path / "run", schedule="cosine", warmup_steps=2, steps=4)

    def stop_at_once(event):
        if isinstance(event, Started):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        resume(tmp_path / "run", changes={"steps": 8}, report=stop_at_once)
    assert resume(tmp_path / "run").step == 8
    assert len([entry for entry in read_log(tmp_path / "run") if "lengthened_to" in entry]) == 1


def test_a_run_within_its_decay_is_finished_before_it_is_made_longer(tmp_path):
    tiny_run(tmp_path / "run", schedule="cosine", steps=6, warmup_steps=2, stop=stop_after(4))
    words = (
        r"decays up to step 6 and the run is at step 4, so its length cannot become 9 now: finish it with "
    )
    with pytest.raises(UserError, match=words + r"npformer train --resume .*run, and make it longer then"):
        resume(tmp_path / "run", changes={"steps": 9})
    assert resume(tmp_path / "run").step == 6


def test_a_run_can_change_its_length_while_it_warms_up(tmp_path):
    cosine_from_4 = {"schedule": "cosine", "warmup_steps": 4}
    tiny_run(tmp_path / "whole", steps=9, **cosine_from_4)
    tiny_run(tmp_path / "parts", steps=6, **cosine_from_4, stop=stop_after(3))
    resume(tmp_path / "parts", changes={"steps": 9})
    assert_same(tmp_path / "parts", tmp_path / "whole")


def test_a_run_cannot_become_shorter_than_it_is(tmp_path):
    tiny_run(tmp_path / "run", steps=6)
    with pytest.raises(UserError, match="has made 6 steps already, so its length cannot become 5"):
        resume(tmp_path / "run", changes={"steps": 5})


def test_a_new_run_has_no_earlier_end(tmp_path):
    with pytest.raises(UserError, match="lengthened_after is 3: a new run has no earlier end"):
        tiny_run(tmp_path / "run", lengthened_after=3)
    assert not (tmp_path / "run").exists()


def test_the_error_for_a_damaged_last_checkpoint_names_the_best_one(tmp_path):
    run = tmp_path / "run"
    tiny_run(run)
    (run / "last.safetensors").write_bytes((run / "last.safetensors").read_bytes()[:-9])
    with pytest.raises(
        UserError, match=r"not a complete safetensors file .*best\.safetensors, of step \d+, is intact"
    ):
        resume(run)
    shutil.copy(run / "best.safetensors", run / "last.safetensors")
    assert resume(run).finished


def test_a_model_must_fit_its_data(tmp_path):
    dataset = tiny_dataset()
    for changes, sentence in (
        (
            {"target_vocab": 50, "tied": "none"},
            "target_vocab is 50, but the dataset's target vocabulary has 12",
        ),
        ({"max_length": 5}, "the longest sentence has 6 tokens, and the model's max_length is 5"),
        ({"pad_id": 4}, "pad_id, start_id and end_id are 4, 2 and 3"),
    ):
        with pytest.raises(UserError, match=sentence):
            train(tmp_path / "run", dataset, tiny_model(dataset, **changes), tiny_training())
    assert not (tmp_path / "run").exists()


def test_the_number_of_threads_is_at_least_one(tmp_path):
    with pytest.raises(UserError, match="threads is 0"):
        tiny_run(tmp_path / "run", threads=0)


def test_a_resumed_run_uses_the_number_of_threads_of_its_first_part(tmp_path):
    threads, used = (trainer._blas_threads() or 1) + 1, []
    tiny_run(tmp_path / "run", threads=threads, stop=stop_after(1))
    resume(tmp_path / "run", report=lambda event: used.append(trainer._blas_threads()))
    assert load_checkpoint(tmp_path / "run" / "last.safetensors").threads == threads
    assert set(used) <= {threads, None}


def test_lengths_are_computed_once(tmp_path, monkeypatch):
    """They are computed once for training and once for validation pairs in a run of several epochs."""
    calls, plain = [], dataset_module.example_lengths

    def counted(examples):
        calls.append(len(examples))
        return plain(examples)

    monkeypatch.setattr(dataset_module, "example_lengths", counted)
    monkeypatch.setattr(loader_module, "example_lengths", counted)
    tiny_run(tmp_path / "run", epochs=2)
    assert sorted(calls) == [9, 90]
