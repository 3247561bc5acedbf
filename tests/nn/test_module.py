"""The tree of parameters, flat storage, replicas, and saved states."""

import copy
import gc
import pickle
import weakref
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pytest
from tiny import tiny_batch, tiny_model

from npformer import Module, Parameter, UserError
from npformer.functional import cross_entropy, cross_entropy_backward
from npformer.nn import Embedding, Linear
from npformer.nn.fixed import FixedParameter
from npformer.nn.init import UNDRAWN
from npformer.training.optimizer import Adam


class Pair(Module):
    """A module with two layers in a list, a parameter, and attributes that are not parameters."""

    def __init__(self):
        self.width, self.nothing = 3, None
        self.first = Parameter(np.zeros(2))
        self.layers = [Linear(2, 3, dtype=np.float64), Linear(3, 1, bias=False, dtype=np.float64)]
        self.again = self.layers[1]
        self.table = np.ones((2, 2))


def gradients(model, batch, scale=1.0):
    """Add the gradients of the loss to those of the model."""
    source, target_in, target = batch
    logits, cache = model.forward(source, target_in)
    _, loss_cache = cross_entropy(logits, target, smoothing=0.1, pad_id=0)
    model.backward(cross_entropy_backward(scale, loss_cache), cache)


# --- names ---


class Anything(Module):
    def __init__(self, held):
        self.held = held


def test_lists_tuples_and_dicts_may_hold_the_parameters():
    model = Anything({"a": [Linear(1, 1)], "b": (Parameter(np.ones(2)), {"c": Parameter(np.ones(1))})})
    names = ["held.a.0.weight", "held.a.0.bias", "held.b.0", "held.b.1.c"]
    assert [name for name, _ in model.named_parameters()] == list(model.state_dict()) == names
    assert [name for name, _ in model.named_modules()] == ["", "held.a.0"]
    count = model.count_parameters()
    Adam(model)
    assert count == 5 == model.values.size


def test_a_named_tuple_holds_parameters_by_the_names_of_its_fields():
    held = NamedTuple("Held", [("w", Parameter), ("b", Parameter)])(*(Parameter(np.ones(2)) for _ in "wb"))
    assert [name for name, _ in Anything(held).named_parameters()] == ["held.w", "held.b"]


def test_a_part_that_points_to_its_model():
    model = Anything([Linear(1, 1)])
    model.held[0].model = model
    assert len(model.modules()) == 2
    assert [name for name, _ in model.named_parameters()] == ["held.0.weight", "held.0.bias"]


def test_a_number_that_is_0_keeps_no_other_value_from_being_copied():
    model = Anything([Linear(2, 3)])
    model.scale, before = Parameter(np.zeros(())), model.held[0].weight.value.copy()
    np.testing.assert_array_equal(model.flatten().held[0].weight.value, before)


@pytest.mark.parametrize("n_in", [1, 2])
def test_a_layer_whose_values_are_not_drawn_can_be_flattened(n_in):
    layer = Linear(n_in, 3, rng=UNDRAWN).flatten()
    layer.values[...] = 1  # so they are no longer one number in memory
    assert (layer.weight.value == 1).all()


def test_an_old_parameter_that_a_flattened_module_gets_is_found():
    model, before = Pair(), Parameter(np.ones(1))
    model.flatten()
    model.zero_grad()
    model.scale = before
    before.grad[...] = 1
    model.zero_grad()
    assert not before.grad.any()


@pytest.mark.parametrize("flat", [False, True])
def test_a_parameter_that_is_added_or_replaced_later(flat):
    """It is found at once, and it is in the arrays of a flattened model after the next call of flatten."""
    model, before = Anything([Linear(1, 1)]), Parameter(np.ones(1))
    if flat:
        model.flatten()
    model.zero_grad()
    model.held.append(Linear(1, 1))
    model.zero_grad()
    model.held[0].weight, model.scale = Parameter(np.ones((1, 1))), before
    late = [model.held[1].weight, model.held[0].weight, model.scale]
    assert not {id(parameter) for parameter in late} - {id(parameter) for parameter in model.parameters()}
    for parameter in late:
        parameter.grad[...] = 1
    model.zero_grad()
    assert not any(parameter.grad.any() for parameter in late)
    model.shift = Parameter(np.ones(1))
    model.shift.grad[...] = 1
    model.zero_grad()
    assert not model.shift.grad.any()
    model.held.append(Parameter(np.ones(1)))
    model.zero_grad()
    model.held[-1].grad[...] = 1
    model.zero_grad()
    assert not model.held[-1].grad.any()
    late += [model.shift, model.held[-1]]
    model.flatten()
    assert all(np.shares_memory(parameter.value, model.values) for parameter in late)


