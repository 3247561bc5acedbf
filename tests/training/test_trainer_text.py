"""Training of a GPT on one long text: what it computes, and that it resumes to the bit."""

import dataclasses
import math

import numpy as np
import pytest
from training_runs import assert_same, losses, runner, stop_after

from npformer import UserError
from npformer.data.codecs import codecs_from_checkpoint, text_codec_from_checkpoint
from npformer.data.dataset import task_dataset
from npformer.data.text import text_dataset
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import load_checkpoint, save_checkpoint
from npformer.training import Sampled, Validated, read_log, resume
from npformer.training.optimizer import AdamW
from npformer.training.validator import SAMPLE_TOKENS

MODEL = {"d_model": 8, "n_layers": 1, "n_heads": 2, "context": 6, "dropout": 0.1, "bias": False}
TRAINING = {
    "steps": 20,
    "batch_size": 5,
    "schedule": "cosine",
    "learning_rate": 0.01,
    "min_learning_rate": 0.001,
    "warmup_steps": 2,
    "weight_decay": 0.1,
    "clip_norm": 1.0,
    "checkpoint_every": 2,
    "validate_every": 3,
    "log_every": 1,
    "seed": 7,
}
run_on = runner(GPTConfig, MODEL, TRAINING)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "poem.txt"
    path.write_text("the cat sees the dog\nthe dog eats\n" * 12, encoding="utf-8")
    return text_dataset(path)


@pytest.fixture(scope="module")
def unbroken(dataset, tmp_path_factory):
    run = tmp_path_factory.mktemp("unbroken") / "run"
    run_on(dataset, run)
    return run


@pytest.mark.parametrize("stops", [(1,), (5, 6, 1), (19,)])
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(dataset, tmp_path, unbroken, stops):
    for steps in stops:
        run_on(dataset, tmp_path / "run", stop=stop_after(steps), resume=(tmp_path / "run").exists())
    assert resume(tmp_path / "run").finished
    assert_same(tmp_path / "run", unbroken)


def test_a_run_with_accumulation_and_workers_resumes_to_the_bit(dataset, tmp_path):
    hard = {"config": {"batch_size": None, "batch_tokens": 30, "accumulate": 2}, "workers": 2}
    hard["config"] |= {"average_last": 2, "average_every": 4}
    run_on(dataset, tmp_path / "whole", **hard)
    run_on(dataset, tmp_path / "parts", **hard, stop=stop_after(9))
    assert resume(tmp_path / "parts").finished
    assert_same(tmp_path / "parts", tmp_path / "whole")


def test_workers_compute_the_same_steps(dataset, tmp_path):
    without = {"model": {"dropout": 0.0}}
    run_on(dataset, tmp_path / "one", **without)
    run_on(dataset, tmp_path / "three", workers=3, **without)
    one, three = (
        [entry["loss"] for entry in losses(tmp_path / run) if "loss" in entry] for run in ("one", "three")
    )
    np.testing.assert_allclose(three, one, rtol=1e-5)  # float32: the sums have another order


def test_the_losses_are_those_of_a_plain_loop(dataset, tmp_path):
    run_on(dataset, tmp_path / "run", model={"dropout": 0.0})
    found = [entry["loss"] for entry in read_log(tmp_path / "run") if "loss" in entry]
    model = GPT(GPTConfig(**(MODEL | dataset.sizes | {"dropout": 0.0})), rng=np.random.default_rng(7))
    optimizer = AdamW(model, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1)
    text, expected = dataset.train.astype(int), []
    for step in range(1, 21):
        starts = np.random.default_rng([7, 0, step, 1]).integers(0, len(text) - 6, 5)
        ids = np.array([text[start : start + 6] for start in starts])
        targets = np.array([text[start + 1 : start + 7] for start in starts])
        model.zero_grad()
        logits, cache = model.forward(ids)
        loss, loss_cache = cross_entropy(logits, targets)
        model.backward(cross_entropy_backward(1.0, loss_cache), cache)
        model.grads *= min(1.0, 1.0 / np.linalg.norm(model.grads))
        share = step / 2 if step <= 2 else 0.1 + 0.9 * (1 + math.cos(math.pi * (step - 2) / 18)) / 2
        optimizer.step(0.01 * share)
        expected.append(float(loss))
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # float32


def test_validation_measures_the_whole_text_in_bits(dataset, tmp_path):
    events = []
    run_on(dataset, tmp_path / "run", report=events.append)
    validated = [event for event in events if isinstance(event, Validated)]
    assert [event.step for event in validated] == [3, 6, 9, 12, 15, 18, 20]
    last = load_checkpoint(tmp_path / "run/last.safetensors")
    model, text = model_from_checkpoint(last), dataset.valid.astype(int)
    total = 0.0
    for start in range(0, len(text) - 1, 6):
        window = text[start : start + 7]
        loss, _ = cross_entropy(model.forward(window[None, :-1])[0], window[None, 1:])
        total += float(loss) * (len(window) - 1)
    assert validated[-1].loss == pytest.approx(total / (len(text) - 1), rel=1e-5)
    assert validated[-1].bits_per_character == pytest.approx(validated[-1].loss / math.log(2))
    entries = [entry for entry in read_log(tmp_path / "run") if "valid_loss" in entry]
    assert [entry["valid_bits_per_character"] for entry in entries] == [
        event.bits_per_character for event in validated
    ]


def test_samples_of_text_come_with_each_validation(dataset, tmp_path):
    runs = []
    for name in ("one", "again"):
        events = []
        run_on(dataset, tmp_path / name, report=events.append)
        runs.append([event for event in events if isinstance(event, Sampled)])
    assert runs[0] == runs[1]
    assert [event.step for event in runs[0]] == [3, 6, 9, 12, 15, 18, 20]
    beginning = dataset.codec.decode(dataset.valid[:6])  # as many tokens as the context has
    assert all(event.text.startswith(beginning) for event in runs[0])
    assert {len(event.text) for event in runs[0]} == {6 + SAMPLE_TOKENS}
    assert len({event.text for event in runs[0]}) > 1


def test_the_checkpoint_holds_the_codec(dataset, unbroken):
    checkpoint = load_checkpoint(unbroken / "last.safetensors")
    assert checkpoint.model_kind == "gpt"
    assert text_codec_from_checkpoint(checkpoint) == dataset.codec
    with pytest.raises(UserError, match="holds a language model, which cannot translate"):
        codecs_from_checkpoint(checkpoint)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("the dog sees the cat\nthe dog eats\n", "the data are not those of the checkpoint .*kind text"),
        ("the cat sees the dig\nthe dig eats\n", "token 8 of the text vocabulary is 'i' here but 'o' in "),
    ],
)
def test_a_run_on_another_text_is_not_resumed(tmp_path, unbroken, text, sentence):
    (tmp_path / "other.txt").write_text(text * 12, encoding="utf-8")
    with pytest.raises(UserError, match=sentence):
        resume(unbroken, dataset=text_dataset(tmp_path / "other.txt"))


def test_a_checkpoint_with_the_codecs_of_a_translator_is_refused(dataset, tmp_path, unbroken):
    checkpoint = load_checkpoint(unbroken / "last.safetensors")
    codecs = {role: codec.to_json() for role, codec in task_dataset("copy", n=5).codecs.items()}
    run = tmp_path / "run"
    run.mkdir()
    save_checkpoint(dataclasses.replace(checkpoint, codecs=codecs), run / "last.safetensors")
    with pytest.raises(UserError, match="the data are text here, and other data in the checkpoint"):
        resume(run)
