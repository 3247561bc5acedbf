"""BERT and DistilBERT: https://huggingface.co/docs/transformers/model_doc/bert and .../distilbert.

Their layers are the same, under different names. DistilBERT has no vectors of segments. A file may also hold
the pooler and the layer of next sentence prediction, which no masked language model needs: they are skipped.

Source: Devlin et al. 2019; Sanh et al. 2019.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import ACTIVATIONS, linear_rows, name_of_activation, norm_rows
from npformer.interop.settings_file import Settings
from npformer.models.bert import Bert, BertConfig

DISTILBERT_EPS = 1e-12  # of every norm of DistilBERT, which has no setting for it


@dataclass(frozen=True)
class Names:
    """The names of the layers in a file.

    Attributes:
        embeddings: The prefix of the input tables and their norm.
        layer: The prefix of a layer, where {} stands for its number.
        projections: The projections of queries, keys and values, after the prefix of a layer; so are the next
            five.
        attention_output: The output projection of attention.
        attention_norm: The norm after attention.
        inner: The first linear map of the feed-forward network.
        outer: The second one.
        feed_forward_norm: The norm after the feed-forward network.
        dense: The linear map of the head.
        head_norm: The norm of the head.
        output_bias: The tensor of the bias of the logits.
        skipped: The pattern of the names of tensors that are not parameters of a masked language model.
    """

    embeddings: str
    layer: str
    projections: tuple[str, str, str]
    attention_output: str
    attention_norm: str
    inner: str
    outer: str
    feed_forward_norm: str
    dense: str
    head_norm: str
    output_bias: str
    skipped: str


BERT_NAMES = Names(
    embeddings="bert.embeddings",
    layer="bert.encoder.layer.{}",
    projections=("attention.self.query", "attention.self.key", "attention.self.value"),
    attention_output="attention.output.dense",
    attention_norm="attention.output.LayerNorm",
    inner="intermediate.dense",
    outer="output.dense",
    feed_forward_norm="output.LayerNorm",
    dense="cls.predictions.transform.dense",
    head_norm="cls.predictions.transform.LayerNorm",
    output_bias="cls.predictions.bias",
    skipped=r"bert\.pooler\..*|cls\.seq_relationship\..*|cls\.predictions\.decoder\.(weight|bias)"
    r"|bert\.embeddings\.position_ids",
)
DISTILBERT_NAMES = Names(
    embeddings="distilbert.embeddings",
    layer="distilbert.transformer.layer.{}",
    projections=("attention.q_lin", "attention.k_lin", "attention.v_lin"),
    attention_output="attention.out_lin",
    attention_norm="sa_layer_norm",
    inner="ffn.lin1",
    outer="ffn.lin2",
    feed_forward_norm="output_layer_norm",
    dense="vocab_transform",
    head_norm="vocab_layer_norm",
    output_bias="vocab_projector.bias",
    skipped=r"vocab_projector\.weight|distilbert\.embeddings\.position_ids",
)


def bert_config_of(settings: Settings) -> BertConfig:
    """Return our configuration of a BERT.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("is_decoder", False, default=False)
    settings.require("add_cross_attention", False, default=False)
    settings.require("position_embedding_type", "absolute", default="absolute")
    settings.require("tie_word_embeddings", True, default=True)
    return settings.configure(
        BertConfig,
        vocab_size=settings.count("vocab_size", 30522),
        d_model=settings.count("hidden_size", 768),
        n_layers=settings.count("num_hidden_layers", 12),
        n_heads=settings.count("num_attention_heads", 12),
        d_ff=settings.count("intermediate_size", 3072),
        max_length=settings.count("max_position_embeddings", 512),
        n_segments=settings.count("type_vocab_size", 2),
        activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        norm_eps=settings.number("layer_norm_eps", 1e-12),
        dropout=settings.number("hidden_dropout_prob", 0.1),
        attention_dropout=settings.number("attention_probs_dropout_prob", 0.1),
        pad_id=settings.index("pad_token_id", 0),
    )


