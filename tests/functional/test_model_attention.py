"""Tests of the attention weights of a model: the forms that are read, and what is refused."""

import numpy as np
import pytest

from npformer.errors import UserError
from npformer.functional.model_attention import layers_of, require_weights
from npformer.nn import Linear


def uniform(*shape):
    """Return weights in which every query attends to all keys alike."""
    return np.full(shape, 1 / shape[-1])


@pytest.mark.parametrize(
    ("weights", "n_layers"),
    [
        ([uniform(1, 2, 3, 4)] * 2, 2),
        ([uniform(2, 3, 4)] * 2, 2),
        (uniform(5, 1, 2, 3, 4), 5),
        (uniform(1, 2, 3, 4), 1),
        (uniform(2, 3, 4), 1),
    ],
)
def test_the_forms_that_are_read(weights, n_layers):
    layers = layers_of(weights)
    assert len(layers) == n_layers
    assert all(layer.shape == (2, 3, 4) and (layer == 1 / 4).all() for layer in layers)


def test_layers_are_chosen_by_their_names_only_if_they_have_names():
    named = {"encoder": uniform(2, 3, 4), "decoder": uniform(2, 5, 4)}
    assert [layer.shape for layer in layers_of(named, only="dec")] == [(2, 5, 4)]
    with pytest.raises(UserError, match="only is 'dec', and the weights have no names"):
        layers_of(list(named.values()), only="dec")
    with pytest.raises(UserError, match="no attention has 'x' in its name: choose from encoder, decoder"):
        layers_of(named, only="x")


def test_numbers_in_lists_and_whole_numbers_are_read():
    assert layers_of([[1.0, 0.0], [0.5, 0.5]])[0].tolist() == [[[1, 0], [0.5, 0.5]]]
    (layer,) = layers_of(np.eye(3, dtype=int))
    assert layer.dtype == np.float64
    assert layers_of(np.eye(3, dtype=np.float32))[0].dtype == np.float32


def test_one_example_of_a_batch():
    batch = np.stack([uniform(2, 3, 4), np.zeros((2, 3, 4))])
    assert (layers_of([batch], example=0)[0] == 1 / 4).all()
    assert (layers_of([batch], example=1)[0] == 0).all()
    with pytest.raises(UserError, match=r"weights\[0\] has shape \(2, 2, 3, 4\), a batch of 2 examples"):
        layers_of([batch])
    with pytest.raises(UserError, match="example is 2: there are 2 examples, counted from 0"):
        layers_of([batch], example=2)


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (None, "weights is None: Hugging Face's default attention"),
        ((), "weights is empty"),
        (np.zeros((0, 1, 2, 3, 3)), "weights is empty"),
        ((uniform(2, 3, 4), None), r"weights\[1\] is None"),
        ((uniform(2, 3, 4), 5), r"weights\[1\] is a int: give an array for each layer"),
        (((uniform(2, 3, 4),), (uniform(1, 2, 3, 4),)), "weights is nested, as generate"),
        ({"attentions": uniform(2, 3, 4), "x": 1}, "weights is a dict with 'attentions': give one entry"),
        ({"x": 5}, "weights is a dict with 'x'"),
        (((uniform(2, 3, 4),), ()), "its steps have different numbers of layers"),
        (((uniform(1, 1, 1),), (uniform(1, 1, 1, 2),)), "its steps do not follow each other"),
        (((), (uniform(2, 3, 4),)), "its steps have different numbers of layers"),
        (
            {"attentions": None, "own_attention": uniform(2, 3)},
            r"give one entry, .*weights\['own_attention'\]",
        ),
        ([[1.0, 2.0], [1.0]], "rows of different lengths"),
        ((uniform(2, 3, 4), uniform(2, 3, 5)), r"weights\[1\] has shape \(2, 3, 5\) .* weights\[0\] has"),
        (np.zeros((2, 0, 4)), r"weights has shape \(2, 0, 4\)"),
        (np.zeros(4), r"weights has shape \(4,\)"),
        (np.full((2, 2), "a"), "weights holds <U1: give real numbers"),
        (np.eye(2, dtype=complex), "weights holds complex128: give real numbers"),
        (Linear(2, 2), "weights is a Linear, a model and no array: give the weights that it computes"),
        ("gpt2", r"weights is 'gpt2': give arrays; of a folder, npformer.load\(FOLDER\)"),
    ],
)
def test_forms_that_are_refused(weights, words):
    with pytest.raises(UserError, match=words):
        layers_of(weights)


