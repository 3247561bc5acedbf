"""Training of a GPT on a text and of a BERT on sentences: what it computes, and that it resumes."""

import math
from typing import NamedTuple

import numpy as np
import pytest
from training_runs import assert_same, logged, runner, stop_after

from npformer import UserError
from npformer.data.codecs import (
    codecs_from_checkpoint,
    read_codecs,
)
from npformer.data.monolingual import sentence_dataset
from npformer.data.sentences import masked_batch
from npformer.data.text import text_dataset
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.models.bert import Bert, BertConfig
from npformer.models.gpt import GPT, GPTConfig
from npformer.models.registry import model_from_checkpoint
from npformer.storage.checkpoint import load_checkpoint
from npformer.training import Validated, resume
from npformer.training.optimizer import Adam, AdamW

OFTEN = {"checkpoint_every": 2, "validate_every": 3, "log_every": 1}
TRAINING = {"steps": 20, "batch_size": 5, "learning_rate": 0.01, "seed": 7, **OFTEN}
COSINE = {"schedule": "cosine", "min_learning_rate": 0.001, "warmup_steps": 2}
REGULARIZED = {"weight_decay": 0.1, "clip_norm": 1.0}

GPT_SIZES = {"d_model": 8, "n_layers": 1, "n_heads": 2, "context": 6, "dropout": 0.1, "bias": False}
BERT_SIZES = {"d_model": 8, "n_layers": 1, "n_heads": 2, "max_length": 6}  # the dropout is that of BERT
POEM = "the cat sees the dog\nthe dog eats\n" * 12
SEES, SEEN = "the cat sees the dog", "the dog sees the cat"
ANIMALS = "the cat sees the dog\nthe dog eats a bird and the cat eats the mouse\na bird sees the mouse\n" * 6


class Kind(NamedTuple):
    """A kind of language model with its data."""

    text: str
    dataset_of: object  # makes the dataset of a file
    train: object  # see `runner`
    without_dropout: dict
    rtol: float  # of the losses of several workers, whose sums have another order in float32


KINDS = {
    "gpt": Kind(
        POEM,
        text_dataset,
        runner(GPTConfig, GPT_SIZES, TRAINING | COSINE | REGULARIZED),
        {"dropout": 0.0},
        1e-5,
    ),
    "bert": Kind(
        ANIMALS,
        sentence_dataset,
        runner(BertConfig, BERT_SIZES, TRAINING | {"schedule": "constant"}),
        {"dropout": 0.0, "attention_dropout": 0.0},
        1e-4,
    ),
}
every_kind = pytest.mark.parametrize("name", KINDS)


@pytest.fixture(scope="module")
def datasets(tmp_path_factory):
    """Return the dataset of each kind."""
    folder = tmp_path_factory.mktemp("text")
    for name, kind in KINDS.items():
        (folder / f"{name}.en").write_text(kind.text, encoding="utf-8")
    return {name: kind.dataset_of(folder / f"{name}.en") for name, kind in KINDS.items()}


@pytest.fixture(scope="module")
def unbroken(datasets, tmp_path_factory):
    """Return, for each kind, a finished run that no test changes, and its events."""
    folder, found = tmp_path_factory.mktemp("unbroken"), {}
    for name, kind in KINDS.items():
        events = []
        kind.train(datasets[name], folder / name, report=events.append)
        found[name] = folder / name, events
    return found


@every_kind
def test_a_stopped_and_resumed_run_equals_an_uninterrupted_one(datasets, tmp_path, unbroken, name):
    run = tmp_path / "run"
    for steps in (5, 6, 1):
        KINDS[name].train(datasets[name], run, stop=stop_after(steps), resume=run.exists())
    assert resume(run).finished
    assert_same(run, unbroken[name][0])


@every_kind
def test_a_run_with_accumulation_and_workers_resumes_to_the_bit(datasets, tmp_path, name):
    hard = {"config": {"batch_size": None, "batch_tokens": 30, "accumulate": 2}, "workers": 2}
    hard["config"] |= {"average_last": 2, "average_every": 4}
    KINDS[name].train(datasets[name], tmp_path / "whole", **hard)
    KINDS[name].train(datasets[name], tmp_path / "parts", **hard, stop=stop_after(9))
    assert resume(tmp_path / "parts").finished
    assert_same(tmp_path / "parts", tmp_path / "whole")


def step_loss(model, ids, targets, pad_id=None):
    """Compute the gradients of a batch, and return the loss."""
    logits, cache = model.forward(ids)
    loss, loss_cache = cross_entropy(logits, targets, pad_id=pad_id)
    model.zero_grad()
    model.backward(cross_entropy_backward(np.float32(1), loss_cache), cache)
    return float(loss)


