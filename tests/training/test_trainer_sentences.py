"""Training of a BERT on sentences: what it computes, and that it resumes to the bit."""

import numpy as np
import pytest
from training_runs import assert_same, losses, runner, stop_after

from npformer import UserError
from npformer.data.codecs import (
    codecs_from_checkpoint,
    sentence_codec_from_checkpoint,
    text_codec_from_checkpoint,
)
from npformer.data.monolingual import sentence_dataset
from npformer.data.sentences import masked_batch
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.models.bert import Bert, BertConfig
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import read_log, resume
from npformer.training.optimizer import Adam

MODEL = {"d_model": 8, "n_layers": 1, "n_heads": 2, "max_length": 6}  # the dropout is that of BERT
TRAINING = {
    "steps": 20,
    "batch_size": 5,
    "schedule": "constant",
    "learning_rate": 0.01,
    "checkpoint_every": 2,
    "validate_every": 3,
    "log_every": 1,
    "seed": 7,
}
run_on = runner(BertConfig, MODEL, TRAINING)
TEXT = "the cat sees the dog\nthe dog eats a bird and the cat eats the mouse\na bird sees the mouse\n" * 6


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "animals.en"
    path.write_text(TEXT, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def dataset(file):
    return sentence_dataset(file)


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
    without = {"model": {"dropout": 0.0, "attention_dropout": 0.0}}
    run_on(dataset, tmp_path / "one", **without)
    run_on(dataset, tmp_path / "three", workers=3, **without)
    one, three = (
        [entry["loss"] for entry in losses(tmp_path / run) if "loss" in entry] for run in ("one", "three")
    )
    np.testing.assert_allclose(three, one, rtol=1e-4)  # float32: the sums have another order


def test_the_losses_are_those_of_a_plain_loop(dataset, tmp_path):
    """The loss is that of the hidden tokens alone, and each step hides tokens with its own generator."""
    without = {"dropout": 0.0, "attention_dropout": 0.0}
    run_on(dataset, tmp_path / "run", model=without, config={"steps": 6})
    found = [entry["loss"] for entry in read_log(tmp_path / "run") if "loss" in entry]
    model = Bert(BertConfig(**(MODEL | dataset.sizes | without)), rng=np.random.default_rng(7))
    optimizer, expected = Adam(model, betas=(0.9, 0.98), eps=1e-9), []
    loader = dataset.loader(6, batch_size=5, seed=7)
    for step, (plan,) in zip(range(1, 7), loader.plan.plan_steps(), strict=False):
        sentences = [loader.sentences[i] for i in plan]
        mask_id = len(dataset.codec.tokens) - 1
        batch = masked_batch(sentences, mask_id, np.random.default_rng([7, 0, step, 1]))
        logits, cache = model.forward(batch.ids)
        loss, loss_cache = cross_entropy(logits, batch.target_out, pad_id=0)
        model.zero_grad()
        model.backward(cross_entropy_backward(np.float32(1), loss_cache), cache)
        optimizer.step(0.01)
        expected.append(float(loss))
    np.testing.assert_allclose(found, expected, rtol=1e-5)  # float32


def test_the_checkpoint_holds_the_codec(dataset, unbroken):
    checkpoint = load_checkpoint(unbroken / "last.safetensors")
    assert checkpoint.model_kind == "bert"
    assert sentence_codec_from_checkpoint(checkpoint) == dataset.codec
    with pytest.raises(UserError, match="holds a masked language model, which cannot translate: give one of"):
        codecs_from_checkpoint(checkpoint)
    with pytest.raises(UserError, match="holds a masked language model, which cannot continue a text: give"):
        text_codec_from_checkpoint(checkpoint)


def test_a_run_on_other_sentences_is_not_resumed(tmp_path, unbroken):
    other = tmp_path / "other.en"
    other.write_text(TEXT.replace("the cat sees the dog", "the dog sees the cat"), encoding="utf-8")
    with pytest.raises(UserError, match=r"the data are not those of the checkpoint .*kind sentences"):
        resume(unbroken, dataset=sentence_dataset(other))
