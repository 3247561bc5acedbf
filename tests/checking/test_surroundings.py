"""The arrays that a forward pass uses beside its tensors."""

import numpy as np

from npformer.checking import gradcheck
from npformer.checking.surroundings import other_arrays
from npformer.models.gpt import GPT, GPTConfig

RNG = np.random.default_rng(0)


def test_the_gradients_of_a_flattened_model_are_none_of_them():
    config = GPTConfig(vocab_size=7, d_model=4, n_layers=2, n_heads=2, context=5)
    model = GPT(config, rng=RNG, dtype=np.float64)
    model.grads[...] = 1  # allocates the gradients, which are views of one array
    assert not list(other_arrays(model, {}))
    assert [name for name, _ in other_arrays(model, {"mask": np.ones(3)})] == ["mask"]


class Weighted:
    """y = x values, where `values` is no parameter."""

    def __init__(self):
        self.values = RNG.standard_normal(3)

    def forward(self, x):
        return x * self.values, None

    def backward(self, dy, cache):
        return dy * self.values


def test_an_array_of_any_name_is_noted():
    report = gradcheck(Weighted(), RNG.standard_normal((2, 3)))
    assert report.ok
    assert any("not parameters and were not checked: values (3,)" in note for note in report.notes)