@pytest.mark.parametrize("grows", [1, 0])
def test_the_steps_of_generate_are_joined_and_a_dict_has_its_layers(grows):
    """A prompt of 3 tokens and two new ones; in cross-attention, all of them attend to the same keys."""
    whole = np.tril(np.ones((2, 4, 5, 5))) if grows else np.random.default_rng(0).random((2, 4, 5, 3))
    steps = [whole[:, :, :3, :3], *(whole[:, :, t : t + 1, : 3 + grows * (t - 2)] for t in (3, 4))]
    uncached = [whole[:, :, :t, : 3 + grows * (t - 3)] for t in (3, 4, 5)]
    for given in (steps, uncached):
        layer, _ = layers_of([(step, 2 * step) for step in given], example=1)
        np.testing.assert_array_equal(layer, whole[1])
    assert len(layers_of({"h.0.attn": whole, "h.1.attn": whole}, example=0)) == 2
    assert len(layers_of({"own": np.stack([whole] * 3)}, example=0)) == 3  # all layers of one kind


def test_a_list_of_numbers_of_numpy_is_read_as_a_list_of_numbers():
    weights = uniform(3, 3)
    np.testing.assert_array_equal(layers_of([list(row) for row in weights])[0], weights[None])


def test_the_output_of_a_model_is_refused_with_the_names_of_its_attentions():
    Output = type("Output", (dict,), {"to_tuple": tuple})  # as the classes of Hugging Face
    with pytest.raises(UserError, match="weights is a Output with 'attentions': give one entry"):
        layers_of(Output(logits=uniform(2, 3), attentions=(uniform(1, 2, 3, 4),)))
    with pytest.raises(UserError, match="weights is a Output without attentions"):
        layers_of(Output(logits=uniform(2, 3), attentions=None))


class Foreign:
    """An array of a library that NumPy can read, and that has no dtype of NumPy."""

    def __init__(self, numbers):
        self.numbers, self.shape = numbers, numbers.shape

    def __getitem__(self, index):
        return Foreign(self.numbers[index])

    def __array__(self, dtype=None, copy=None):
        return self.numbers


@pytest.mark.parametrize("shape", [(1, 2, 3, 4), (2, 3, 4), (3, 4)])
def test_arrays_of_another_library_become_arrays_of_numpy(shape):
    for layer in layers_of([Foreign(uniform(*shape))] * 2):
        assert isinstance(layer, np.ndarray)
        np.testing.assert_array_equal(layer, uniform(*(1, *shape)[-3:]))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -0.5])
def test_a_weight_that_is_none(wrong):
    layer = uniform(2, 3, 4)
    layer[0, 1, 2], layer[1, 2, 3] = 0, wrong  # 0 is a weight
    with pytest.raises(UserError, match=rf"own\[1, 2, 3\] is {wrong:.3g}, at \[head, query, key\]"):
        require_weights(layer, "own")


def test_each_row_adds_up_to_one_or_to_zero():
    layer = uniform(2, 3, 4)
    layer[0, 1] = 0
    require_weights(layer, "own")
    require_weights(layer * 1.004, "own")
    layer[1, 2] *= 1.006
    with pytest.raises(UserError, match=r"own\[1, 2\] adds up to 1.01 and not to 1"):
        require_weights(layer, "own")
    layer[1, 2] /= 2  # one row alone, so this is not what attention sinks do
    with pytest.raises(UserError, match=r"adds up to 0.503 and not to 1.*normalized=False$"):
        require_weights(layer, "own")
    with pytest.raises(UserError, match="such as GPT-OSS"):
        require_weights(uniform(2, 3, 4) / 2, "own")
    require_weights(layer, "own", normalized=False)


@pytest.mark.parametrize(("factor", "said"), [(0.5, True), (1.5, False)])
def test_attention_sinks_are_named_where_they_can_be_the_reason(factor, said):
    with pytest.raises(UserError, match="adds up to") as caught:
        require_weights(factor * uniform(1, 2, 4), "own")
    assert ("attention sinks" in str(caught.value)) == said


def test_the_prompt_and_one_new_token_or_the_prompt_alone_are_joined():
    prompt, new = uniform(1, 2, 3, 3).astype(np.float32), uniform(1, 2, 1, 4)
    (alone,) = layers_of(((prompt,),))
    assert (alone.shape, alone.dtype) == ((2, 3, 3), np.float32)
    (joined,) = layers_of(((prompt,), (new,)))
    assert joined.shape == (2, 4, 4)
    assert (joined[:, :3, 3] == 0).all()
    np.testing.assert_allclose(joined.sum(-1), 1)


@pytest.mark.parametrize("wrong", [3, "a", (uniform(2, 3, 4), "a")], ids=repr)
def test_a_step_is_a_tuple_of_layers(wrong):
    with pytest.raises(UserError, match=r"^weights is nested, and .* is no step: give each step as a tuple"):
        layers_of([wrong, (uniform(2, 3, 4), uniform(2, 3, 4))])
