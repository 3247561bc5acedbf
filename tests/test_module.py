"""The tree of parameters, flat storage, replicas, and saved states."""

import numpy as np
import pytest
from tiny import tiny_batch, tiny_config, tiny_model

from npformer import Module, Parameter, UserError
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.layers import Linear
from npformer.transformer import Transformer


class Pair(Module):
    """Two layers in a list, one parameter of its own, and things that are no parameters."""

    def __init__(self):
        self.width, self.nothing = 3, None
        self.first = Parameter(np.zeros(2))
        self.layers = [Linear(2, 3, dtype=np.float64), Linear(3, 1, bias=False, dtype=np.float64)]
        self.again = self.layers[1]
        self.table = np.ones((2, 2))


def gradients(model, batch, scale=1.0):
    """Adds the loss's gradients to the model's."""
    source, target_in, target = batch
    logits, cache = model.forward(source, target_in)
    _, loss_cache = cross_entropy(logits, target, smoothing=0.1, pad_id=0)
    model.backward(cross_entropy_backward(scale, loss_cache), cache)


# --- names ---


def test_named_parameters_come_in_order_of_definition_and_each_once():
    names = [name for name, _ in Pair().named_parameters()]
    assert names == ["first", "layers.0.weight", "layers.0.bias", "layers.1.weight"]


def test_count_parameters():
    assert Pair().count_parameters() == 2 + (6 + 3) + 3


def test_modules_come_once():
    pair = Pair()
    assert [type(module).__name__ for module in pair.modules()] == ["Pair", "Linear", "Linear"]


def test_a_transformers_names():
    names = [name for name, _ in Transformer(tiny_config(output_bias=True)).named_parameters()]
    assert names[0] == "source.words.weight"
    assert names[1:5] == [
        "encoder.layers.0.self_attention.query.weight",
        "encoder.layers.0.self_attention.query.bias",
        "encoder.layers.0.self_attention.key.weight",
        "encoder.layers.0.self_attention.key.bias",
    ]
    assert "decoder.layers.1.cross_residual.norm.gain" in names
    assert names[-2:] == ["output.weight", "output.bias"]
    assert len(names) == len(set(names))


def test_a_tied_parameter_comes_once_under_its_first_name():
    names = {}
    for tied in ("none", "output", "all"):
        model = Transformer(tiny_config(tied=tied, source_vocab=9))
        names[tied] = [n for n, _ in model.named_parameters() if not n.startswith(("encoder", "decoder"))]
    assert names["none"] == ["source.words.weight", "target.words.weight", "output.weight"]
    assert names["output"] == ["source.words.weight", "target.words.weight"]
    assert names["all"] == ["source.words.weight"]


def test_a_tied_table_gets_the_gradients_of_all_its_roles():
    """Those of an untied model with equal values, added up; the output's is transposed."""
    tied = tiny_model(tied="all", source_vocab=9)
    apart = tiny_model(tied="none", source_vocab=9)
    table = tied.source.words.weight.value
    state = tied.state() | {"target.words.weight": table, "output.weight": table.T}
    apart.load_state(state)
    source, target_in, target = tiny_batch()
    for model in (tied, apart):
        gradients(model, (source % 9, target_in, target))
    roles = [apart.source.words.weight.grad, apart.target.words.weight.grad, apart.output.weight.grad.T]
    np.testing.assert_allclose(tied.source.words.weight.grad, sum(roles), rtol=1e-10, atol=1e-14)
    assert all(np.abs(role).max() > 1e-3 for role in roles)


# --- flat storage ---


def test_flatten_makes_views_that_follow_each_other():
    pair = Pair()
    for i, parameter in enumerate(pair.parameters()):
        parameter.value[...], parameter.grad[...] = i, -i
    pair.flatten()
    assert pair.values.tolist() == [0] * 2 + [1] * 6 + [2] * 3 + [3] * 3
    np.testing.assert_array_equal(pair.grads, -pair.values)
    pair.values += 10
    pair.grads[:] = 7
    assert [p.value.min() for p in pair.parameters()] == [10, 11, 12, 13]
    assert [p.value.shape for p in pair.parameters()] == [(2,), (2, 3), (3,), (3, 1)]
    assert all((p.grad == 7).all() for p in pair.parameters())


def test_flat_buffers_hold_a_tied_table_once():
    model = tiny_model(tied="all", source_vocab=9)
    assert model.values.size == model.grads.size == model.count_parameters()
    model.values[...] = 5
    assert (model.output.weight.value == 5).all()


def test_gradients_accumulate_until_zero_grad():
    model, batch = tiny_model(), tiny_batch()
    gradients(model, batch)
    once = model.grads.copy()
    gradients(model, batch)
    np.testing.assert_allclose(model.grads, 2 * once, rtol=1e-14)
    model.zero_grad()
    assert not model.grads.any()


# --- replicas ---