def bert_settings_of(config: BertConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from bert_config_of.

    Raises:
        UserError: If the model has no segments.
    """
    if not config.n_segments:
        raise UserError("the model has no segments, and BERT has them: write it as a DistilBERT")
    return {
        "model_type": "bert",
        "architectures": ["BertForMaskedLM"],
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.hidden_width,
        "max_position_embeddings": config.max_length,
        "type_vocab_size": config.n_segments,
        "hidden_act": name_of_activation(config.activation),
        "layer_norm_eps": config.norm_eps,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "pad_token_id": config.pad_id,
    }


def distilbert_config_of(settings: Settings) -> BertConfig:
    """Return our configuration of a DistilBERT.

    Its setting sinusoidal_pos_embds says only how the positions were initialised: the file holds them.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("tie_word_embeddings", True, default=True)
    return settings.configure(
        BertConfig,
        vocab_size=settings.count("vocab_size", 30522),
        d_model=settings.count("dim", 768),
        n_layers=settings.count("n_layers", 6),
        n_heads=settings.count("n_heads", 12),
        d_ff=settings.count("hidden_dim", 3072),
        max_length=settings.count("max_position_embeddings", 512),
        n_segments=0,
        activation=settings.choice("activation", ACTIVATIONS, "gelu"),
        norm_eps=DISTILBERT_EPS,
        dropout=settings.number("dropout", 0.1),
        attention_dropout=settings.number("attention_dropout", 0.1),
        pad_id=settings.index("pad_token_id", 0),
    )


def distilbert_settings_of(config: BertConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from distilbert_config_of."""
    return {
        "model_type": "distilbert",
        "architectures": ["DistilBertForMaskedLM"],
        "vocab_size": config.vocab_size,
        "dim": config.d_model,
        "n_layers": config.n_layers,
        "n_heads": config.n_heads,
        "hidden_dim": config.hidden_width,
        "max_position_embeddings": config.max_length,
        "sinusoidal_pos_embds": False,
        "activation": name_of_activation(config.activation),
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "pad_token_id": config.pad_id,
    }


def rows(names: Names, config: BertConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file.

    Args:
        names: The names of the layers in the file.
        config: The configuration.
    """
    d_model, table = config.d_model, f"{names.embeddings}.{{}}_embeddings.weight"
    yield WeightRow("embedding.tokens.weight", (config.vocab_size, d_model), (table.format("word"),))
    yield WeightRow("embedding.positions.weight", (config.max_length, d_model), (table.format("position"),))
    if config.n_segments:
        yield WeightRow(
            "embedding.segments.weight", (config.n_segments, d_model), (table.format("token_type"),)
        )
    yield from norm_rows("embedding.norm", f"{names.embeddings}.LayerNorm", d_model)
    for index in range(config.n_layers):
        yield from _layer_rows(names, config, index)
    yield from linear_rows("head.dense", [names.dense], d_model, d_model)
    yield from norm_rows("head.norm", names.head_norm, d_model)
    yield WeightRow("head.output.bias", (config.vocab_size,), (names.output_bias,))


def _layer_rows(names: Names, config: BertConfig, index: int) -> Iterator[WeightRow]:
    """Yield the rows of one layer of the encoder."""
    d_model, width = config.d_model, config.hidden_width
    ours, theirs = f"encoder.layers.{index}", names.layer.format(index)
    projections = [f"{theirs}.{projection}" for projection in names.projections]
    yield from linear_rows(f"{ours}.self_attention.query_key_value", projections, d_model, 3 * d_model)
    output = f"{theirs}.{names.attention_output}"
    yield from linear_rows(f"{ours}.self_attention.output", [output], d_model, d_model)
    yield from norm_rows(f"{ours}.norm1", f"{theirs}.{names.attention_norm}", d_model)
    yield from linear_rows(f"{ours}.feed_forward.inner", [f"{theirs}.{names.inner}"], d_model, width)
    yield from linear_rows(f"{ours}.feed_forward.outer", [f"{theirs}.{names.outer}"], width, d_model)
    yield from norm_rows(f"{ours}.norm2", f"{theirs}.{names.feed_forward_norm}", d_model)


def tensor_name(names: Names, name: str, config: BertConfig) -> str | None:
    """Return the name that transformers now gives a tensor, or None for one that is skipped.

    Old files say gamma and beta for the weight and the bias of a norm. Files of an encoder without the head
    lack the prefix.

    Args:
        names: The names of the layers in current files.
        name: The name in the file.
        config: The configuration, which makes no difference.
    """
    if name.startswith(("embeddings.", "encoder.", "transformer.", "pooler.")):
        prefix, _ = names.embeddings.split(".")
        name = f"{prefix}.{name}"
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        if name.endswith(old):
            name = name.removesuffix(old) + new
    return None if re.fullmatch(names.skipped, name) else name


def _family(
    names: Names, name: str, config_of: Callable[..., BertConfig], settings_of: Callable[..., dict[str, Any]]
) -> Family:
    """Return the family of BERT or of DistilBERT."""
    return Family(name, Bert, config_of, settings_of, partial(rows, names), partial(tensor_name, names))


BERT = _family(BERT_NAMES, "bert", bert_config_of, bert_settings_of)
DISTILBERT = _family(DISTILBERT_NAMES, "distilbert", distilbert_config_of, distilbert_settings_of)
