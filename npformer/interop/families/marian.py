"""Marian, the Transformer of 2017 with a bias of the logits (models/transformer/).

The opus-mt translators are of this family. As in Vaswani et al. 2017, a norm follows each sublayer, and
positions are sinusoids. Two more things differ: in the table of sinusoids, which is not in the file, all
sines are left of the cosines, and the decoder starts with the id of padding. Source, target and output have
one table of tokens, or two, or three.

Source: Junczys-Dowmunt et al. 2018; https://huggingface.co/docs/transformers/model_doc/marian.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.interop.families.bart_layers import (
    BIAS,
    ENCODER_DECODER,
    SIZES,
    fit_head,
    prefixed,
    stack_rows,
)
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import HEAD, linear_rows
from npformer.interop.families.settings_table import count
from npformer.interop.settings_file import Settings
from npformer.models.transformer import Transformer, TransformerConfig

SHARED = "model.shared.weight"
TOKENS = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")
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
    tied = "output" if settings.flag("tie_word_embeddings", True) else "none"
    shared: dict[str, Any] = {}
    if settings.flag("share_encoder_decoder_embeddings", True):
        settings.require("tie_word_embeddings", True, default=True)
        tied, shared = "all", {"target_vocab": settings.count("vocab_size", 58101)}
    config: TransformerConfig = SETTINGS.read(settings, tied=tied, **shared)
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


def rows(config: TransformerConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    d_model = config.d_model
    if config.tied == "all":
        yield WeightRow("source.tokens.weight", (config.source_vocab, d_model), (SHARED,))
    else:
        yield WeightRow("source.tokens.weight", (config.source_vocab, d_model), TOKENS[:1])
        yield WeightRow("target.tokens.weight", (config.target_vocab, d_model), TOKENS[1:])
    yield from stack_rows(config)
    if config.tied == "none":
        yield from linear_rows("output", ["lm_head"], d_model, config.target_vocab, bias=False)
    if config.output_bias:
        yield WeightRow("output.bias", (config.target_vocab,), (BIAS,), leading_axis=True)


def tensor_name(name: str, config: TransformerConfig) -> str | None:
    """Return the name with its prefix, or None for sinusoids and for the copy of a tied weight."""
    name = prefixed(name)
    if name in SINUSOIDS or (name == HEAD and config.tied != "none"):
        return None
    return None if name in TOKENS and config.tied == "all" else name


MARIAN = Family("marian", Transformer, config_of, settings_of, rows, tensor_name, fit_head)