def test_a_tied_table_gets_the_gradients_of_all_its_roles():
    """It is the sum of the gradients of an untied model with equal values; the output's is transposed."""
    tied = tiny_model(tied="all", source_vocab=9)
    apart = tiny_model(tied="none", source_vocab=9)
    table = tied.source.tokens.weight.value
    state = tied.state_dict() | {"target.tokens.weight": table, "output.weight": table.T}
    apart.load_state_dict(state)
    source, target_in, target = tiny_batch()
    for model in (tied, apart):
        gradients(model, (source % 9, target_in, target))
    roles = [apart.source.tokens.weight.grad, apart.target.tokens.weight.grad, apart.output.weight.grad.T]
    np.testing.assert_allclose(tied.source.tokens.weight.grad, sum(roles), rtol=1e-10, atol=1e-14)
    assert all(np.abs(role).max() > 1e-3 for role in roles)


# --- flat storage ---


def test_flatten_makes_consecutive_views():
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


def test_assigned_values_are_those_of_the_parameters():
    layer = Linear(2, 2).flatten()
    layer.values = np.arange(6.0)
    assert layer.weight.value.tolist() == [[0, 1], [2, 3]]
    layer.weight.grad[...] = 1
    Adam(layer).step(0.5)
    assert (layer.weight.value != np.arange(4.0).reshape(2, 2)).all()
    layer.grads = np.arange(6.0)
    layer.grads *= 2
    assert layer.weight.grad.tolist() == [[0, 2], [4, 6]]


def test_gradients_are_allocated_by_the_first_backward_pass():
    model, batch = tiny_model(np.float32), tiny_batch()
    model.zero_grad()
    model.forward(*batch[:2])
    model = model.astype(np.float64).flatten()
    replica = model.replicate()
    assert not any(p.has_grad for p in [*model.parameters(), *replica.parameters()])
    gradients(model, batch)
    assert all(p.has_grad and np.shares_memory(p.grad, model.grads) for p in model.parameters())
    assert all(p.grad.any() for p in model.parameters())
    assert not any(p.has_grad for p in replica.parameters())


def test_an_assigned_gradient_is_set_to_zero_too():
    model = tiny_model()
    gradients(model, tiny_batch())
    first, second = model.parameters()[:2]
    first.grad = np.ones(first.shape)
    second.grad *= 2
    model.zero_grad()
    assert not any(p.grad.any() for p in model.parameters())
    assert np.shares_memory(second.grad, model.grads)


def test_a_model_is_freed_as_soon_as_nothing_holds_it():
    gc.disable()
    try:
        model = tiny_model()
        gradients(model, tiny_batch())
        arrays = [weakref.ref(model.values), weakref.ref(model.grads), weakref.ref(model.replicate().grads)]
        del model
        assert [array() for array in arrays] == [None] * 3
    finally:
        gc.enable()


# --- parameters that lie apart ---


def apart(model):
    """Let the parameters of a model lie apart, with the values that they have."""
    model.unflatten(model.state_dict())
    return model


def test_parameters_lie_apart_until_their_values_are_used():
    model, batch = apart(tiny_model()), tiny_batch()
    first = model.parameters()[0]
    own, before = first.value, model(*batch[:2])
    model.decode_step(batch[1][:, 0], 0, None, *model.encode(batch[0]))
    assert first.value is own
    assert isinstance(model.reference, np.ndarray)
    assert Embedding(3, 2).reference.shape == (3, 2)  # its only parameter
    np.testing.assert_array_equal(model.values, tiny_model().values)
    assert all(np.shares_memory(p.value, model.values) for p in model.parameters())
    np.testing.assert_array_equal(model(*batch[:2]), before)
    model.values[...] = 0
    assert not any(p.value.any() for p in model.parameters())


