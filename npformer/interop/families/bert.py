"""BERT, an encoder with a norm after each sublayer, segments and a head (models/bert.py).

Unlike in GPT-2, a token attends to the tokens on both sides, and only padding is masked. The input is the sum
of three tables (tokens, positions and segments), and a norm follows it. The last layer ends with its own
norm, and no further one follows. The activation is the exact GELU. The head that predicts masked tokens is a
linear map, the activation of the layers, a norm, and the table of tokens with a bias. A fine-tuned BERT has a
classifier of texts or of tokens instead, and a bare encoder has no head.

Source: Devlin et al. 2019; https://huggingface.co/docs/transformers/model_doc/bert.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.bert_layout import LAYER_SETTINGS, BertLayout, head_settings
from npformer.interop.families.settings_table import SettingTable, count, index, number
from npformer.models.bert import BertConfig

SETTINGS = SettingTable(
    BertConfig,
    architecture=None,  # it depends on the head
    rows=(
        count("vocab_size", "vocab_size", 30522),
        *LAYER_SETTINGS,
        count("max_length", "max_position_embeddings", 512),
        count("n_segments", "type_vocab_size", 2),
        number("dropout", "hidden_dropout_prob", 0.1),
        number("attention_dropout", "attention_probs_dropout_prob", 0.1),
        index("pad_id", "pad_token_id", 0),
    ),
    required={
        "is_decoder": False,
        "add_cross_attention": False,
        "position_embedding_type": "absolute",
        "tie_word_embeddings": True,
    },
)
ATTENTION = ("self.query", "self.key", "self.value", "output.dense")
LAYOUT = BertLayout(
    prefix="bert",
    layers="bert.encoder.layer",
    parts={
        "self_attention": [f"attention.{part}" for part in ATTENTION],
        "norm1": "attention.output.LayerNorm",
        "feed_forward": ["intermediate.dense", "output.dense"],
        "norm2": "output.LayerNorm",
    },
    heads={
        "tokens": {
            "dense": "cls.predictions.transform.dense",
            "norm": "cls.predictions.transform.LayerNorm",
            "output": "cls.predictions",
        },
        "text classes": {"dense": "bert.pooler.dense", "output": "classifier"},
        "token classes": {"output": "classifier"},
    },
    text_activation="tanh",
    skipped=r"bert\.pooler\..*|cls\.seq_relationship\..*|cls\.predictions\.decoder\.(weight|bias)"
    r"|bert\.embeddings\.position_ids",
)


def settings_of(config: BertConfig, prefix: str) -> dict[str, Any]:
    """Return the content of the config.json of a BERT or a RoBERTa.

    Args:
        config: Our configuration.
        prefix: The beginning of the names of its classes in transformers, such as "Bert".

    Raises:
        UserError: If the model has no segments.
    """
    if not config.n_segments:
        raise UserError("the model has no segments, and BERT has them: write it as a DistilBERT")
    head = head_settings(config, prefix)
    return SETTINGS.written(config, max_position_embeddings=config.n_positions, **head)


BERT = LAYOUT.family("bert", SETTINGS.read, partial(settings_of, prefix="Bert"))
