"""The gradient check of trained models: every tensor, what the loss is, and wrong gradients by name."""

import numpy as np
import pytest
from tiny_runs import CHECKPOINTS

import npformer
from npformer import UserError
from npformer.checking.check import generator_of
from npformer.functional import log_softmax
from npformer.nn import LayerNorm, Linear
from npformer.pretrained import loss_check
from npformer.pretrained.loss_check import check_loss, loss_on
from npformer.storage.checkpoint import save_checkpoint

TEXTS = {"translator": "the cat sees a dog", "gpt": "the cat", "bert": "the cat sees a dog"}


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Load a run of each kind."""
    folder = tmp_path_factory.mktemp("runs")
    for name, make in CHECKPOINTS.items():
        save_checkpoint(make(), folder / f"{name}.safetensors")
    return {name: npformer.load(folder / f"{name}.safetensors") for name in CHECKPOINTS}


@pytest.mark.parametrize("name", TEXTS)
def test_all_gradients_of_each_kind_of_model_are_right(models, name):
    loaded = models[name]
    before = loaded.model.state_dict()
    report = check_loss(loaded, TEXTS[name])
    assert report.ok, report
    assert [row.tensor for row in report.rows] == [tensor for tensor, _ in loaded.model.named_parameters()]
    assert {row.method for row in report.rows} == {"complex step"}
    assert not report.notes
    assert any(row.error > 0 for row in report.rows)
    assert not any(parameter.has_grad for parameter in loaded.model.parameters())
    for tensor, values in loaded.model.state_dict().items():
        assert values.dtype == before[tensor].dtype
        np.testing.assert_array_equal(values, before[tensor])


def test_the_loss_of_a_language_model_is_that_of_the_next_tokens(models):
    loaded = models["gpt"]
    thing, inputs = loss_on(loaded, TEXTS["gpt"], generator_of(0))
    loss, _ = thing.forward(*inputs)
    assert loss.dtype == np.float64
    np.testing.assert_allclose(loss, loaded.loss(TEXTS["gpt"]), rtol=1e-5)


def test_a_masked_model_predicts_the_tokens_that_are_masked(models):
    loaded = models["bert"]
    thing, (ids, targets) = loss_on(loaded, TEXTS["bert"], generator_of(0))
    original = np.array([loaded.tokenizer.encode(TEXTS["bert"]).ids])
    masked = ids == loaded.tokenizer.mask_id
    assert masked.sum() == 1  # 15 % of five words, rounded up
    np.testing.assert_array_equal(ids[~masked], original[~masked])
    np.testing.assert_array_equal(targets, np.where(masked, original, loaded.model.config.pad_id))
    loss, _ = thing.forward(ids, targets)
    place = int(masked[0].argmax())
    expected = -log_softmax(loaded.logits(ids))[0][0, place, original[0, place]]
    np.testing.assert_allclose(loss, expected, rtol=1e-5)


def plant(monkeypatch, layer, wrong):
    """Change the backward pass of a kind of layer: wrong(layer, dy) is called after it."""
    right = layer.backward

    def backward(self, dy, cache):
        dx = right(self, dy, cache)
        wrong(self, dy)
        return dx

    monkeypatch.setattr(layer, "backward", backward)


@pytest.mark.parametrize("n_directions", [1, 5, 10**6])
def test_a_wrong_gradient_is_named_with_its_entry(models, monkeypatch, n_directions):
    """Of one layer, however few directions the tensors share."""
    monkeypatch.setattr(loss_check, "_affordable", lambda draw, rng, seconds: n_directions)
    wide = models["gpt"].model.layers[1].feed_forward.inner.weight.shape

    def wrong(layer, dy):
        if layer.weight.shape == wide and not done:
            done.append(layer)
            layer.weight.grad[1, 2] *= 1.01

    done = []
    plant(monkeypatch, Linear, wrong)
    report = check_loss(models["gpt"], TEXTS["gpt"])
    (row,) = report.failures
    assert row.tensor == "layers.1.feed_forward.inner.weight"  # of the last layer, the first in backward
    assert row.entry == (1, 2)
    assert "not the derivative of the loss" in row.diagnosis
    shared = n_directions < len(report.rows)
    assert bool(report.notes) == shared
    if shared:
        assert report.notes[0].startswith(f"{len(report.rows)} tensors share {n_directions} direction")


def test_a_gradient_that_is_left_out_or_is_not_a_number(models, monkeypatch):
    with monkeypatch.context() as patch:
        plant(patch, LayerNorm, lambda layer, dy: layer.bias.grad.fill(0))
        report = check_loss(models["bert"], TEXTS["bert"])
        assert {row.tensor.rpartition(".")[2] for row in report.failures} == {"bias"}
    plant(monkeypatch, LayerNorm, lambda layer, dy: layer.gain.grad.fill(np.nan))
    report = check_loss(models["bert"], TEXTS["bert"])
    assert {row.tensor.rpartition(".")[2] for row in report.failures} == {"gain"}


def test_a_loss_whose_rounding_errors_hide_a_gradient_is_not_decided(models, monkeypatch):
    right = loss_check.LanguageModelWithLoss.forward

    def beside_a_large_number(self, ids, target_out):
        loss, cache = right(self, ids, target_out)
        return loss + 1e14, cache

    monkeypatch.setattr(loss_check.LanguageModelWithLoss, "forward", beside_a_large_number)
    plant(monkeypatch, LayerNorm, lambda layer, dy: layer.bias.grad.__imul__(1.01))
    report = check_loss(models["gpt"], TEXTS["gpt"])
    assert report.failures
    assert all(row.undecided for row in report.failures)
    assert "not decided" in str(report).splitlines()[0]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("gpt", "t", "the text 't' has no second token to predict: give a longer one"),
        ("bert", "", "the text '' has no token that can be masked: give one with words"),
        ("translator", "", "empty"),
    ],
)
def test_a_text_without_a_loss_is_refused(models, name, text, words):
    with pytest.raises(UserError, match=words):
        check_loss(models[name], text)
