"""DistilBERT, a BERT of half as many layers, without segments (models/bert.py).

The layers are those of BERT under other names, and the eps of all norms is always 1e-12, not a setting of a
file. A classifier of texts has no pooler, but a layer with ReLU. `sinusoidal_pos_embds` says only how the
positions were initialised: the file holds them.

Source: Sanh et al. 2019; https://huggingface.co/docs/transformers/model_doc/distilbert.
"""

from __future__ import annotations

from typing import Any

from npformer.interop.families.bert_layout import BertLayout, head_settings
from npformer.interop.families.parts import ACTIVATIONS
from npformer.interop.families.settings_table import SettingTable, choice, count, index, number
from npformer.models.bert import BertConfig

SETTINGS = SettingTable(
    BertConfig,
    architecture=None,  # it depends on the head
    rows=(
        count("vocab_size", "vocab_size", 30522),
        count("d_model", "dim", 768),
        count("n_layers", "n_layers", 6),
        count("n_heads", "n_heads", 12),
        count("d_ff", "hidden_dim", 3072),
        count("max_length", "max_position_embeddings", 512),
        choice("activation", "activation", ACTIVATIONS, "gelu"),
        number("dropout", "dropout", 0.1),
        number("attention_dropout", "attention_dropout", 0.1),
        index("pad_id", "pad_token_id", 0),
    ),
    required={"tie_word_embeddings": True},
    fixed={"n_segments": 0, "norm_eps": 1e-12},
    written_too={"sinusoidal_pos_embds": False},
)
LAYOUT = BertLayout(
    prefix="distilbert",
    layers="distilbert.transformer.layer",
    parts={
        "self_attention": [f"attention.{part}_lin" for part in ("q", "k", "v", "out")],
        "norm1": "sa_layer_norm",
        "feed_forward": ["ffn.lin1", "ffn.lin2"],
        "norm2": "output_layer_norm",
    },
    heads={
        "tokens": {"dense": "vocab_transform", "norm": "vocab_layer_norm", "output": "vocab_projector"},
        "text classes": {"dense": "pre_classifier", "output": "classifier"},
        "token classes": {"output": "classifier"},
    },
    text_activation="relu",
    skipped=r"vocab_projector\.weight|distilbert\.embeddings\.position_ids",
)


def settings_of(config: BertConfig) -> dict[str, Any]:
    """Return the content of a config.json."""
    return SETTINGS.written(config, **head_settings(config, "DistilBert"))


DISTILBERT = LAYOUT.family("distilbert", SETTINGS.read, settings_of)
