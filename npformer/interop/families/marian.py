"""Marian, the Transformer of 2017 with a bias of the logits (models/transformer/).

The opus-mt translators are of this family. As in Vaswani et al. 2017, a norm follows each sublayer, and
positions are sinusoids. Beside the bias of the logits, these things differ from the paper:

- the activation is `swish` in the files of opus-mt, the exact GELU in a file without the setting, not ReLU;
- the linear maps of attention have biases;
- embeddings are multiplied by sqrt(D) only with `scale_embedding`, which opus-mt has;
- the sinusoids have the values of the paper, but all sines are left of the cosines. They are computed, and
  the table of a file is not read;
- the decoder starts with the id of padding, which is not masked in the first position;
- source, target and output share one table of tokens, as in the paper, or source and target have a table
  each, and the output is that of the target or a matrix of its own.

Layers and settings are in bart_layers.py.

Source: Junczys-Dowmunt et al. 2018; https://huggingface.co/docs/transformers/model_doc/marian.
"""

from __future__ import annotations

from typing import Any

from npformer.interop.families.bart_layers import (
    ENCODER_DECODER,
    SIZES,
    TOKENS,
    common_rows,
    fit_head,
    prefixed,
)
from npformer.interop.families.family import Family
from npformer.interop.families.parts import HEAD
from npformer.interop.families.settings_table import count
from npformer.interop.settings_file import Settings
from npformer.models.transformer import Transformer, TransformerConfig

SINUSOIDS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
SETTINGS = ENCODER_DECODER.variant(
    TransformerConfig,
    "MarianMTModel",
    count("source_vocab", "vocab_size", 58101),
    count("target_vocab", "decoder_vocab_size", lambda file: file.count("vocab_size", 58101)),
    *SIZES,
    fixed={"positions": "marian", "output_bias": True, "fused_projections": True},
    defaults={"pad_token_id": 58100, "decoder_start_token_id": 58100, "eos_token_id": 0},
)


def config_of(settings: Settings) -> TransformerConfig:
    """Return our configuration of a Marian model.

    The probability of leaving out whole layers (encoder_layerdrop) acts only in training, and is not read.
    """
    config: TransformerConfig
    is_tied = settings.flag("tie_word_embeddings", True)
    if settings.flag("share_encoder_decoder_embeddings", True):
        settings.require("tie_word_embeddings", True, default=True)
        # one table: a size of the target's own does not count
        config = SETTINGS.read(settings, tied="all", target_vocab=settings.count("vocab_size", 58101))
    else:
        config = SETTINGS.read(settings, tied="output" if is_tied else "none")
    settings.require_table("max_position_embeddings", config.max_length, config.d_model)
    return config


def settings_of(config: TransformerConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    return SETTINGS.written(
        config,
        share_encoder_decoder_embeddings=config.tied == "all",
        tie_word_embeddings=config.tied != "none",
        forced_eos_token_id=config.end_id,
    )


def tensor_name(name: str, config: TransformerConfig) -> str | None:
    """Return the name with its prefix, or None for sinusoids and for the copy of a tied weight."""
    name = prefixed(name)
    if name in SINUSOIDS or (name == HEAD and config.tied != "none"):
        return None
    return None if name in TOKENS and config.tied == "all" else name


MARIAN = Family("marian", Transformer, config_of, settings_of, common_rows, tensor_name, fit_head)
