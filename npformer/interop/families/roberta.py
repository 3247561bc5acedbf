"""RoBERTa, a BERT with other positions: https://huggingface.co/docs/transformers/model_doc/roberta.

RoBERTa and its relatives XLM-RoBERTa and CamemBERT count positions from that of padding + 1, and have one
segment as a rule. The names of the head differ from those of BERT, and it always has the activation gelu.

Source: Liu et al. 2019; Conneau et al. 2020; Martin et al. 2020.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from npformer.errors import UserError
from npformer.interop.families import bert
from npformer.interop.families.bert import NAMES, ONLY, ROWS, family, settings_of
from npformer.interop.families.family import Stored
from npformer.interop.families.settings_table import SettingTable, count, index
from npformer.interop.settings_file import Settings
from npformer.models.bert import BertConfig

SETTINGS = SettingTable(
    BertConfig,
    (*ROWS, count("vocab_size", "vocab_size", 50265), index("pad_id", "pad_token_id", 1)),
    ONLY,
)
ROBERTA_NAMES = replace(
    NAMES,
    embeddings="roberta.embeddings",
    layer="roberta.encoder.layer.{}",
    dense="lm_head.dense",
    head_norm="lm_head.layer_norm",
    output_bias="lm_head.bias",
    text_dense="classifier.dense",
    text_output="classifier.out_proj",
    skipped=r"roberta\.pooler\..*|lm_head\.decoder\.(weight|bias)|roberta\.embeddings\.position_ids",
)


def config_of(settings: Settings) -> BertConfig:
    """Return our configuration of a RoBERTa, whose first position is that of padding + 1."""
    first = settings.index("pad_token_id", 1) + 1
    max_length = settings.count("max_position_embeddings", 512) - first
    config: BertConfig = SETTINGS.read(settings, first_position=first, max_length=max_length)
    return config


def with_head(config: BertConfig, stored: Stored) -> BertConfig:
    """Return the configuration with the head that the files have.

    Raises:
        UserError: If it fills gaps, and has another activation than the layers.
    """
    config = bert.with_head(ROBERTA_NAMES, config, stored)
    if config.head == "tokens" and config.activation != "gelu":
        raise UserError(
            f"{stored.settings.place} asks for the activation {config.activation}, but the head of a RoBERTa "
            "always has gelu, which npformer does not support: use another model"
        )
    return config


ROBERTA, XLM_ROBERTA, CAMEMBERT = (
    replace(
        family(ROBERTA_NAMES, name, config_of, partial(settings_of, name=name, prefix=prefix)),
        with_head=with_head,
    )
    for name, prefix in (("roberta", "Roberta"), ("xlm-roberta", "XLMRoberta"), ("camembert", "Camembert"))
)
