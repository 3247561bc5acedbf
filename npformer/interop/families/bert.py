"""BERT, DistilBERT and RoBERTa: https://huggingface.co/docs/transformers/model_doc/bert, .../distilbert, ...

Their layers are the same, under different names. DistilBERT has no vectors of segments. RoBERTa and its
relatives XLM-RoBERTa and CamemBERT count positions from that of padding + 1, and have one segment.

The tensors of a file say which head it has: that of a masked language model, a classifier, or none. A file
may also hold the pooler and the layer of next sentence prediction, which only the classifier of texts needs:
they are skipped.

Source: Devlin et al. 2019; Sanh et al. 2019; Liu et al. 2019; Conneau et al. 2020; Martin et al. 2020.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import ACTIVATIONS, linear_rows, name_of_activation, norm_rows
from npformer.interop.settings_file import REMEDY, Settings
from npformer.models.bert import Bert, BertConfig
from npformer.models.classifier import CLASSIFIERS

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
        text_dense: The linear map before the logits of a classifier of texts.
        text_output: The linear map to these logits. In a classifier of tokens it is "classifier", or
            "qa_outputs" where the classes are the beginning and the end of an answer.
        text_activation: The activation between the two.
        skipped: The pattern of the names of tensors that are not parameters.
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
    text_dense: str
    text_output: str
    text_activation: str
    skipped: str

    @property
    def prefix(self) -> str:
        """The prefix of all names of the encoder, such as "bert"."""
        return self.embeddings.split(".")[0]


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
    text_dense="bert.pooler.dense",
    text_output="classifier",
    text_activation="tanh",
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
    text_dense="pre_classifier",
    text_output="classifier",
    text_activation="relu",
    skipped=r"vocab_projector\.weight|distilbert\.embeddings\.position_ids",
)
ROBERTA_NAMES = replace(
    BERT_NAMES,
    embeddings="roberta.embeddings",
    layer="roberta.encoder.layer.{}",
    dense="lm_head.dense",
    head_norm="lm_head.layer_norm",
    output_bias="lm_head.bias",
    text_dense="classifier.dense",
    text_output="classifier.out_proj",
    skipped=r"roberta\.pooler\..*|lm_head\.decoder\.(weight|bias)|roberta\.embeddings\.position_ids",
)
# the classes of transformers, after the name of the family, for each of our heads
CLASSES = {
    "tokens": "ForMaskedLM",
    "none": "Model",
    "text classes": "ForSequenceClassification",
    "token classes": "ForTokenClassification",
}


def bert_config_of(settings: Settings, *, counts_from_padding: bool = False) -> BertConfig:
    """Return our configuration of a BERT or a RoBERTa.

    Args:
        settings: The settings of a config.json.
        counts_from_padding: True for a RoBERTa, whose defaults of the ids and sizes are those of BERT.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("is_decoder", False, default=False)
    settings.require("add_cross_attention", False, default=False)
    settings.require("position_embedding_type", "absolute", default="absolute")
    settings.require("tie_word_embeddings", True, default=True)
    pad_id = settings.index("pad_token_id", 1 if counts_from_padding else 0)
    first = pad_id + 1 if counts_from_padding else 0
    positions = settings.count("max_position_embeddings", 512)
    return settings.configure(
        BertConfig,
        vocab_size=settings.count("vocab_size", 50265 if counts_from_padding else 30522),
        d_model=settings.count("hidden_size", 768),
        n_layers=settings.count("num_hidden_layers", 12),
        n_heads=settings.count("num_attention_heads", 12),
        d_ff=settings.count("intermediate_size", 3072),
        max_length=positions - first,
        first_position=first,
        n_segments=settings.count("type_vocab_size", 2),
        activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        norm_eps=settings.number("layer_norm_eps", 1e-12),
        dropout=settings.number("hidden_dropout_prob", 0.1),
        attention_dropout=settings.number("attention_probs_dropout_prob", 0.1),
        pad_id=pad_id,
    )


