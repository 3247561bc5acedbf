"""Tests of F21: the output layer and its softmax."""

import numpy as np
import pytest
from figure_cells import read, same
from jianshu_oracle import softmax

from npformer.models.transformer import Transformer, TransformerConfig


@pytest.mark.parametrize(("words", "seed"), [(["je", "suis", "étudiant"], 3), (["merci"], 7)])
def test_f21_dense_layer_and_softmax(words, seed):
    vocabulary = sorted(words)
    sizes = {"source_vocab": 8, "target_vocab": 4 + len(words), "d_model": 6, "d_ff": 24, "n_heads": 1}
    config = TransformerConfig(**sizes, n_layers=1, tied="none", output_bias=True)
    model = Transformer(config, rng=np.random.default_rng(seed))
    target_in = np.array([[2, *(4 + vocabulary.index(w) for w in words)]])
    english = ["i", "am", "a", "student"]
    source = np.array([[*(4 + sorted(english).index(word) for word in english), 3]])
    logits, cache = model.forward(source, target_in)
    found = read("F21", translation=" ".join(words), seed=seed)
    above, below = found[:-2], found[-2:]
    r, weight, bias = sorted(above, key=lambda g: g.left)
    same(r.values, cache.output.x[0])
    same(weight.values, model.output.weight.value)
    same(bias.values, np.zeros((1, 4 + len(words))))
    same(below[0].values, logits[0])
    p = softmax(logits[0])
    same(below[1].values, p)
    np.testing.assert_array_equal(below[1].painted("position"), p == p.max(-1, keepdims=True))
