"""The training of the assembled Transformer: it learns, is saved after each round, and goes on."""

import dataclasses
import math

import numpy as np
import pytest
from capstone_solutions import solve

from npformer import UserError
from npformer.data.corpus import builtin_corpus
from npformer.data.dataset import builtin_dataset
from npformer.data.loader import make_batch
from npformer.functional.losses import cross_entropy, cross_entropy_backward
from npformer.learn.capstone import training
from npformer.learn.capstone.assemble import capstone_config
from npformer.learn.capstone.functions import LearnersError
from npformer.learn.capstone.saved import NAME, find_saved, fingerprint_of, load_saved
from npformer.learn.capstone.training import begin_training, held_out_pairs, train_rounds
from npformer.models.transformer import Transformer
from npformer.training.optimizer import Adam


def corpus():
    return builtin_corpus(seed=0)  # as the dataset has it, so that it is made once


STEPS = 4  # the learning rate of the last one is 0, so another follows the interruption after two


@pytest.fixture(scope="module", autouse=True)
def dataset():
    """Return the built-in dataset with fewer sentences for training, which is made once for all tests."""
    dataset = builtin_dataset()
    dataset = dataclasses.replace(dataset, train=dataset.train[:5000])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training, "builtin_dataset", lambda: dataset)
        patch.setattr(training, "builtin_corpus", corpus)
        yield dataset


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a folder with all parts, and a Transformer that was trained in one round."""
    learner, parts = solve(tmp_path_factory.mktemp("finished"))
    saved = begin_training(learner, parts, STEPS)
    assert [each.step for each in train_rounds(learner, saved)] == [STEPS]
    assert load_saved(learner.path / NAME).finished
    return learner, saved


def test_a_training_that_was_interrupted_goes_on_with_the_same_numbers(finished, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "ROUND", 2)
    learner, parts = solve(tmp_path)
    assert next(train_rounds(learner, begin_training(learner, parts, STEPS))).step == 2
    again = find_saved(learner.path)
    assert again.step == 2
    assert not again.finished
    assert [each.step for each in train_rounds(learner, again)] == [STEPS]
    _, whole = finished
    assert again.losses == whole.losses
    assert len(whole.losses) == STEPS
    for name in ("values", "m", "v"):
        assert np.array_equal(again.tensors[name], whole.tensors[name])


def test_the_losses_are_those_of_a_plain_loop_with_the_packages_transformer(finished, dataset):
    _, saved = finished
    assert saved.losses[-1] < saved.losses[0]
    pairs = [pair for pair in dataset.train if len(pair[0]) <= 7]
    config = capstone_config(d_model=64, d_ff=128, n_heads=4, n_layers=2, max_length=64, **dataset.sizes)
    model, expected = Transformer(config, rng=np.random.default_rng(0)), []
    optimizer = Adam(model)
    for step in range(1, STEPS + 1):
        batch = make_batch(
            [pairs[i] for i in np.random.default_rng(step).choice(len(pairs), 64, replace=False)]
        )
        logits, cache = model.forward(batch.source, batch.target_in)
        loss, loss_cache = cross_entropy(logits, batch.target_out, pad_id=0)
        model.zero_grad()
        model.backward(cross_entropy_backward(np.float32(1), loss_cache), cache)
        model.grads *= min(1.0, 1.0 / np.linalg.norm(model.grads))
        optimizer.step(
            0.003 * (step if step <= 1 else (1 + math.cos(math.pi * (step - 1) / (STEPS - 1))) / 2)
        )
        expected.append(float(loss))
    np.testing.assert_allclose(saved.losses, expected, rtol=1e-4)  # float32: the products have other shapes


FAILING = [
    ("adam-step", "adam.model.values[...] = float('nan')", "the loss is nan"),
    ("adam-step", "adam.m = 3", "change it in place"),
    ("adam-step", "raise SystemExit(2)", "ended the program"),
    ("adam-step", "while True: pass", "infinite loop"),
    ("greedy", "return [['a']]", "give Python ints"),
    ("greedy", "return 'abc'", "your code raised ValueError"),
]


@pytest.mark.parametrize(("name", "body", "message"), FAILING)
def test_code_that_fails_in_training_ends_it_in_one_sentence(name, body, message, tmp_path):
    learner, parts = solve(tmp_path)
    begin_training(learner, parts, 2).save(tmp_path)
    head = "adam_step(adam, lr)" if name == "adam-step" else "greedy(model, source, *, max_length)"
    (tmp_path / f"{name}.py").write_text(f"def {head}:\n    {body}\n")
    with pytest.raises(LearnersError, match=message):
        list(train_rounds(learner, find_saved(tmp_path), seconds=3 if "while" in body else 600))
    assert find_saved(tmp_path).step == 0, "nothing was saved"


def test_ids_may_be_integers_of_numpy(finished):
    assert repr(training._as_sentences(finished[1], [[np.int64(4)], []])) == "[[4], []]"


def test_the_sentences_of_the_score_are_short_and_were_not_in_training():
    pairs = held_out_pairs(100)
    assert len({pair.english for pair in pairs}) == len(pairs) == 100
    assert all(len(pair.english.split()) <= 7 for pair in pairs)
    assert not {pair.english for pair in pairs} & {pair.english for pair in corpus().train}


def test_the_fingerprint_is_that_of_the_files(tmp_path):
    learner, parts = solve(tmp_path, "softmax", "Adam")
    before = fingerprint_of(learner, parts)
    assert fingerprint_of(learner, parts) == before
    assert fingerprint_of(learner, parts[:1]) != before
    (tmp_path / "softmax.py").write_text("# another\n")
    assert fingerprint_of(learner, parts) != before


def test_a_damaged_file_is_refused(finished, tmp_path):
    path = tmp_path / NAME
    path.write_bytes(finished[1].to_bytes()[:-1] + b"x")
    with pytest.raises(UserError, match="move it away, and npformer build --train trains a new one"):
        load_saved(path)
    assert find_saved(tmp_path / "nowhere") is None


FORGED = {
    "too few parameters": lambda saved: {"tensors": {k: v[:-1] for k, v in saved.tensors.items()}},
    "another dtype": lambda saved: {"tensors": {k: v.astype(float) for k, v in saved.tensors.items()}},
    "NaN": lambda saved: {"tensors": {k: v * np.nan for k, v in saved.tensors.items()}},
    "no array": lambda saved: {"tensors": {}},
    "one array": lambda saved: {"tensors": {"values": saved.tensors["values"]}},
    "more steps than there are": lambda saved: {"step": 9, "losses": [1.0] * 9},
    "a negative step": lambda saved: {"step": -1},
    "no step": lambda saved: {"step": 0, "losses": []},
    "losses of other steps": lambda saved: {"losses": [1.0, 1.0]},
    "a codec that is no JSON": lambda saved: {"source": "hello"},
    "an empty codec": lambda saved: {"target": "{}"},
    "a codec of another kind": lambda saved: {"target": '{"kind": "x"}'},
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_forged_file_is_refused(finished, tmp_path, forge):
    _, saved = finished
    path = tmp_path / "forged.safetensors"
    path.write_bytes(dataclasses.replace(saved, **forge(saved)).to_bytes())
    with pytest.raises(UserError, match="move it away, and npformer build --train trains a new one"):
        load_saved(path)
