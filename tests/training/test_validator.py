"""Measurements during a run: BLEU of greedy translations, and the message if sacrebleu is missing."""

import sys

import pytest
import sacrebleu
from training_runs import losses, stop_after
from training_worker import MEASURED, tiny_dataset, tiny_run

from npformer.data.loader import make_batch
from npformer.generation import greedy
from npformer.pretrained import Translator
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import Noted, RunFolder, Scored, read_log, resume
from npformer.training.validator import greedy_bleu


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Return a run that measures nothing but the validation loss."""
    run = tmp_path_factory.mktemp("plain") / "run"
    tiny_run(run)
    return run


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    run, events = tmp_path_factory.mktemp("measured") / "run", []
    tiny_run(run, **MEASURED, report=events.append)
    return run, events


def test_bleu_is_that_of_translations_made_one_by_one(tmp_path):
    """Compare with sacrebleu itself, for single translations by a model that gets some words right."""
    data = {"n": 400, "length": 6, "vocab": 8}
    often = {"bleu_every": 80, "validate_every": 80, "log_every": 80}
    tiny_run(tmp_path / "run", data=data, model={"d_model": 16}, steps=80, **often)
    translator = Translator.from_checkpoint(load_checkpoint(RunFolder(tmp_path / "run").last))
    model, codec, examples = translator.model, translator.codec.target, tiny_dataset(**data).valid
    alone = [greedy(model, make_batch([each]).source, min_length=1)[0] for each in examples]
    translations = [codec.decode(ids) for ids in alone]
    references = [codec.decode(target) for _, target in examples]
    expected = sacrebleu.corpus_bleu(translations, [references]).score
    assert 5 < expected < 95
    assert greedy_bleu(model, examples, codec) == expected
    (entry,) = (entry for entry in read_log(tmp_path / "run") if "valid_bleu" in entry)
    assert (entry["step"], entry["valid_bleu"], entry["sentences"]) == (80, expected, 40)


def test_bleu_is_measured_at_the_requested_steps_and_at_the_end(measured):
    run, events = measured
    logged = [(entry["step"], entry["valid_bleu"]) for entry in read_log(run) if "valid_bleu" in entry]
    assert [step for step, _ in logged] == [5, 10, 15, 20]
    assert [(event.step, event.bleu) for event in events if isinstance(event, Scored)] == logged
    assert not any(isinstance(event, Noted) for event in events)


def test_measurements_do_not_change_the_steps_even_if_the_run_is_interrupted(tmp_path, measured, plain):
    """They are BLEU and an average at the end, which a run without them does not have."""
    ours = [entry for entry in losses(measured[0]) if not {"valid_bleu", "averaged"} & entry.keys()]
    assert ours == losses(plain)
    assert {path.name for path in plain.iterdir()} == {"best.safetensors", "last.safetensors", "log.jsonl"}
    tiny_run(tmp_path / "parts", **MEASURED, stop=stop_after(5))
    tiny_run(tmp_path / "parts", **MEASURED, stop=stop_after(7), resume=True)
    resume(tmp_path / "parts")
    assert losses(tmp_path / "parts") == losses(measured[0])


@pytest.mark.parametrize("every", [5, None])
def test_without_sacrebleu_a_run_with_bleu_has_one_message_and_continues(tmp_path, monkeypatch, plain, every):
    monkeypatch.setitem(sys.modules, "sacrebleu", None)  # as if it were not installed
    events = []
    assert tiny_run(tmp_path / "run", bleu_every=every, report=events.append).finished
    notes = [event.text for event in events if isinstance(event, Noted)]
    message = "BLEU needs sacrebleu, which is not installed: pip install sacrebleu"
    assert [message in note and note.endswith("the run continues without it") for note in notes] == (
        [True] if every else []
    )
    assert losses(tmp_path / "run") == losses(plain)
