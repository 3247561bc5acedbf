"""BERT, an encoder with a norm after each sublayer, segments and a head (models/bert.py).

DistilBERT and RoBERTa have the same layers, under other names (distilbert.py, roberta.py).

The tensors of a file say which head it has: that of a masked language model, a classifier, or none. A file
may also hold the pooler and the layer of next sentence prediction, which only the classifier of texts needs:
they are skipped.

Source: Devlin et al. 2019; https://huggingface.co/docs/transformers/model_doc/bert.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, Stored, WeightRow
from npformer.interop.families.labels import labels_of, labels_settings
from npformer.interop.families.parts import ACTIVATIONS, LayerShape, layer_rows, linear_rows, norm_rows
from npformer.interop.families.settings_table import SettingRow, SettingTable, count, index, number
from npformer.models.bert import Bert, BertConfig
from npformer.models.classifier import CLASSIFIERS

# the settings that ViT has, too, and those of RoBERTa
LAYER_ROWS = (
    count("d_model", "hidden_size", 768),
    count("n_layers", "num_hidden_layers", 12),
    count("n_heads", "num_attention_heads", 12),
    count("d_ff", "intermediate_size", 3072),
    SettingRow(ACTIVATIONS, "activation", "hidden_act", "gelu"),
    number("norm_eps", "layer_norm_eps", 1e-12),
)
ROWS = (
    *LAYER_ROWS,
    count("max_length", "max_position_embeddings", 512),
    count("n_segments", "type_vocab_size", 2),
    number("dropout", "hidden_dropout_prob", 0.1),
    number("attention_dropout", "attention_probs_dropout_prob", 0.1),
)
ONLY = {
    "is_decoder": False,
    "add_cross_attention": False,
    "position_embedding_type": "absolute",
    "tie_word_embeddings": True,
}
SETTINGS = SettingTable(
    BertConfig,
    (*ROWS, count("vocab_size", "vocab_size", 30522), index("pad_id", "pad_token_id", 0)),
    ONLY,
)


@dataclass(frozen=True)
class Names:
    """The names of the layers in a file.

    Attributes:
        embeddings: The prefix of the input tables and their norm.
        layer: The prefix of a layer, where {} stands for its number.
        parts: The parts of a layer, in our names and in theirs.
        dense: The linear map of the head of a masked language model.
        head_norm: The norm of this head.
        output_bias: The tensor of the bias of the logits.
        text_dense: The linear map before the logits of a classifier of texts.
        text_output: The linear map to these logits. In a classifier of tokens it is "classifier", or
            "qa_outputs" where the classes are the beginning and the end of an answer.
        text_activation: The activation between the two.
        skipped: The pattern of the names of tensors that are not parameters.
    """

    embeddings: str
    layer: str
    parts: Mapping[str, str | Sequence[str]]
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


NAMES = Names(
    embeddings="bert.embeddings",
    layer="bert.encoder.layer.{}",
    parts={
        "self_attention": [
            f"attention.{part}" for part in ("self.query", "self.key", "self.value", "output.dense")
        ],
        "norm1": "attention.output.LayerNorm",
        "feed_forward.inner": "intermediate.dense",
        "feed_forward.outer": "output.dense",
        "norm2": "output.LayerNorm",
    },
    dense="cls.predictions.transform.dense",
    head_norm="cls.predictions.transform.LayerNorm",
    output_bias="cls.predictions.bias",
    text_dense="bert.pooler.dense",
    text_output="classifier",
    text_activation="tanh",
    skipped=r"bert\.pooler\..*|cls\.seq_relationship\..*|cls\.predictions\.decoder\.(weight|bias)"
    r"|bert\.embeddings\.position_ids",
)
# the classes of transformers, after the name of the family, for each of our heads
CLASSES = {
    "tokens": "ForMaskedLM",
    "none": "Model",
    "text classes": "ForSequenceClassification",
    "token classes": "ForTokenClassification",
}


def settings_of(config: BertConfig, name: str, prefix: str) -> dict[str, Any]:
    """Return the content of the config.json of a BERT or a RoBERTa.

    Args:
        config: Our configuration.
        name: The name of the family.
        prefix: That of its classes in transformers, such as "Bert".

    Raises:
        UserError: If the model has no segments.
    """
    if not config.n_segments:
        raise UserError("the model has no segments, and BERT has them: write it as a DistilBERT")
    written = SETTINGS.written(config, max_position_embeddings=config.n_positions)
    return {"model_type": name, **written, **class_settings(config, prefix)}


def class_settings(config: BertConfig, prefix: str) -> dict[str, Any]:
    """Return the settings that say which head a model has.

    Args:
        config: Our configuration.
        prefix: The beginning of the names of the classes in transformers.
    """
    n_classes = config.n_classes if config.head in CLASSIFIERS else 0
    return {"architectures": [prefix + CLASSES[config.head]], **labels_settings(n_classes)}


def family(names: Names, name: str, config_of: Any, settings_of: Any) -> Family:
    """Return the family of a BERT, a DistilBERT or a RoBERTa.

    Args:
        names: The names of its layers.
        name: The name of the family.
        config_of: The function from the settings of a config.json to our configuration.
        settings_of: The way back.
    """
    tables = partial(rows, names), partial(tensor_name, names)
    return Family(name, Bert, config_of, settings_of, *tables, partial(with_head, names))


def with_head(names: Names, config: BertConfig, stored: Stored) -> BertConfig:
    """Return the configuration with the head that the files have.

    Args:
        names: The names of the layers.
        config: The configuration.
        stored: What the files hold.
    """
    present = {name.rsplit(".", 1)[0] for name in stored.tensors}
    if names.dense in present:
        return config
    is_answer = "qa_outputs" in present
    if not (is_answer or present & {"classifier", names.text_output}):
        return config.replace(head="none")
    n_classes = len(labels_of(stored.settings))
    of_tokens = "ForTokenClassification" in str(stored.settings.values.get("architectures"))
    if is_answer or of_tokens or names.text_dense not in present:  # old classifiers of tokens have a pooler
        return config.replace(head="token classes", n_classes=n_classes)
    return config.replace(head="text classes", n_classes=n_classes, head_activation=names.text_activation)


def rows(names: Names, config: BertConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file.

    Args:
        names: The names of the layers in the file.
        config: The configuration.
    """
    d, n_classes = config.d_model, config.n_classes
    tables = {"tokens": ("word", config.vocab_size), "positions": ("position", config.n_positions)}
    tables |= {"segments": ("token_type", config.n_segments)} if config.n_segments else {}
    for ours, (theirs, n_rows) in tables.items():
        tensor = f"{names.embeddings}.{theirs}_embeddings.weight"
        yield WeightRow(f"embedding.{ours}.weight", (n_rows, d), (tensor,))
    yield from norm_rows("embedding.norm", f"{names.embeddings}.LayerNorm", d)
    for i in range(config.n_layers):
        shape = LayerShape(d, config.hidden_width)
        yield from layer_rows(f"encoder.layers.{i}", names.layer.format(i), names.parts, shape)
    if config.head == "tokens":
        yield from linear_rows("head.dense", [names.dense], d, d)
        yield from norm_rows("head.norm", names.head_norm, d)
        yield WeightRow("head.output.bias", (config.vocab_size,), (names.output_bias,))
    elif config.head == "text classes":
        yield from linear_rows("head.dense", [names.text_dense], d, d)
        yield from linear_rows("head.output", [names.text_output], d, n_classes)
    elif config.head == "token classes":
        yield from linear_rows("head.output", ["classifier"], d, n_classes)


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


BERT = family(NAMES, "bert", SETTINGS.read, partial(settings_of, name="bert", prefix="Bert"))
