"""Attention over an image: what is drawn where, and what is refused."""

import numpy as np
import pytest
from refused import refused

import npformer
from npformer.interop import export_folder
from npformer.models.vit import ViT, ViTConfig
from npformer.plots import image_attention, text_problems

IMAGE = np.random.default_rng(0).integers(0, 256, (8, 12, 3)).astype(np.uint8)
WEIGHTS = np.random.default_rng(1).random((2, 2, 4))


def test_each_head_is_drawn_over_the_image():
    figure = image_attention(IMAGE, WEIGHTS, query=(1, 2), title="layer 0")
    assert not text_problems(figure)
    first, *heads = figure.axes
    assert all(axes.images[0].get_clim() == (0, 255) for axes in heads)
    assert np.array_equal(first.images[0].get_array(), IMAGE)
    for head, axes in enumerate(heads):
        assert np.allclose(axes.images[1].get_array(), WEIGHTS[head])
        assert axes.images[0].get_extent() == axes.images[1].get_extent()
        (frame,) = axes.patches
        assert (*frame.get_xy(), frame.get_width(), frame.get_height()) == (6, 4, 3, 4)


def test_a_loaded_model_draws_its_attention(tmp_path):
    config = ViTConfig(
        image_size=(8, 12), patch_size=(4, 3), d_model=8, n_layers=2, n_heads=2, d_ff=8, n_classes=3
    )
    model = npformer.load(export_folder(ViT(config), tmp_path / "vit"))
    found = model.attention(IMAGE)
    assert found.weights.shape == (2, 2, 9, 9)
    assert not hasattr(model, "saliency")
    drawn = found.plot(layer=1, query=(1, 2)).axes[2].images[1].get_array()
    assert np.allclose(drawn, found.weights[1, 1, 1 + 1 * 4 + 2, 1:].reshape(2, 4))
    drawn = found.plot(head=1).axes[1].images[1].get_array()
    assert np.allclose(drawn, found.weights[1, 1, 0, 1:].reshape(2, 4))
    prepared = (IMAGE.transpose(2, 0, 1)[None] / 255 - 0.5) / 0.5
    assert np.allclose(model.prepare(IMAGE), prepared, atol=1e-6)
    best = model.classify(IMAGE)[0]
    assert best.label == f"LABEL_{model.logits(prepared).argmax()}"
    logits = model.model.head(model.hidden_states(IMAGE)[-1:])[0]
    np.testing.assert_allclose(logits, model.logits(prepared)[0], atol=1e-5)


@pytest.mark.parametrize(
    ("words", "do"),
    [
        ("layer is 2: there are 2 layers", lambda model: model.attention(IMAGE).plot(layer=2)),
        ("row is 2: there are 2 rows, counted", lambda model: model.attention(IMAGE).plot(query=(2, 0))),
        ("query is 3: give the row and the column", lambda model: model.attention(IMAGE).plot(query=3)),
        ("image has numbers outside 0", lambda model: image_attention(IMAGE / 1.0, WEIGHTS)),
        ("column is 4: there are 4 columns", lambda model: image_attention(IMAGE, WEIGHTS, query=(0, 4))),
        ("resize it", lambda model: model.attention(IMAGE[:4])),
        ("reads images, not texts", lambda model: model.attention("a cat")),
        ("saliency is for models of texts", lambda model: model.saliency),
        ("rows of different lengths", lambda model: model.prepare([[1, 2], [3]])),
        ("something else than finite numbers", lambda model: model.prepare(np.full(IMAGE.shape, "a"))),
        ("something else than finite numbers", lambda model: model.prepare(np.full(IMAGE.shape, np.nan))),
        ("has no head", lambda model: model.classify(IMAGE)),
    ],
)
def test_refused(words, do, tmp_path):
    config = ViTConfig(image_size=(8, 12), patch_size=(4, 3), d_model=8, n_layers=2, n_heads=2, d_ff=8)
    model = npformer.load(export_folder(ViT(config), tmp_path / "vit"))
    with refused(words):
        do(model)
