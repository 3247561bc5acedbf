"""ViT: https://huggingface.co/docs/transformers/model_doc/vit.

Matrices are stored as (out, in), and the kernel of the patches, the class vector and the positions as ours.
The head is a classifier, or there is none: then the pooler is skipped. The layers are in models/vit.py.

Source: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.interop.families.bert import LAYER_ROWS
from npformer.interop.families.family import Family, Stored, WeightRow
from npformer.interop.families.labels import labels_of, labels_settings
from npformer.interop.families.parts import LayerShape, layer_rows, linear_rows, norm_rows
from npformer.interop.families.settings_table import SettingRow, SettingTable, count, number
from npformer.interop.settings_file import Settings
from npformer.models.vit import ViT, ViTConfig

SETTINGS = SettingTable(
    ViTConfig,
    (
        SettingRow(Settings.pair, "image_size", "image_size", 224),
        SettingRow(Settings.pair, "patch_size", "patch_size", 16),
        count("n_colours", "num_channels", 3),
        *LAYER_ROWS,
        number("dropout", "hidden_dropout_prob", 0.0),
        number("attention_dropout", "attention_probs_dropout_prob", 0.0),
    ),
    only={"qkv_bias": True},
    theirs={"model_type": "vit"},
)
PREFIX = "vit."
HEAD = "classifier"
ATTENTION = ("attention.query", "attention.key", "attention.value", "output.dense")
# the parts of a layer, in our names and in theirs
LAYER = {
    "norm1": "layernorm_before",
    "self_attention": [f"attention.{part}" for part in ATTENTION],
    "norm2": "layernorm_after",
    "feed_forward.inner": "intermediate.dense",
    "feed_forward.outer": "output.dense",
}


def settings_of(config: ViTConfig) -> dict[str, Any]:
    """Return the content of a config.json."""
    architectures = ["ViTForImageClassification" if config.n_classes else "ViTModel"]
    return SETTINGS.written(config, architectures=architectures, **labels_settings(config.n_classes))


def rows(config: ViTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
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
        yield from linear_rows("head.output", [HEAD], d, config.n_classes)


def tensor_name(name: str, config: ViTConfig) -> str | None:
    """Return the name of a tensor with its prefix, or None for the pooler."""
    if name.startswith(f"{HEAD}."):
        return name
    name = PREFIX + name.removeprefix(PREFIX)
    return None if name.startswith(f"{PREFIX}pooler.") else name


def with_head(config: ViTConfig, stored: Stored) -> ViTConfig:
    """Return the configuration with as many classes as the classifier has, or 0 if there is none."""
    has_head = f"{HEAD}.weight" in stored.tensors
    return config.replace(n_classes=len(labels_of(stored.settings)) if has_head else 0)


VIT = Family("vit", ViT, SETTINGS.read, settings_of, rows, tensor_name, with_head)