@pytest.mark.parametrize("tied", ["none", "all"])
def test_a_replica_shares_values_and_has_gradients_of_its_own(tied):
    model, batch = tiny_model(tied=tied, source_vocab=11, target_vocab=11), tiny_batch()
    gradients(model, batch)
    expected = model.grads.copy()
    twin = model.replicate()
    assert not twin.grads.any()
    gradients(twin, batch)
    np.testing.assert_array_equal(twin.grads, expected)
    np.testing.assert_array_equal(model.grads, expected)
    model.values *= 2
    for (name, parameter), (other, theirs) in zip(
        model.named_parameters(), twin.named_parameters(), strict=True
    ):
        assert name == other
        assert np.shares_memory(parameter.value, theirs.value)
        assert not np.shares_memory(parameter.grad, theirs.grad)


def test_a_replica_shares_position_tables():
    model = tiny_model()
    assert model.replicate().source.positions.table is model.source.positions.table


def test_replicas_shares_of_a_batch_add_up_to_the_whole():
    """Each worker scales by its share of the tokens: that is all data parallelism needs."""
    model, (source, target_in, target) = tiny_model(), tiny_batch()
    gradients(model, (source, target_in, target))
    workers = [model.replicate(), model.replicate()]
    for worker, rows in zip(workers, (slice(0, 1), slice(1, 3)), strict=True):
        share = (target[rows] != 0).sum() / (target != 0).sum()
        gradients(worker, (source[rows], target_in[rows], target[rows]), float(share))
    np.testing.assert_allclose(workers[0].grads + workers[1].grads, model.grads, rtol=1e-9, atol=1e-15)


# --- conversion ---


def test_astype_converts_values_gradients_and_tables_and_keeps_the_buffers():
    model = tiny_model(np.float32).astype(np.float64)
    assert model.values.dtype == model.grads.dtype == np.float64
    assert model.source.positions.table.dtype == np.float64
    assert all(np.shares_memory(p.value, model.values) for p in model.parameters())
    logits, _ = model.forward(*tiny_batch()[:2])
    assert logits.dtype == np.float64


def test_astype_keeps_ties():
    model = tiny_model(np.float32, tied="all", source_vocab=9).astype(np.float64)
    assert model.output.weight is model.source.words.weight
    assert model.count_parameters() == tiny_model(tied="all", source_vocab=9).count_parameters()


def test_to_numpy_changes_no_number():
    model = tiny_model()
    before = model.values.copy()
    assert model.to("numpy") is model
    np.testing.assert_array_equal(model.values, before)


# --- states ---


def test_a_state_is_a_copy_that_loads_back():
    model, other = tiny_model(seed=0), tiny_model(seed=5)
    state = model.state()
    assert list(state) == [name for name, _ in model.named_parameters()]
    assert not any(np.shares_memory(array, model.values) for array in state.values())
    buffer = other.values
    other.load_state(state)
    np.testing.assert_array_equal(other.values, model.values)
    assert other.values is buffer


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda s: s.pop("output.weight"), "output.weight is missing from the saved state"),
        (lambda s: s.update(more=np.ones(2)), "more is not a parameter of this model but in the saved state"),
        (
            lambda s: s.update({"output.weight": np.ones((9, 8))}),
            r"output.weight has shape \(9, 8\) in the saved state and \(8, 9\) in this model",
        ),
    ],
    ids=["missing", "unknown", "another shape"],
)
def test_a_state_that_does_not_fit_changes_nothing(spoil, sentence):
    model, state = tiny_model(seed=0), tiny_model(seed=5).state()
    spoil(state)
    before = model.values.copy()
    with pytest.raises(UserError, match=sentence):
        model.load_state(state)
    np.testing.assert_array_equal(model.values, before)


def test_a_parameter_shows_its_shape():
    assert repr(Parameter(np.zeros((2, 3), np.float32))) == "Parameter(2, 3) float32"


def test_a_part_of_a_model_is_not_torn_out():
    """Its parameters would leave the buffers that the optimizer and the checkpoints write."""
    model = tiny_model()
    for tear in (model.encoder.flatten, model.encoder.replicate, lambda: model.encoder.astype(np.float32)):
        with pytest.raises(UserError, match="lie: flatten, move, optimize or replicate the whole model"):
            tear()
    model.values[...] = 0
    assert not model.encoder[0].self_attention.query.weight.value.any()


def test_room_is_given_once_and_only_while_the_gradient_is_zero():
    parameter = Linear(2, 3).weight
    assert parameter.room() is None  # nobody has said that it is zero
    parameter.zero_grad()
    assert parameter.room() is parameter.grad
    assert parameter.room() is None
    parameter.zero_grad()
    parameter.grad[0, 0] = 1
    assert parameter.room() is None
    parameter.zero_grad()
    assert np.shares_memory(parameter.room(transposed=True), parameter.grad)


def test_a_second_product_is_added_to_the_first():
    layer = Linear(2, 3, dtype=np.float64)
    layer.zero_grad()
    x, dy = np.ones((4, 2)), np.ones((4, 3))
    for times in (1, 2):
        layer.backward(dy, layer.forward(x)[1])
        np.testing.assert_array_equal(layer.weight.grad, np.full((2, 3), 4.0 * times))
