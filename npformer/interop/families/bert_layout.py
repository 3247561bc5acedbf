"""BertLayout: the tensors of BERT, DistilBERT and RoBERTa, which have the same layers under other names.

The tensors of a file say which head it has: that of a masked language model, a classifier, or none. A file
may also hold the pooler, which only the classifier of texts needs, and the layer of next sentence prediction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from npformer.interop.families.family import Family, Stored, WeightRow
from npformer.interop.families.labels import labels_of, labels_settings
from npformer.interop.families.parts import (
    ACTIVATIONS,
    LayerShape,
    layer_rows,
    linear_rows,
    norm_rows,
    sizes,
)
from npformer.interop.families.settings_table import choice, number
from npformer.models.bert import Bert, BertConfig
from npformer.models.classifier import CLASSIFIERS

# the settings of the layers, which ViT has as well
LAYER_SETTINGS = (
    *sizes(d_model=768, d_ff=3072, n_layers=12, n_heads=12),
    choice("activation", "hidden_act", ACTIVATIONS, "gelu"),
    number("norm_eps", "layer_norm_eps", 1e-12),
)
# the classes of transformers, after the name of the family, for each of our heads
CLASSES = {
    "tokens": "ForMaskedLM",
    "none": "Model",
    "text classes": "ForSequenceClassification",
    "token classes": "ForTokenClassification",
}


@dataclass(frozen=True)
class BertLayout:
    """The names of the tensors of a family.

    Attributes:
        prefix: The prefix of all names of the encoder, such as "bert".
        layers: The name of its layers, which a number follows.
        parts: The parts of a layer, in our names and in theirs.
        heads: The parts of each head, in our names and in theirs. The classes of a classifier of tokens may
            also be the beginning and the end of an answer: then its output is called "qa_outputs".
        text_activation: The activation between the two linear maps of a classifier of texts.
        skipped: The pattern of the names of tensors that are read only if a head needs them, or never.
    """

    prefix: str
    layers: str
    parts: Mapping[str, str | Sequence[str]]
    heads: Mapping[str, Mapping[str, str]]
    text_activation: str
    skipped: str

    def family(self, name: str, config_of: Any, settings_of: Any) -> Family:
        """Return the family.

        Args:
            name: The name of the family.
            config_of: The function from the settings of a config.json to our configuration.
            settings_of: The way back.
        """
        return Family(name, Bert, config_of, settings_of, self.rows, self.tensor_name, self.fit_head)

    def fit_head(self, config: BertConfig, stored: Stored) -> BertConfig:
        """Return the configuration with the head that the files have.

        Args:
            config: The configuration.
            stored: What the files hold.
        """
        present = {name.rsplit(".", 1)[0] for name in stored.tensors}
        if self.heads["tokens"]["dense"] in present:
            return config
        is_answer = "qa_outputs" in present
        text = self.heads["text classes"]
        if not (is_answer or present & {"classifier", text["output"]}):
            return config.replace(head="none")
        n_classes = len(labels_of(stored.settings))
        of_tokens = CLASSES["token classes"] in str(stored.settings.values.get("architectures"))
        if is_answer or of_tokens or text["dense"] not in present:  # old classifiers of tokens have a pooler
            return config.replace(head="token classes", n_classes=n_classes)
        return config.replace(head="text classes", n_classes=n_classes, head_activation=self.text_activation)

    def rows(self, config: BertConfig) -> Iterator[WeightRow]:
        """Yield which tensors of a file hold each of our parameters."""
        d, embeddings = config.d_model, f"{self.prefix}.embeddings"
        tables = {"tokens": ("word", config.vocab_size), "positions": ("position", config.n_positions)}
        tables |= {"segments": ("token_type", config.n_segments)} if config.n_segments else {}
        for ours, (theirs, n_rows) in tables.items():
            tensor = f"{embeddings}.{theirs}_embeddings.weight"
            yield WeightRow(f"embedding.{ours}.weight", (n_rows, d), (tensor,))
        yield from norm_rows("embedding.norm", f"{embeddings}.LayerNorm", d)
        for i in range(config.n_layers):
            shape = LayerShape(d, config.hidden_width)
            yield from layer_rows(f"encoder.layers.{i}", f"{self.layers}.{i}", self.parts, shape)
        for part, theirs in self.heads.get(config.head, {}).items():
            if part == "norm":
                yield from norm_rows("head.norm", theirs, d)
            elif part == "output" and config.head == "tokens":  # its matrix is the table of tokens
                yield WeightRow("head.output.bias", (config.vocab_size,), (f"{theirs}.bias",))
            else:
                n_out = d if part == "dense" else config.n_classes
                yield from linear_rows(f"head.{part}", [theirs], d, n_out)

    def tensor_name(self, name: str, config: BertConfig) -> str | None:
        """Return the name that transformers now gives a tensor, or None for one that is skipped.

        Old files say gamma and beta for the weight and the bias of a norm. Files of an encoder without the
        head lack the prefix.

        Args:
            name: The name in the file.
            config: The configuration.
        """
        if name.startswith(("embeddings.", "encoder.", "transformer.", "pooler.")):
            name = f"{self.prefix}.{name}"
        name = re.sub(r"^qa_outputs\.", "classifier.", name)
        name = re.sub(r"LayerNorm\.gamma$", "LayerNorm.weight", name)
        name = re.sub(r"LayerNorm\.beta$", "LayerNorm.bias", name)
        is_needed = config.head == "text classes" and name.startswith(f"{self.heads[config.head]['dense']}.")
        return name if is_needed or not re.fullmatch(self.skipped, name) else None


def head_settings(config: BertConfig, prefix: str) -> dict[str, Any]:
    """Return the settings of a config.json that say which head a model has.

    Args:
        config: Our configuration.
        prefix: The beginning of the names of the classes in transformers.
    """
    n_classes = config.n_classes if config.head in CLASSIFIERS else 0
    return {"architectures": [prefix + CLASSES[config.head]], **labels_settings(n_classes)}
