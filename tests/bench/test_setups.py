"""The setups of the benchmark: their sizes, their batches and their dropout."""

import functools
from dataclasses import replace

import numpy as np
import pytest

from npformer.bench.setups import SETUPS, choose_setups
from npformer.errors import UserError
from npformer.models.transformer import Transformer


# parameters as PyTorch counts them, number of target tokens, sums of all source and target ids
@pytest.mark.parametrize(
    ("name", "parameters", "tokens", "sources", "targets"),
    [
        ("tiny", 5175568, 1757, 1816570, 1876940),
        ("small", 11682624, 1734, 1505786, 1535429),
        ("base8k", 48236544, 859, 832235, 723195),
        ("base37k", 63084544, 855, 2850760, 2746427),
    ],
)
def test_setups_have_known_sizes_and_data(name, parameters, tokens, sources, targets):
    setup = SETUPS.find(name)
    batch = setup.batch()
    assert counted(setup) == parameters
    assert (batch.tokens, batch.source.sum(), batch.target_out.sum()) == (tokens, sources, targets)
    assert batch.source.shape == batch.target_in.shape == (setup.sentences, setup.length)
    np.testing.assert_array_equal(batch.target_in[:, 1:], batch.target_out[:, :-1])
    lengths = (batch.source != 0).sum(1)
    assert lengths.max() == setup.length
    assert lengths.min() >= int(0.7 * setup.length)


def counted(setup):
    """Return the number of parameters, extrapolated from small models: linear in vocabulary and layers."""
    base, word, layer = count(setup, 10, 1), count(setup, 11, 1), count(setup, 10, 2)
    return base + (setup.vocab_size - 10) * (word - base) + (setup.n_layers - 1) * (layer - base)


def count(setup, vocab_size, n_layers):
    return built(replace(setup, name="", vocab_size=vocab_size, n_layers=n_layers)).count_parameters()


@functools.cache
def built(setup):
    return Transformer(setup.config())


def test_choosing_setups():
    assert [setup.name for setup in choose_setups(None)] == ["tiny", "small", "base8k", "base37k"]
    assert [setup.name for setup in choose_setups(["small", "tiny", "small"])] == ["small", "tiny"]
    assert [setup.name for setup in choose_setups(["gpt384"])] == ["gpt384"]
    with pytest.raises(UserError, match="unknown setup 'base': did you mean base8k"):
        choose_setups(["base"])