def bert_settings_of(config: BertConfig, name: str, prefix: str) -> dict[str, Any]:
    """Return the content of a config.json, the way back from bert_config_of.

    Args:
        config: Our configuration.
        name: The name of the family.
        prefix: That of its classes in transformers, such as "Bert".

    Raises:
        UserError: If the model has no segments.
    """
    if not config.n_segments:
        raise UserError("the model has no segments, and BERT has them: write it as a DistilBERT")
    return _class_settings(config, prefix) | {
        "model_type": name,
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.hidden_width,
        "max_position_embeddings": config.n_positions,
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
    return _class_settings(config, "DistilBert") | {
        "model_type": "distilbert",
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


def _class_settings(config: BertConfig, prefix: str) -> dict[str, Any]:
    """Return the settings that say which head a model has."""
    settings: dict[str, Any] = {"architectures": [prefix + CLASSES[config.head]]}
    if config.head in CLASSIFIERS:
        settings["id2label"] = {str(index): f"LABEL_{index}" for index in range(config.n_classes)}
    return settings


def labels_of(settings: Settings) -> list[str]:
    """Return the names of the classes of a classifier.

    Raises:
        UserError: If they are not texts with the numbers from 0.
    """
    labels = settings.part("id2label").values
    if not labels:  # transformers writes no names that are the usual ones
        return [f"LABEL_{index}" for index in range(settings.count("num_labels", 2))]
    ordered = [labels.get(str(index)) for index in range(len(labels))]
    if not all(isinstance(label, str) for label in ordered):
        raise UserError(
            f"id2label in {settings.place} does not name the classes 0 .. {len(labels) - 1}: {REMEDY}"
        )
    return [str(label) for label in ordered]


def with_head(names: Names, config: BertConfig, settings: Settings, stored: Collection[str]) -> BertConfig:
    """Return the configuration with the head that the files have.

    Args:
        names: The names of the layers.
        config: The configuration.
        settings: The settings of the config.json.
        stored: The names of the tensors in the files.
    """
    present = {name.rsplit(".", 1)[0] for name in stored}
    if names.dense in present:
        return config
    is_answer = "qa_outputs" in present
    if not (is_answer or present & {"classifier", names.text_output}):
        return config.replace(head="none")
    if is_answer or names.text_dense not in present:
        return config.replace(head="token classes", n_classes=len(labels_of(settings)))
    return config.replace(
        head="text classes", n_classes=len(labels_of(settings)), head_activation=names.text_activation
    )


def rows(names: Names, config: BertConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file.

    Args:
        names: The names of the layers in the file.
        config: The configuration.
    """
    d_model, table = config.d_model, f"{names.embeddings}.{{}}_embeddings.weight"
    yield WeightRow("embedding.tokens.weight", (config.vocab_size, d_model), (table.format("word"),))
    yield WeightRow("embedding.positions.weight", (config.n_positions, d_model), (table.format("position"),))
    if config.n_segments:
        yield WeightRow(
            "embedding.segments.weight", (config.n_segments, d_model), (table.format("token_type"),)
        )
    yield from norm_rows("embedding.norm", f"{names.embeddings}.LayerNorm", d_model)
    for index in range(config.n_layers):
        yield from _layer_rows(names, config, index)
    yield from _head_rows(names, config)


def _head_rows(names: Names, config: BertConfig) -> Iterator[WeightRow]:
    """Yield the rows of the head, if there is one."""
    d_model = config.d_model
    if config.head == "tokens":
        yield from linear_rows("head.dense", [names.dense], d_model, d_model)
        yield from norm_rows("head.norm", names.head_norm, d_model)
        yield WeightRow("head.output.bias", (config.vocab_size,), (names.output_bias,))
    elif config.head == "text classes":
        yield from linear_rows("head.dense", [names.text_dense], d_model, d_model)
        yield from linear_rows("head.output", [names.text_output], d_model, config.n_classes)
    elif config.head == "token classes":
        yield from linear_rows("head.output", ["classifier"], d_model, config.n_classes)


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
        config: The configuration.
    """
    if name.startswith(("embeddings.", "encoder.", "transformer.", "pooler.")):
        name = f"{names.prefix}.{name}"
    if name.startswith("qa_outputs."):
        name = name.replace("qa_outputs", "classifier")
    for old, new in (("LayerNorm.gamma", "LayerNorm.weight"), ("LayerNorm.beta", "LayerNorm.bias")):
        if name.endswith(old):
            name = name.removesuffix(old) + new
    is_head = config.head == "text classes" and name.startswith(f"{names.text_dense}.")
    return None if re.fullmatch(names.skipped, name) and not is_head else name


def _family(
    names: Names, name: str, config_of: Callable[..., BertConfig], settings_of: Callable[..., dict[str, Any]]
) -> Family:
    """Return the family of a BERT, a DistilBERT or a RoBERTa."""
    return Family(
        name,
        Bert,
        config_of,
        settings_of,
        partial(rows, names),
        partial(tensor_name, names),
        partial(with_head, names),
    )


def _roberta(name: str, prefix: str) -> Family:
    """Return the family of RoBERTa, or of a model with its layers."""
    settings_of = partial(bert_settings_of, name=name, prefix=prefix)
    return _family(ROBERTA_NAMES, name, partial(bert_config_of, counts_from_padding=True), settings_of)


BERT = _family(BERT_NAMES, "bert", bert_config_of, partial(bert_settings_of, name="bert", prefix="Bert"))
DISTILBERT = _family(DISTILBERT_NAMES, "distilbert", distilbert_config_of, distilbert_settings_of)
ROBERTA = _roberta("roberta", "Roberta")
XLM_ROBERTA = _roberta("xlm-roberta", "XLMRoberta")
CAMEMBERT = _roberta("camembert", "Camembert")
