"""show prints every name in a cache."""

import numpy as np
from tiny import tiny_batch, tiny_model

from npformer import show
from npformer.nn.show import as_text, named_arrays


def test_show_prints_three_numbers_unless_it_is_told_otherwise(capsys):
    show(np.arange(6))
    show(np.arange(6), numbers=5)
    assert capsys.readouterr().out == "ndarray (6) int64: 0 1 2 …\nndarray (6) int64: 0 1 2 3 4 …\n"
    assert as_text(np.arange(6)) == "ndarray (6) int64: 0 1 2 …"


def test_a_models_cache_is_a_tree_that_mirrors_the_model():
    source, target_in, _ = tiny_batch()
    _, cache = tiny_model().forward(source, target_in)
    lines = as_text(cache).splitlines()
    assert lines[:2] == ["TransformerCache", "  source"]
    arrays = dict(named_arrays(cache))
    weights = cache.decoder[1].cross.attention.weights
    assert arrays["decoder.layers.1.cross.attention.weights"] is weights
    q = cache.encoder[0].self_attention.attention.q
    assert arrays["encoder.layers.0.self_attention.attention.q"] is q
    shape = ", ".join(map(str, weights.shape))
    assert sum(f"weights ({shape}) float64:" in line for line in lines) == 2
    assert all("object at" not in line for line in lines)


def test_named_arrays_finds_every_array_and_nothing_else():
    one, two = np.ones(1), np.ones(2)
    assert dict(named_arrays((one, (3, None), (two, "text")))) == {"0": one, "2.0": two}
