"""The training loop: equal to the bit after any interruption, with a clear message if it cannot continue."""

import json
import shutil
import signal
import threading

import numpy as np
import pytest
from training_runs import around_update, assert_same, logged, losses, stop_after
from training_worker import tiny_run

from npformer import UserError
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import load_checkpoint, save_checkpoint
from npformer.training import (
    Noted,
    RunFolder,
    Saved,
    Stepped,
    Stopped,
    read_log,
    resume,
    validator,
    workers,
)
from npformer.training import step as training_step
from npformer.training.optimizer import cosine
from npformer.training.workers import Workers


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Return a finished run that no test changes."""
    run = tmp_path_factory.mktemp("unbroken") / "run"
    tiny_run(run)
    return run


@pytest.fixture
def run(tmp_path):
    """Return the folder of a run that does not exist yet."""
    return tmp_path / "run"


def last(run):
    return load_checkpoint(run / "last.safetensors")


def test_the_same_seed_gives_the_same_losses_and_weights(run, tmp_path, unbroken):
    tiny_run(run)
    assert_same(run, unbroken)
    tiny_run(tmp_path / "other", seed=8)
    assert losses(tmp_path / "other") != losses(unbroken)


@pytest.mark.parametrize("stops", [(6, 1, 2), (1,) * 19])
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(run, unbroken, stops):
    done = 0
    for steps in stops:
        result = tiny_run(run, stop=stop_after(steps), resume=done > 0)
        done += steps
        assert (result.step, result.finished) == (done, False)
        assert result.message == f"stopped after step {done}; resume with: npformer train --resume {run}"
    assert tiny_run(run, resume=True).finished
    assert_same(run, unbroken)


HARD = {"batch_size": None, "batch_tokens": 40, "accumulate": 3, "schedule": "cosine", "warmup_steps": 4}
HARD |= {"min_learning_rate": 0.001, "weight_decay": 0.1}


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
def test_resume_with_accumulation_token_batches_and_a_schedule(tmp_path, optimizer):
    tiny_run(tmp_path / "whole", **HARD, optimizer=optimizer)
    tiny_run(tmp_path / "parts", **HARD, optimizer=optimizer, stop=stop_after(11))
    assert resume(tmp_path / "parts").finished
    assert_same(tmp_path / "parts", tmp_path / "whole")


def test_a_resumed_run_knows_the_best_loss_so_far(tmp_path):
    wild = {"learning_rate": 0.3, "validate_every": 1}
    tiny_run(tmp_path / "whole", **wild)
    best = logged(tmp_path / "whole", "best")
    stops = [step for step in range(1, 19) if best[step - 1] and not best[step]]
    assert stops, "every validation was the best so far: the test needs a wilder run"
    tiny_run(tmp_path / "parts", **wild, stop=stop_after(stops[-1]))
    tiny_run(tmp_path / "parts", **wild, resume=True)
    assert_same(tmp_path / "parts", tmp_path / "whole")


@pytest.mark.parametrize("added_later", [(), ("min_learning_rate", "weight_decay", "optimizer")])
def test_resume_reads_all_settings_from_the_checkpoint(run, unbroken, added_later):
    """Those that were added to npformer after the run began have their defaults."""
    tiny_run(run, stop=stop_after(5))
    checkpoint = last(run)
    for name in added_later:
        del checkpoint.training_settings[name]
    save_checkpoint(checkpoint, run / "last.safetensors")
    assert resume(run).finished
    assert_same(run, unbroken)
    assert resume(run).message.startswith("finished after step 20")


def test_a_resumed_run_cuts_the_log_at_its_checkpoint(run, tmp_path, unbroken):
    tiny_run(run, stop=stop_after(6))
    shutil.copy(run / "last.safetensors", tmp_path / "kept")
    tiny_run(run, stop=stop_after(5), resume=True)
    shutil.copy(tmp_path / "kept", run / "last.safetensors")  # as after a crash
    with open(run / "log.jsonl", "ab") as log:
        log.write(b'{"step": 12, "lo')
    tiny_run(run, resume=True)
    assert_same(run, unbroken)
    seconds = logged(run, "seconds")
    assert seconds == sorted(seconds)


def test_events_are_in_order_and_agree_with_the_log(run):
    events = []
    tiny_run(run, steps=4, validate_every=4, report=events.append)
    names = [type(event).__name__ for event in events]
    assert " ".join(names[:7]) == "Saved Started Stepped Stepped Saved Stepped Stepped"
    assert " ".join(names[7:]) == "Validated Saved Saved Stopped"
    assert logged(run, "loss") == [event.loss for event in events if isinstance(event, Stepped)]
    assert events[1].parameters == model_from_checkpoint(last(run)).count_parameters()
    folder = RunFolder(run)
    assert [event.path for event in events if isinstance(event, Saved)][2:] == [folder.best, folder.last]


def test_best_is_the_checkpoint_of_the_lowest_objective(unbroken):
    log = [entry for entry in read_log(unbroken) if "valid_objective" in entry]
    valid = {entry["step"]: entry["valid_objective"] for entry in log}
    assert list(valid) == [3, 6, 9, 12, 15, 18, 20]
    best = load_checkpoint(unbroken / "best.safetensors")
    assert best.step == min(valid, key=valid.get)
    assert best.best_loss == min(valid.values())


def test_log_lines_are_strict_json_at_the_requested_steps(run):
    tiny_run(run, log_every=6)

    def refuse(word):
        raise AssertionError(word)

    lines = (run / "log.jsonl").read_text().splitlines()
    entries = [json.loads(line, parse_constant=refuse) for line in lines]
    assert [entry["step"] for entry in entries if "loss" in entry] == [6, 12, 18, 20]
    assert all(entry["tokens_per_second"] > 0 for entry in entries if "loss" in entry)


@pytest.mark.parametrize("drawn_on", ["host", "device"])
def test_on_a_device_the_losses_are_the_same_after_an_interruption(
    device, run, tmp_path, unbroken, monkeypatch, drawn_on
):
    """The tolerance is for sums in another order. If the host draws the dropout, it has the same losses."""
    whole = unbroken
    if drawn_on == "host":
        monkeypatch.setattr(training_step, "generator_near", lambda rng, reference: rng)
    else:
        whole = tmp_path / "whole"
        tiny_run(whole, backend="cupy")
    tiny_run(run, backend="cupy", stop=stop_after(9))
    assert resume(run).finished
    for ours, theirs in zip(losses(run), losses(whole), strict=True):
        assert ours == pytest.approx(theirs, rel=2e-3)


# Ctrl-C


@pytest.mark.parametrize("times", [1, 2])
def test_ctrl_c_during_an_update_saves_only_complete_steps(run, unbroken, monkeypatch, times):
    """The first one waits for the end of the step, and the second one ends at once."""

    def interrupt(adam):
        if times == 2:
            adam.model.values *= 2  # half of an update
        for _ in range(times):
            signal.raise_signal(signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patch:
        around_update(patch, 7, before=interrupt)
        result = tiny_run(run)
    complete = 7 if times == 1 else 6
    assert result.step == last(run).step == complete
    assert f"stopped after step {complete}; resume with" in result.message
    assert signal.getsignal(signal.SIGINT) is before
    tiny_run(run, resume=True)
    assert_same(run, unbroken)


@pytest.mark.parametrize("kind", [Stepped, Stopped])
def test_a_signal_at_the_very_end_is_not_lost(run, kind):
    def report(event):
        if isinstance(event, kind) and event.step == event.steps:
            signal.raise_signal(signal.SIGINT)

    result = tiny_run(run, steps=2, report=report)
    assert result.finished
    with pytest.raises(KeyboardInterrupt):
        result.require_finished()


def test_it_runs_in_a_thread_that_cannot_handle_signals(run, unbroken):
    thread = threading.Thread(target=tiny_run, args=[run])
    thread.start()
    thread.join()
    assert_same(run, unbroken)


# Errors that end a run


def test_an_update_that_leaves_nan_stops_and_names_the_parameter(run, monkeypatch):
    def spoil(adam):
        adam.model.decoder[0].cross.output.weight.value[0] = np.nan

    name = r"decoder\.layers\.0\.cross\.output\.weight"
    message = rf"stopped at step 8: .*parameter {name} \(8, 8\).*NaN; .*of step 6"
    with monkeypatch.context() as patch:
        around_update(patch, 8, after=spoil)
        with pytest.raises(UserError, match=message):
            tiny_run(run)
    assert last(run).step == 6
    assert tiny_run(run, resume=True).finished


def test_a_validation_loss_of_nan_stops_as_well(run, monkeypatch):
    plain = validator.evaluate

    def spoiled(model, batches):
        model.source.tokens.weight.value[5:] = np.nan
        return plain(model, batches)

    monkeypatch.setattr(validator, "evaluate", spoiled)
    message = r"at the validation after step 3: .*source\.tokens\.weight .*of step 2"
    with pytest.raises(UserError, match=message):
        tiny_run(run)


def test_a_gradient_of_nan_stops_before_the_update(run, monkeypatch):
    plain, calls = Workers.sum_over, []

    def spoiled(workers, *arguments):
        result = plain(workers, *arguments)
        calls.append(workers)
        if len(calls) == 5:
            workers.models[0].encoder[0].feed_forward.inner.weight.grad[3] = np.inf
        return result

    monkeypatch.setattr(Workers, "sum_over", spoiled)
    name = r"encoder\.layers\.0\.feed_forward\.inner\.weight"
    with pytest.raises(UserError, match=rf"stopped at step 5: .*the gradient of {name} \(.*holds"):
        tiny_run(run)
    assert last(run).step == 4


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"resume": False}, "already holds a run: continue it with npformer train --resume"),
        ({"model": {"d_ff": 32}}, "d_ff is 32 here but 16 in the checkpoint"),
        ({"learning_rate": 0.5}, "learning_rate is 0.5 here but 0.01 in the checkpoint"),
        ({"betas": (0.9, 0.99)}, r"betas is \[0.9, 0.99\] here but \[0.9, 0.98\] in the checkpoint"),
        ({"batch_tokens": 99}, "batch_size is None here but 16 in the checkpoint"),
        ({"data": {"vocab": 13}}, "source_vocab is 13 here but 12 in the checkpoint"),
        ({"data": {"seed": 2}}, "the data are not those of the checkpoint .*kind task, task reverse"),
        ({"steps": 5}, "has made 20 steps already, so its length cannot become 5"),
    ],
)
def test_a_run_continues_only_with_the_settings_of_its_checkpoint(unbroken, changes, sentence):
    before = (unbroken / "last.safetensors").read_bytes()
    with pytest.raises(UserError, match=sentence):
        tiny_run(unbroken, **({"resume": True} | changes))
    assert (unbroken / "last.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"model": {"target_vocab": 50, "tied": "none"}},
            "target_vocab is 50, but .* target vocabulary has 12",
        ),
        ({"model": {"max_length": 5}}, "the longest sentence has 6 tokens, and the model's max_length is 5"),
        ({"model": {"pad_id": 4}}, "pad_id, start_id and end_id are 4, 2 and 3"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": 3, "workers": 2}, "threads is 3 and workers is 2: each worker has one thread"),
        ({"lengthened_after": 3}, "lengthened_after is 3: a new run has no earlier end"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_before_a_run_begins(run, changes, sentence):
    with pytest.raises(UserError, match=sentence):
        tiny_run(run, **changes)
    assert not run.exists()


def test_the_error_for_a_damaged_last_checkpoint_names_the_best_one(run, unbroken):
    shutil.copytree(unbroken, run)
    (run / "last.safetensors").write_bytes((run / "last.safetensors").read_bytes()[:-9])
    message = r"not a complete safetensors file .*best\.safetensors, of step \d+, is intact"
    with pytest.raises(UserError, match=message):
        resume(run)
    shutil.copy(run / "best.safetensors", run / "last.safetensors")
    assert resume(run).finished


# Another number of steps

COSINE = {"schedule": "cosine", "warmup_steps": 2}
DECAY = {"schedule": "warmup", "warmup_steps": 3, "decay_share": 0.2}


def test_a_finished_run_with_a_cosine_is_made_longer_by_another_cosine(run):
    told = []
    tiny_run(run, **COSINE, steps=6)
    assert last(run).training_settings["lengthened_after"] is None
    result = resume(run, changes={"steps": 16}, report=told.append)
    assert (result.step, result.finished) == (16, True)
    rates, peak = logged(run, "lr"), 0.01
    assert rates[:6] == [cosine(peak, 6, 2)(step) for step in range(1, 7)]
    assert rates[6:] == [cosine(peak, 10, 1)(step) for step in range(1, 11)]
    assert (rates[5], rates[6]) == (0, peak)
    (note,) = [event for event in told if isinstance(event, Noted)]
    assert (note.step, note.text) == (6, "made longer, to 16 steps: the learning rate decays anew")
    assert logged(run, "lengthened_to") == [16]
    assert last(run).training_settings["lengthened_after"] == 6


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
    rates = logged(tmp_path / "whole", "lr")
    assert len(rates) == 20
    assert rates[5] == rates[14] == rates[19] == 0
    assert min(rates[6:14] + rates[15:19]) > 0


@pytest.mark.parametrize(
    ("settings", "steps", "done", "longer"), [(COSINE, 6, 4, 9), (DECAY, 20, 17, 30), (DECAY, 20, 13, 15)]
)
def test_a_run_within_its_decay_is_finished_before_it_gets_another_length(run, settings, steps, done, longer):
    tiny_run(run, **settings, steps=steps, stop=stop_after(done))
    where = f"decays up to step {steps} and the run is at step {done}, so its length cannot become {longer}"
    command = r" now: finish it with npformer train --resume .*run, and make it longer then"
    with pytest.raises(UserError, match=where + command):
        resume(run, changes={"steps": longer})
    assert resume(run).step == steps


@pytest.mark.parametrize(
    ("settings", "steps", "done", "longer"),
    [({"schedule": "cosine", "warmup_steps": 4}, 6, 3, 9), (DECAY, 20, 16, 30)],
)
def test_a_run_can_change_its_length_before_its_decay_begins(tmp_path, settings, steps, done, longer):
    tiny_run(tmp_path / "whole", steps=longer, **settings)
    tiny_run(tmp_path / "parts", steps=steps, **settings, stop=stop_after(done))
    with pytest.raises(UserError, match=f"has made {done} steps already, so its length cannot become {done}"):
        resume(tmp_path / "parts", changes={"steps": done})  # its last validation would be missing
    resume(tmp_path / "parts", changes={"steps": longer})
    assert losses(tmp_path / "parts") == losses(tmp_path / "whole")
    ends = [(tmp_path / name / "last.safetensors").read_bytes() for name in ("parts", "whole")]
    assert ends[0] == ends[1]


# Threads and lengths


def test_a_resumed_run_uses_the_number_of_threads_of_its_first_part(run):
    threads, used = (workers._blas_threads() or 1) + 1, []
    tiny_run(run, threads=threads, stop=stop_after(1))
    resume(run, report=lambda event: used.append(workers._blas_threads()))
    assert last(run).threads == threads
    assert set(used) <= {threads, None}
