"""ViT: https://huggingface.co/docs/transformers/model_doc/vit.

Queries, keys and values are apart, and matrices stored as (out, in). The kernel of the patches, the class
vector and the positions are stored as ours. The head is a classifier, or there is none; the pooler of a model
without a head is skipped. What the layers compute is in npformer/models/vit.py.

Source: Dosovitskiy et al. 2021, "An Image is Worth 16x16 Words", section 3.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.bert import labels_of
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import ACTIVATIONS, linear_rows, name_of_activation, norm_rows
from npformer.interop.settings_file import Settings
from npformer.models.vit import ViT, ViTConfig
from npformer.validation import short

PREFIX = "vit."
HEAD = "classifier"


def config_of(settings: Settings) -> ViTConfig:
    """Return our configuration of a ViT.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("qkv_bias", True, default=True)
    return settings.configure(
        ViTConfig,
        image_size=_size(settings, "image_size", 224),
        patch_size=_size(settings, "patch_size", 16),
        n_colours=settings.count("num_channels", 3),
        d_model=settings.count("hidden_size", 768),
        n_layers=settings.count("num_hidden_layers", 12),
        n_heads=settings.count("num_attention_heads", 12),
        d_ff=settings.count("intermediate_size", 3072),
        activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        norm_eps=settings.number("layer_norm_eps", 1e-12),
        dropout=settings.number("hidden_dropout_prob", 0.0),
        attention_dropout=settings.number("attention_probs_dropout_prob", 0.0),
    )


def _size(settings: Settings, name: str, default: int) -> tuple[int, int]:
    """Return a height and a width, which a file gives as one number or as two."""
    value = settings.values.get(name)
    if not isinstance(value, list):
        return (settings.count(name, default),) * 2
    if len(value) != 2 or any(type(each) is not int or each < 1 for each in value):
        raise UserError(f"{name} is {short(value)} in {settings.place}: it must be a height and a width")
    return value[0], value[1]


def settings_of(config: ViTConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    labels = {str(index): f"LABEL_{index}" for index in range(config.n_classes)}
    head = {"id2label": labels, "label2id": {label: int(index) for index, label in labels.items()}}
    return {
        "model_type": "vit",
        "architectures": ["ViTForImageClassification" if config.n_classes else "ViTModel"],
        "image_size": list(config.image_size),
        "patch_size": list(config.patch_size),
        "num_channels": config.n_colours,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.d_ff,
        "hidden_act": name_of_activation(config.activation),
        "layer_norm_eps": config.norm_eps,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        **(head if config.n_classes else {}),
    }


def rows(config: ViTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    d, f, theirs = config.d_model, config.d_ff, f"{PREFIX}embeddings"
    kernel = f"{theirs}.patch_embeddings.projection"
    yield WeightRow("embedding.weight", (d, config.n_colours, *config.patch_size), (f"{kernel}.weight",))
    yield WeightRow("embedding.bias", (d,), (f"{kernel}.bias",))
    yield WeightRow("embedding.class_vector", (1, 1, d), (f"{theirs}.cls_token",))
    positions = (1, config.max_length, d)
    yield WeightRow("embedding.positions", positions, (f"{theirs}.position_embeddings",))
    for i in range(config.n_layers):
        ours, layer = f"encoder.layers.{i}", f"{PREFIX}encoder.layer.{i}"
        parts = [f"{layer}.attention.attention.{part}" for part in ("query", "key", "value")]
        yield from linear_rows(f"{ours}.self_attention.query_key_value", parts, d, 3 * d)
        yield from linear_rows(f"{ours}.self_attention.output", [f"{layer}.attention.output.dense"], d, d)
        yield from linear_rows(f"{ours}.feed_forward.inner", [f"{layer}.intermediate.dense"], d, f)
        yield from linear_rows(f"{ours}.feed_forward.outer", [f"{layer}.output.dense"], f, d)
        yield from norm_rows(f"{ours}.norm1", f"{layer}.layernorm_before", d)
        yield from norm_rows(f"{ours}.norm2", f"{layer}.layernorm_after", d)
    yield from norm_rows("encoder.norm", f"{PREFIX}layernorm", d)
    if config.n_classes:
        yield from linear_rows("head", [HEAD], d, config.n_classes)


def tensor_name(name: str, config: ViTConfig) -> str | None:
    """Return the name of a tensor with its prefix, or None for the pooler."""
    if name.startswith(f"{HEAD}."):
        return name
    name = PREFIX + name.removeprefix(PREFIX)
    return None if name.startswith(f"{PREFIX}pooler.") else name


def with_head(config: ViTConfig, settings: Settings, stored: Collection[str]) -> ViTConfig:
    """Return the configuration with as many classes as the classifier has, or 0 if there is none.

    Args:
        config: The configuration.
        settings: The settings of the config.json.
        stored: The names of the tensors in the files.
    """
    has_head = f"{HEAD}.weight" in stored
    return config.replace(n_classes=len(labels_of(settings)) if has_head else 0)


VIT = Family("vit", ViT, config_of, settings_of, rows, tensor_name, with_head)
