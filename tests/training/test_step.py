"""The mathematics of a step: means over real tokens, accumulation, and the origin of a NaN."""

from itertools import pairwise

import numpy as np
import pytest
from tiny import tiny_config, tiny_model

from npformer.data.loader import make_batch
from npformer.data.sentences import SentenceBatch, batch_rng
from npformer.errors import UserError
from npformer.functional.losses import cross_entropy
from npformer.models.bert import Bert, BertConfig
from npformer.models.registry import build
from npformer.models.universal import UniversalConfig
from npformer.training import evaluate, loss_and_gradients
from npformer.training.nan_checks import NotFiniteError, check_gradients
from npformer.training.optimizer import Adam
from npformer.training.step import dropout_rngs, make_step

EXAMPLES = [([4, 5, 6, 7, 10], [4, 7, 5, 8]), ([8, 9], [6, 4, 5, 7, 8, 4]), ([5], [8]), ([6, 7, 7], [5, 5])]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("cuts", [(2,), (1, 2, 3)])
def test_accumulated_batches_equal_one_large_batch(smoothing, cuts):
    model = tiny_model(label_smoothing=smoothing)
    loss, tokens = loss_and_gradients(model, [make_batch(EXAMPLES)])
    grads = model.grads.copy()
    edges = [0, *cuts, len(EXAMPLES)]
    parts = [make_batch(EXAMPLES[a:b]) for a, b in pairwise(edges)]
    parts_loss, parts_tokens = loss_and_gradients(model, parts)
    assert tokens == parts_tokens == 5 + 7 + 2 + 3
    assert abs(loss - parts_loss) < 1e-12
    assert np.abs(grads).max() > 1e-2
    assert np.abs(grads - model.grads).max() < 1e-12


def test_the_ponder_cost_has_its_weight():
    """The loss grows by weight · Σ ponder / tokens, and the gradients are linear in the weight."""
    losses, grads = [], []
    for weight in (0.0, 0.5, 1.0):
        sizes = {"source_vocab": 11, "target_vocab": 11, "d_model": 8, "d_ff": 12, "n_heads": 2}
        config = UniversalConfig(**sizes, dropout=0.0, halting=True, ponder_weight=weight)
        model = build(config, rng=np.random.default_rng(0), dtype=np.float64)
        losses.append(loss_and_gradients(model, [make_batch(EXAMPLES)])[0])
        grads.append(model.grads.copy())
    assert losses[1] > losses[0]
    assert losses[2] - losses[0] == pytest.approx(2 * (losses[1] - losses[0]))
    assert np.abs(grads[1] - grads[0]).max() > 1e-3
    np.testing.assert_allclose(grads[2] - grads[0], 2 * (grads[1] - grads[0]), atol=1e-12)


def test_the_gradients_are_those_of_the_returned_loss():
    model = tiny_model(label_smoothing=0.1)
    batches = [make_batch(EXAMPLES[:1]), make_batch(EXAMPLES[1:])]
    loss_and_gradients(model, batches)
    grads = model.grads.copy()
    direction = np.random.default_rng(3).choice([-1.0, 1.0], model.values.size)
    start, h = model.values.copy(), 1e-6
    losses = []
    for sign in (1, -1):
        model.values[:] = start + sign * h * direction
        losses.append(loss_and_gradients(model, batches)[0])
    slope = (losses[0] - losses[1]) / (2 * h)
    assert abs(slope - grads @ direction) < 1e-7 * abs(slope)


def test_all_generators_of_a_run_differ():
    """The generators for order, dropout and hidden tokens differ in every batch of every step."""
    order = [np.random.default_rng([0, epoch]) for epoch in range(3)]
    dropped = [rng for step in range(1, 4) for rng in dropout_rngs(0, step, 3)]
    hidden = [batch_rng(0, step, batch) for step in range(4) for batch in range(3)]
    drawn = [rng.random() for rng in (*order, *dropped, *hidden)]
    assert len(set(drawn)) == len(drawn)


