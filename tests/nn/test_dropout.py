"""Dropout in layers and models: the conditions under which it acts."""

import numpy as np
import pytest
from tiny import tiny_batch, tiny_model

from npformer.functional.tutorial_masks import Masking
from npformer.kernels import plain_pairs
from npformer.nn import (
    AddNorm,
    BucketedAttention,
    CappedAttention,
    Context,
    FeedForward,
    GatedFeedForward,
    InputEmbedding,
    MultiHeadAttention,
    MultiHeadLatentAttention,
    QKNormAttention,
    RelativeAttention,
    RotaryPositions,
    SimilarityAttention,
)
from npformer.nn.attention.tutorial import TutorialAttention

LAYERS = {
    FeedForward: (6, 8),
    GatedFeedForward: (6, 8),
    MultiHeadAttention: (6, 2),
    RelativeAttention: (6, 2),
    SimilarityAttention: (6, 2),
    AddNorm: (6,),
    CappedAttention: (6, 2),
    BucketedAttention: (6, 2),
    QKNormAttention: (6, 2),
    TutorialAttention: (6, 2),
    MultiHeadLatentAttention: (6, 2),
    InputEmbedding: (9, 6, 7),
}


def make(kind, **settings):
    """Return a layer whose initial values are always the same, and what it reads."""
    if kind is MultiHeadLatentAttention:
        settings |= {"d_latent": 4, "rotary": RotaryPositions(3, 5, rotated=2)}
    if kind is TutorialAttention:
        settings["masking"] = Masking()
    if kind is not AddNorm:
        settings["rng"] = np.random.default_rng(1)
    x = np.random.default_rng(0).standard_normal((2, 3, 6)).astype(np.float32)
    return kind(*LAYERS[kind], **settings), {
        InputEmbedding: (np.array([[1, 2, 3]]),),
        AddNorm: (x, 2 * x),
    }.get(kind, (x,))


def in_training(layer, inputs):
    """Return the output of a training step."""
    return layer.forward(*inputs, context=Context(train=True, rng=np.random.default_rng(0)))[0]


@pytest.mark.parametrize("kind", LAYERS)
def test_without_a_probability_a_layer_drops_nothing(kind):
    layer, inputs = make(kind)
    np.testing.assert_array_equal(in_training(layer, inputs), layer.forward(*inputs)[0])


@pytest.mark.parametrize("kind", LAYERS)
def test_with_a_probability_a_layer_drops_something_in_training_only(kind):
    (plain, inputs), (layer, _) = make(kind), make(kind, dropout=0.5)
    y, _ = layer.forward(*inputs)
    np.testing.assert_array_equal(y, plain.forward(*inputs)[0])
    assert np.abs(in_training(layer, inputs) - y).max() > 1e-3


RATES = ["dropout", "embedding_dropout", "attention_dropout", "feed_forward_dropout"]


@pytest.mark.parametrize("setting", RATES)
def test_every_dropout_of_a_model_acts_in_training_only(setting):
    """The same generator gives the same logits again, and another generator gives others."""
    model, plain = tiny_model(**{setting: 0.5}), tiny_model()
    source, target_in, _ = tiny_batch()

    def logits(seed, train=True):
        return model.forward(source, target_in, train=train, rng=np.random.default_rng(seed))[0]

    expected, _ = plain.forward(source, target_in)
    np.testing.assert_array_equal(logits(0, train=False), expected)
    np.testing.assert_array_equal(logits(0), logits(0))
    assert np.abs(logits(0) - expected).max() > 0.01
    assert np.abs(logits(0) - logits(1)).max() > 0.01


@pytest.mark.parametrize("norm", ["post", "pre", "n-da"])
def test_dropout_acts_in_every_sublayer(norm):
    """If one sublayer dropped nothing, the gradients would be right, and the logits would vary."""
    rates = {"dropout": 0.5, "attention_dropout": 0.5, "feed_forward_dropout": 0.5}
    model = tiny_model(norm=norm, final_norm=norm != "post", **rates)
    source, target_in, _ = tiny_batch()
    with plain_pairs():  # their caches contain all dropout masks
        _, cache = model.forward(source, target_in, train=True, rng=np.random.default_rng(0))
    for layer in (*cache.encoder, *cache.decoder):
        masks = [layer.feed_forward.hidden.dropout_mask, layer.self_attention.attention.dropout_mask]
        masks += [layer.cross.attention.dropout_mask] if hasattr(layer, "cross") else []
        masks += [getattr(layer, place) for place in layer._fields if place.startswith("dropout")]
        parts = [
            getattr(layer, place) for place in layer._fields if place.startswith(("norm", "postprocess"))
        ]
        masks += [part.dropout_mask for part in parts if hasattr(part, "dropout_mask")]
        assert len(masks) == (6 if hasattr(layer, "cross") else 4)
        assert all((mask == 0).any() for mask in masks)


def test_attention_dropout_acts_on_the_weights_and_keeps_them_in_the_cache():
    """The cached weights are without dropout, so that figures show the attention; the mask is separate."""
    model = tiny_model(attention_dropout=0.5)
    source, target_in, _ = tiny_batch()
    _, cache = model.forward(source, target_in, train=True, rng=np.random.default_rng(0))
    attention = cache.encoder[0].self_attention.attention
    np.testing.assert_allclose(attention.weights.sum(-1), 1, rtol=1e-12)
    kept, factor = attention.dropout_mask  # in the form in which the kernels store it
    assert set(np.unique(kept * factor)) == {0.0, 2.0}
