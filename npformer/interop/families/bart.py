"""BART and mBART: https://huggingface.co/docs/transformers/model_doc/bart, and /mbart.

Layers, tensors and most settings have the names of Marian. Positions are learned: the first one is in row 2
of its table. A norm follows the sum of tokens and positions. The norms of an mBART are before its sublayers,
and a last one ends each stack. What the layers compute is in npformer/models/bart.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from npformer.interop.families import marian
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import ACTIVATIONS, norm_rows
from npformer.interop.settings_file import Settings
from npformer.models.bart import Bart, BartConfig

FIRST = 2  # the row of the first position


def config_of(settings: Settings, *, norm: str) -> BartConfig:
    """Return our configuration of a BART (whose norm is "post") or of an mBART ("pre").

    The probability of leaving out whole layers (encoder_layerdrop) acts only in training, and is not read.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("tie_word_embeddings", True, default=True)
    vocab_size = settings.count("vocab_size", 50265)
    usual_start = 2 if norm == "post" else settings.index("bos_token_id", 0)
    return settings.configure(
        BartConfig,
        source_vocab=vocab_size,
        target_vocab=vocab_size,
        **marian.sizes_of(settings),
        activation=settings.choice("activation_function", ACTIVATIONS, "gelu"),
        scale_embedding=settings.flag("scale_embedding", False),
        label_smoothing=0.0,
        **marian.dropouts_of(settings),
        pad_id=settings.index("pad_token_id", 1),
        start_id=settings.index("decoder_start_token_id", usual_start),
        end_id=settings.index("eos_token_id", 2),
        **marian.FIXED | {"norm": norm, "final_norm": norm == "pre", "positions": "learned"},
    )


def settings_of(config: BartConfig, *, name: str) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    settings = marian.settings_of(config)
    del settings["decoder_vocab_size"], settings["share_encoder_decoder_embeddings"]
    architecture = "BartForConditionalGeneration" if name == "bart" else "MBartForConditionalGeneration"
    return settings | {"model_type": name, "architectures": [architecture]}


def rows(config: BartConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    yield from marian.rows(config)
    d_model, n_rows = config.d_model, config.max_length + FIRST
    for ours, theirs in (("source", "model.encoder"), ("target", "model.decoder")):
        table = (f"{theirs}.embed_positions.weight",)
        shape = (config.max_length, d_model)
        yield WeightRow(f"{ours}.positions.weight", shape, table, first_rows=(FIRST,), n_rows=n_rows)
        yield from norm_rows(f"{ours}.norm", f"{theirs}.layernorm_embedding", d_model)
        if config.final_norm:
            yield from norm_rows(theirs.replace("model.", "") + ".norm", f"{theirs}.layer_norm", d_model)


def tensor_name(name: str, config: BartConfig) -> str | None:
    """Return the name with its prefix, or None for a copy of the table of tokens and for a version."""
    name = marian.prefixed(name)
    return None if name in (*marian.TOKENS, marian.HEAD) or name.endswith(".version") else name


BART, MBART = (
    Family(
        name,
        Bart,
        partial(config_of, norm=norm),
        partial(settings_of, name=name),
        rows,
        tensor_name,
        marian.with_head,
    )
    for name, norm in (("bart", "post"), ("mbart", "pre"))
)
