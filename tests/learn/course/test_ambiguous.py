"""The sentences of chapter 15: their positions, the kinds of their tokens, and heads that are removed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from npformer.data.dataset import builtin_dataset
from npformer.learn.course.ambiguous import (
    TOKEN_KINDS,
    ablated,
    ambiguous_sentences,
    is_like_the_example,
    kinds_of_tokens,
)
from npformer.models import Transformer, TransformerConfig
from npformer.nn.attention.multi_head import MultiHeadAttention
from npformer.pretrained import Translator


@pytest.fixture(scope="module")
def translator():
    """Return an object with the codecs of the built-in corpus and a small model that is not trained."""
    dataset = builtin_dataset()
    sizes = {"d_model": 8, "d_ff": 8, "n_heads": 2, "n_layers": 1}
    config = TransformerConfig.architecture("small", **(dataset.sizes | sizes))
    model = Transformer(config, rng=np.random.default_rng(0))
    return Translator.of_codecs(model, dataset.source, dataset.target)


def test_the_sentences_and_their_positions(translator):
    it = ambiguous_sentences(translator, "it", 100)
    assert len(it.pairs) == 100
    assert all(map(is_like_the_example, it.pairs))
    assert all(pair.held_out == "words" for pair in it.pairs)
    words = [pair.english.split()[i] for pair, i in zip(it.pairs, it.word, strict=True)]
    assert set(words) == {"it"}
    # the logits at `answer` predict the right word
    assert (it.batch.target_out[it.rows, it.answer] == it.right).all()
    assert (it.right != it.wrong).all()


def test_each_sentence_has_one_token_of_each_kind(translator):
    it = ambiguous_sentences(translator, "it", 100)
    kinds = kinds_of_tokens(it)
    assert kinds.shape == it.batch.source.shape
    for number, name in enumerate(TOKEN_KINDS[:-1]):
        assert ((kinds == number).sum(-1) == 1).all(), name
    for row, pair in enumerate(it.pairs):
        assert kinds[row, pair.reference.antecedent] == TOKEN_KINDS.index("antecedent")
        assert kinds[row, pair.reference.deciders[0]] == TOKEN_KINDS.index("adjective")


def test_a_head_is_removed_for_a_while_even_if_an_error_occurs(rng):
    layer = MultiHeadAttention(6, 3, rng=rng, dtype=np.float64)
    x = rng.standard_normal((2, 4, 6))
    y, cache = layer.forward(x)
    z = cache.attention.weights @ cache.attention.v  # (B, H, T, K)
    terms = z @ layer.output.weight.value.reshape(3, 2, 6)  # (B, H, T, D)

    def removed():
        with ablated(layer, 0, 2):
            assert_allclose(layer.forward(x)[0], terms[:, 1] + layer.output.bias.value)
            raise KeyError

    with pytest.raises(KeyError):
        removed()
    assert (layer.forward(x)[0] == y).all()