def test_evaluation_is_over_real_tokens_and_without_smoothing():
    model = tiny_model(label_smoothing=0.1, dropout=0.5)
    whole = make_batch(EXAMPLES)
    logits, _ = model.forward(whole.source, whole.target_in)
    expected, _ = cross_entropy(logits, whole.target_out, pad_id=0)
    real = whole.target_out != 0
    result = evaluate(model, [make_batch(EXAMPLES[:1]), make_batch(EXAMPLES[1:])])
    assert abs(result.loss - expected) < 1e-12
    assert result.accuracy == (logits.argmax(-1) == whole.target_out)[real].mean()
    assert result.tokens == real.sum()
    assert result.perplexity == pytest.approx(np.exp(expected))


def test_evaluation_of_a_bert_is_over_the_hidden_tokens():
    sizes = {"vocab_size": 9, "d_model": 8, "n_layers": 1, "n_heads": 2, "max_length": 4}
    model = Bert(BertConfig(**sizes), rng=np.random.default_rng(0), dtype=np.float64)
    ids, target_out = np.array([[4, 8, 6], [5, 8, 3]]), np.array([[0, 5, 0], [0, 6, 0]])
    log_p = model.forward(ids)[0]
    log_p = log_p - np.log(np.exp(log_p).sum(-1, keepdims=True))
    found = evaluate(model, [SentenceBatch(ids[:1], target_out[:1]), SentenceBatch(ids[1:], target_out[1:])])
    assert found.tokens == 2
    assert found.loss == pytest.approx(-(log_p[0, 1, 5] + log_p[1, 1, 6]) / 2, rel=1e-12)


@pytest.mark.parametrize("compute", [evaluate, loss_and_gradients])
def test_batches_without_a_token_are_refused(compute):
    with pytest.raises(UserError, match=r"there is no token to .*: give at least one batch with a target"):
        compute(tiny_model(), [])


def test_a_gradient_that_is_clipped_to_zero_changes_nothing():
    model = tiny_model()
    before = model.values.copy()
    make_step(model, Adam(model), [make_batch(EXAMPLES)], None, lr=1.0, clip_norm=0.0)
    assert (model.values == before).all()


def test_predicting_padding_at_padding_does_not_count_as_correct():
    class OnlyPadding:
        """A model that predicts padding everywhere."""

        config = tiny_config()
        supports_packing = False

        def forward(self, source, target_in):
            logits = np.zeros((*target_in.shape, self.config.target_vocab))
            logits[..., 0] = 5.0
            return logits, None

    assert evaluate(OnlyPadding(), [make_batch(EXAMPLES)]).accuracy == 0


@pytest.mark.parametrize("name", ["encoder.layers.1.self_attention.query.weight", "output.weight"])
def test_the_error_names_a_bad_parameter(name):
    model = tiny_model()
    dict(model.named_parameters())[name].value[0] = np.nan
    with pytest.raises(
        NotFiniteError, match=f"the loss is nan, and the first bad tensor is the parameter {name}"
    ):
        loss_and_gradients(model, [make_batch(EXAMPLES)])


@pytest.mark.parametrize(
    ("spoiled", "name"),
    [
        ("source.tokens.weight", "source.y "),
        ("encoder.layers.1.feed_forward.inner.weight", "encoder.layers.1.feed_forward."),
        ("decoder.layers.0.cross.value.weight", "decoder.layers.0.cross.attention.v "),
        ("output.weight", "logits "),
    ],
)
def test_the_error_names_the_first_activation_that_overflows(spoiled, name):
    model = tiny_model(dtype=np.float32)
    values = dict(model.named_parameters())[spoiled].value
    values[...] = 3e38 * np.sign(values)
    with np.errstate(all="ignore"), pytest.raises(NotFiniteError, match=f"the first bad tensor is {name}"):
        loss_and_gradients(model, [make_batch(EXAMPLES)])


def test_a_bad_gradient_is_distinguished_from_one_that_is_too_large():
    model = tiny_model(dtype=np.float32)
    model.decoder[1].self_attention.key.weight.grad[0, 0] = np.inf
    with pytest.raises(
        NotFiniteError, match=r"gradient of decoder\.layers\.1\.self_attention\.key\.weight .*inf"
    ):
        check_gradients(np.inf, model)
    model.zero_grad()
    with pytest.raises(NotFiniteError, match="though every gradient is finite"):
        check_gradients(np.inf, model)
    check_gradients(1e30, model)
