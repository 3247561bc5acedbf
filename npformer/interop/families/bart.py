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
from npformer.interop.families.parts import norm_rows
from npformer.interop.families.settings_table import SettingTable, count, index
from npformer.models.bart import Bart, BartConfig

FIRST = 2  # the row of the first position


def table_of(name: str, prefix: str) -> SettingTable:
    """Return the settings of BART, or of mBART, whose norms are before the sublayers.

    The probability of leaving out whole layers (encoder_layerdrop) acts only in training, and is not read.
    """
    norm = "pre" if name == "mbart" else "post"
    usual_start: Any = 2 if norm == "post" else lambda file: file.index("bos_token_id", 0)
    architectures = [f"{prefix}ForConditionalGeneration"]
    return SettingTable(
        BartConfig,
        (
            count(("source_vocab", "target_vocab"), "vocab_size", 50265),
            *marian.SIZES,
            index("pad_id", "pad_token_id", 1),
            index("start_id", "decoder_start_token_id", usual_start),
            index("end_id", "eos_token_id", 2),
        ),
        only={"tie_word_embeddings": True},
        ours=marian.FIXED | {"norm": norm, "final_norm": norm == "pre", "positions": "learned"},
        theirs={"model_type": name, "architectures": architectures, "is_encoder_decoder": True},
    )


BART_SETTINGS = table_of("bart", "Bart")
MBART_SETTINGS = table_of("mbart", "MBart")


def settings_of(config: BartConfig, table: SettingTable) -> dict[str, Any]:
    """Return the content of a config.json."""
    return table.written(config, forced_eos_token_id=config.end_id)


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
    Family(name, Bart, table.read, partial(settings_of, table=table), rows, tensor_name, marian.with_head)
    for name, table in (("bart", BART_SETTINGS), ("mbart", MBART_SETTINGS))
)