def test_the_losses_of_a_gpt_are_those_of_a_plain_loop(datasets, tmp_path):
    dataset, sizes = datasets["gpt"], GPT_SIZES | KINDS["gpt"].without_dropout
    KINDS["gpt"].train(dataset, tmp_path / "run", model=KINDS["gpt"].without_dropout)
    model = GPT(GPTConfig(**(sizes | dataset.sizes)), rng=np.random.default_rng(7))
    optimizer = AdamW(model, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.1)
    text, expected = dataset.train.astype(int), []
    for step in range(1, 21):
        starts = np.random.default_rng([7, 0, step, 1]).integers(0, len(text) - 6, 5)
        windows = np.array([text[start : start + 7] for start in starts])
        expected.append(step_loss(model, windows[:, :-1], windows[:, 1:]))
        model.grads *= min(1.0, 1.0 / np.linalg.norm(model.grads))
        share = step / 2 if step <= 2 else 0.1 + 0.9 * (1 + math.cos(math.pi * (step - 2) / 18)) / 2
        optimizer.step(0.01 * share)
    np.testing.assert_allclose(logged(tmp_path / "run", "loss"), expected, rtol=1e-5)  # float32


def test_the_losses_of_a_bert_are_those_of_a_plain_loop(datasets, tmp_path):
    """The loss is that of the hidden tokens alone, and each step hides tokens with its own generator."""
    dataset, sizes = datasets["bert"], BERT_SIZES | KINDS["bert"].without_dropout
    KINDS["bert"].train(dataset, tmp_path / "run", model=KINDS["bert"].without_dropout, config={"steps": 6})
    model = Bert(BertConfig(**(sizes | dataset.sizes)), rng=np.random.default_rng(7))
    optimizer, expected = Adam(model, betas=(0.9, 0.98), eps=1e-9), []
    loader, mask_id = dataset.loader(6, batch_size=5, seed=7), len(dataset.codec.tokens) - 1
    for step, (plan,) in zip(range(1, 7), loader.plan_steps(), strict=False):
        sentences = [loader.examples[i] for i in plan]
        batch = masked_batch(sentences, mask_id, np.random.default_rng([7, 0, step, 1]))
        expected.append(step_loss(model, batch.ids, batch.target_out, pad_id=0))
        optimizer.step(0.01)
    np.testing.assert_allclose(logged(tmp_path / "run", "loss"), expected, rtol=1e-5)  # float32


def test_validation_measures_the_whole_text_in_bits(datasets, unbroken):
    run, events = unbroken["gpt"]
    validated = [event for event in events if isinstance(event, Validated)]
    assert [event.step for event in validated] == [3, 6, 9, 12, 15, 18, 20]
    model = model_from_checkpoint(load_checkpoint(run / "last.safetensors"))
    text, total = datasets["gpt"].valid.astype(int), 0.0
    for start in range(0, len(text) - 1, 6):
        window = text[start : start + 7]
        loss, _ = cross_entropy(model.forward(window[None, :-1])[0], window[None, 1:])
        total += float(loss) * (len(window) - 1)
    assert validated[-1].loss == pytest.approx(total / (len(text) - 1), rel=1e-5)
    assert validated[-1].bits_per_character == pytest.approx(validated[-1].loss / math.log(2))
    bits = [event.bits_per_character for event in validated]
    assert logged(run, "valid_bits_per_character") == bits


def test_the_checkpoint_holds_the_codec(datasets, unbroken):
    gpt, bert = (load_checkpoint(unbroken[name][0] / "last.safetensors") for name in KINDS)
    assert (gpt.model_kind, bert.model_kind) == ("gpt", "bert")
    assert read_codecs(gpt) == {"text": datasets["gpt"].codec}
    assert read_codecs(bert) == {"sentences": datasets["bert"].codec}
    with pytest.raises(UserError, match="holds a language model, which cannot translate"):
        codecs_from_checkpoint(gpt)


@pytest.mark.parametrize(
    ("name", "old", "new", "sentence"),
    [
        ("gpt", SEES, SEEN, "the data are not those of the checkpoint .*kind text"),
        ("gpt", "dog", "dig", "token 8 of the text vocabulary is 'i' here but 'o' in "),
        ("bert", SEES, SEEN, "the data are not those of the checkpoint .*kind sentences"),
    ],
)
def test_a_run_on_another_text_is_not_resumed(tmp_path, unbroken, name, old, new, sentence):
    other = tmp_path / "other.en"
    other.write_text(KINDS[name].text.replace(old, new), encoding="utf-8")
    with pytest.raises(UserError, match=sentence):
        resume(unbroken[name][0], dataset=KINDS[name].dataset_of(other))