def test_gradients_of_parameters_that_lie_apart_are_kept():
    model, batch = tiny_model(), tiny_batch()
    gradients(model, batch)
    expected = model.grads.copy()
    model = apart(tiny_model())
    gradients(model, batch)
    assert not any(np.shares_memory(p.grad, q.grad) for p, q in pairwise(model.parameters()))
    np.testing.assert_array_equal(model.grads, expected)
    assert all(np.shares_memory(p.grad, model.grads) for p in model.parameters())


def test_parameters_that_are_not_given_get_arrays_of_their_own():
    model = tiny_model()
    values = model.values
    model.unflatten({"output.weight": np.ones(model.output.weight.shape)})
    assert (model.output.weight.value == 1).all()
    assert not any(np.shares_memory(p.value, values) for p in model.parameters())
    assert [p.shape for p in model.parameters()] == [p.shape for p in tiny_model().parameters()]


def test_a_part_of_a_model_whose_parameters_lie_apart_cannot_be_moved_alone():
    model = apart(tiny_model())
    with pytest.raises(UserError, match="lie: flatten, move, optimize or replicate the whole model"):
        model.encoder.flatten()
    assert model.replicate().values is model.values


# --- copies ---


def pickled(model):
    return pickle.loads(pickle.dumps(model))


every_copy = pytest.mark.parametrize("copied", [copy.deepcopy, pickled])


@every_copy
def test_the_parameters_of_a_copy_are_views_of_its_own_buffers(copied):
    model, batch = tiny_model(), tiny_batch()
    gradients(model, batch)
    before, expected = model.values.copy(), model.grads.copy()
    other = copied(model)
    np.testing.assert_array_equal(other.values, before)
    np.testing.assert_array_equal(other.grads, expected)
    np.testing.assert_array_equal(other(*batch[:2]), model(*batch[:2]))
    for parameter in other.parameters():
        assert np.shares_memory(parameter.value, other.values)
        assert np.shares_memory(parameter.grad, other.grads)
    assert not any(np.shares_memory(p.value, model.values) for p in other.parameters())
    other.zero_grad()
    gradients(other, batch)
    np.testing.assert_array_equal(other.grads, expected)
    Adam(other).step(0.1)
    assert np.abs(other(*batch[:2]) - model(*batch[:2])).max() > 1e-3
    np.testing.assert_array_equal(model.values, before)
    np.testing.assert_array_equal(model.grads, expected)
    assert not copied(tiny_model()).parameters()[0].has_grad


@every_copy
def test_a_copy_keeps_a_gradient_that_is_no_view(copied):
    model = tiny_model()
    first = model.parameters()[0]
    first.grad = np.full(first.shape, 3.0)
    assert (copied(model).parameters()[0].grad == 3).all()
    assert (copied(FixedParameter(np.ones(2))).value == 1).all()


@every_copy
def test_a_copy_of_a_part_of_a_model_is_independent(copied):
    model = tiny_model()
    before, part = model.values.copy(), copied(model.encoder)
    for parameter, other in zip(part.parameters(), model.encoder.parameters(), strict=True):
        np.testing.assert_array_equal(parameter.value, other.value)
        parameter.value[...] = 7
    np.testing.assert_array_equal(model.values, before)


@pytest.mark.parametrize("name", ["values", "grads"])
def test_numbers_that_are_assigned_to_a_module_flatten_it(name):
    pair = Pair()
    setattr(pair, name, np.arange(14.0))
    np.testing.assert_array_equal(getattr(pair, name), np.arange(14.0))
    numbers = [p.value if name == "values" else p.grad for p in pair.parameters()]
    assert [part.ravel()[0] for part in numbers] == [0, 2, 8, 11]


def test_a_shared_copy_has_the_same_values_and_gradients_of_its_own():
    model, batch = tiny_model(), tiny_batch()
    gradients(model, batch)
    before = model.grads.copy()
    copied = model.shared_copy()
    copied.zero_grad()
    np.testing.assert_array_equal(model.grads, before)
    gradients(copied, batch)
    np.testing.assert_array_equal(model.grads, before)
    for parameter, other in zip(model.parameters(), copied.parameters(), strict=True):
        assert parameter.value is other.value
        np.testing.assert_array_equal(parameter.grad, other.grad)


