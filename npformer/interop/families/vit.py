"""ViT, a BERT of patches of an image, with a norm before each sublayer (models/vit.py).

A learned class vector stands before the patches, and the classifier is a linear map of what becomes of it.
There are no segments, no norm of the input and no masks; a norm follows the last layer. As in BERT, positions
are a learned table, and the activation is the exact GELU. The pooler, which some files hold, is skipped. The
kernel of the patches, the class vector and the positions are stored like ours.

Source: Dosovitskiy et al. 2021, section 3.1; https://huggingface.co/docs/transformers/model_doc/vit.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.interop.families.bert_layout import LAYER_SETTINGS
from npformer.interop.families.family import Family, Stored, WeightRow
from npformer.interop.families.labels import labels_of, labels_settings
from npformer.interop.families.parts import LayerShape, layer_rows, linear_rows, norm_rows
from npformer.interop.families.settings_table import SettingTable, count, number, pair
from npformer.models.vit import ViT, ViTConfig

SETTINGS = SettingTable(
    ViTConfig,
    architecture=None,  # it depends on the head
    rows=(
        pair("image_size", "image_size", 224),
        pair("patch_size", "patch_size", 16),
        count("n_colours", "num_channels", 3),
        *LAYER_SETTINGS,
        number("dropout", "hidden_dropout_prob", 0.0),
        number("attention_dropout", "attention_probs_dropout_prob", 0.0),
    ),
    required={"qkv_bias": True},
)
PREFIX = "vit."
CLASSIFIER = "classifier"
ATTENTION = ("attention.query", "attention.key", "attention.value", "output.dense")
# the parts of a layer, in our names and in theirs
LAYER = {
    "norm1": "layernorm_before",
    "self_attention": [f"attention.{part}" for part in ATTENTION],
    "norm2": "layernorm_after",  # after attention, before the feed-forward network
    "feed_forward": ["intermediate.dense", "output.dense"],
}


def settings_of(config: ViTConfig) -> dict[str, Any]:
    """Return the content of a config.json."""
    architectures = ["ViTForImageClassification" if config.n_classes else "ViTModel"]
    return SETTINGS.written(config, architectures=architectures, **labels_settings(config.n_classes))


def rows(config: ViTConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    d, theirs, shape = config.d_model, f"{PREFIX}embeddings", LayerShape(config.d_model, config.hidden_width)
    kernel, kernel_shape = f"{theirs}.patch_embeddings.projection", (d, config.n_colours, *config.patch_size)
    yield WeightRow("embedding.patches.weight", kernel_shape, (f"{kernel}.weight",))
    yield WeightRow("embedding.patches.bias", (d,), (f"{kernel}.bias",))
    yield WeightRow("embedding.class_vector", (1, 1, d), (f"{theirs}.cls_token",))
    yield WeightRow("embedding.positions", (1, config.max_length, d), (f"{theirs}.position_embeddings",))
    for i in range(config.n_layers):
        yield from layer_rows(f"encoder.layers.{i}", f"{PREFIX}encoder.layer.{i}", LAYER, shape)
    yield from norm_rows("encoder.norm", f"{PREFIX}layernorm", d)
    if config.n_classes:
        yield from linear_rows("head.output", [CLASSIFIER], d, config.n_classes)


def tensor_name(name: str, config: ViTConfig) -> str | None:
    """Return the name of a tensor with its prefix, or None for the pooler."""
    if name.startswith(f"{CLASSIFIER}."):
        return name
    name = PREFIX + name.removeprefix(PREFIX)
    return None if name.startswith(f"{PREFIX}pooler.") else name


def fit_head(config: ViTConfig, stored: Stored) -> ViTConfig:
    """Return the configuration with as many classes as the classifier has, or 0 if there is none."""
    has_head = f"{CLASSIFIER}.weight" in stored.tensors
    return config.replace(n_classes=len(labels_of(stored.settings)) if has_head else 0)


VIT = Family("vit", ViT, SETTINGS.read, settings_of, rows, tensor_name, fit_head)
