"""RoBERTa, XLM-RoBERTa and CamemBERT, a BERT with other positions (models/bert.py).

Positions are counted from the id of padding + 1, padding is not counted, and most models have one segment.
The names of the head differ from those of BERT, and it always has the activation gelu.

Source: Liu et al. 2019; Conneau et al. 2020; Martin et al. 2020;
https://huggingface.co/docs/transformers/model_doc/roberta.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from npformer.errors import UserError
from npformer.interop.families import bert
from npformer.interop.families.bert_layout import BertLayout
from npformer.interop.families.family import Family, Stored
from npformer.interop.families.settings_table import SettingTable
from npformer.interop.settings_file import Settings
from npformer.models.bert import BertConfig

LAYOUT = BertLayout(
    prefix="roberta",
    layers="roberta.encoder.layer",
    parts=bert.LAYOUT.parts,
    heads={
        "tokens": {"dense": "lm_head.dense", "norm": "lm_head.layer_norm", "output": "lm_head"},
        "text classes": {"dense": "classifier.dense", "output": "classifier.out_proj"},
        "token classes": {"output": "classifier"},
    },
    text_activation="tanh",
    skipped=r"roberta\.pooler\..*|lm_head\.decoder\.(weight|bias)|roberta\.embeddings\.position_ids",
)


def family(name: str, prefix: str, vocab_size: int) -> Family:
    """Return the family of RoBERTa or of a relative.

    Args:
        name: The name of the family.
        prefix: The beginning of the names of its classes in transformers.
        vocab_size: The number of tokens if a file does not say it.
    """
    table = replace(bert.SETTINGS, defaults={"vocab_size": vocab_size, "pad_token_id": 1})
    made = LAYOUT.family(name, partial(config_of, table), partial(bert.settings_of, prefix=prefix))
    return replace(made, fit_head=fit_head)


def config_of(table: SettingTable, settings: Settings) -> BertConfig:
    """Return our configuration, in which the first position is the id of padding + 1."""
    first = settings.index("pad_token_id", 1) + 1
    max_length = settings.count("max_position_embeddings", 512) - first
    config: BertConfig = table.read(settings, first_position=first, max_length=max_length)
    return config


def fit_head(config: BertConfig, stored: Stored) -> BertConfig:
    """Return the configuration with the head that the files have.

    Raises:
        UserError: If it fills gaps, and has another activation than the layers.
    """
    config = LAYOUT.fit_head(config, stored)
    if config.head == "tokens" and config.activation != "gelu":
        raise UserError(
            f"{stored.settings.place} asks for the activation {config.activation}, but the head of a RoBERTa "
            "always has gelu, which npformer does not support: use another model"
        )
    return config


ROBERTA = family("roberta", "Roberta", 50265)
XLM_ROBERTA = family("xlm-roberta", "XLMRoberta", 30522)
CAMEMBERT = family("camembert", "Camembert", 30522)