# --- replicas ---


@pytest.mark.parametrize("tied", ["none", "all"])
def test_a_replica_shares_values_and_has_gradients_of_its_own(tied):
    model, batch = tiny_model(tied=tied, source_vocab=11, target_vocab=11), tiny_batch()
    gradients(model, batch)
    expected = model.grads.copy()
    replica = model.replicate()
    assert not replica.grads.any()
    gradients(replica, batch)
    np.testing.assert_array_equal(replica.grads, expected)
    np.testing.assert_array_equal(model.grads, expected)
    model.values *= 2
    for (name, parameter), (other, theirs) in zip(
        model.named_parameters(), replica.named_parameters(), strict=True
    ):
        assert name == other
        assert np.shares_memory(parameter.value, theirs.value)
        assert not np.shares_memory(parameter.grad, theirs.grad)


# --- conversion ---


def test_astype_converts_values_gradients_and_tables_and_keeps_the_buffers():
    model = tiny_model(np.float32).astype(np.float64)
    assert model.values.dtype == model.grads.dtype == np.float64
    assert model.source.positions.table.dtype == np.float64
    assert all(np.shares_memory(p.value, model.values) for p in model.parameters())
    logits, _ = model.forward(*tiny_batch()[:2])
    assert logits.dtype == np.float64


# --- states ---


def test_a_state_is_a_copy_that_loads_back():
    model, other = tiny_model(seed=0), tiny_model(seed=5)
    state = model.state_dict()
    assert list(state) == [name for name, _ in model.named_parameters()]
    assert not any(np.shares_memory(array, model.values) for array in state.values())
    buffer = other.values
    other.load_state_dict(state)
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
    model, state = tiny_model(seed=0), tiny_model(seed=5).state_dict()
    spoil(state)
    before = model.values.copy()
    with pytest.raises(UserError, match=sentence):
        model.load_state_dict(state)
    np.testing.assert_array_equal(model.values, before)


def test_a_part_of_a_model_cannot_be_moved_alone():
    """Its parameters would leave the buffers that the optimizer and the checkpoints use."""
    model = tiny_model()
    for tear in (model.encoder.flatten, model.encoder.replicate, lambda: model.encoder.astype(np.float32)):
        with pytest.raises(UserError, match="lie: flatten, move, optimize or replicate the whole model"):
            tear()
    model.values[...] = 0
    assert not model.encoder[0].self_attention.query.weight.value.any()


class Unevaluated:
    """A gradient of ones that records the argument is_zero."""

    def __init__(self):
        self.is_zero = []

    def add_to(self, destination, *, is_zero):
        self.is_zero.append(is_zero)
        destination += 1


def test_a_gradient_is_zero_until_the_first_write():
    parameter, ones = Linear(2, 3).weight, Unevaluated()
    parameter.accumulate(ones)
    parameter.zero_grad()
    parameter.accumulate(ones)
    parameter.accumulate(ones)
    parameter.zero_grad()
    parameter.grad[0, 0] = 1
    parameter.accumulate(ones)
    parameter.zero_grad()
    parameter.accumulate(np.ones((2, 3)))
    parameter.accumulate(ones)
    parameter.zero_grad()
    parameter.grad = np.ones((2, 3))
    parameter.accumulate(ones)
    assert ones.is_zero == [True, True, False, False, False, False]
    np.testing.assert_array_equal(parameter.grad, np.full((2, 3), 2.0))


def test_a_second_product_is_added_to_the_first():
    layer = Linear(2, 3, dtype=np.float64)
    layer.zero_grad()
    x, dy = np.ones((4, 2)), np.ones((4, 3))
    for times in (1, 2):
        layer.backward(dy, layer.forward(x)[1])
        np.testing.assert_array_equal(layer.weight.grad, np.full((2, 3), 4.0 * times))


def test_a_module_prints_as_a_tree():
    model = tiny_model(norm="pre", final_norm=True)
    lines = repr(model).splitlines()
    assert lines[0] == "Transformer"
    assert "    layers.0 to layers.1: PreNormEncoderLayer" in lines
    assert "    norm: LayerNorm(gain (8,), bias (8,))" in lines
    assert repr(Linear(2, 3)) == "Linear(weight (2, 3), bias (3,))"
