"""BART and mBART, the Transformer of 2017 with learned positions and a norm of the input (models/bart.py).

The activation is the exact GELU, or what `activation_function` names. The linear maps of attention have
biases, and embeddings are multiplied by sqrt(D) only with `scale_embedding`. One table of tokens serves
encoder, decoder and output, whose logits have a bias. Position p is in row p + 2 of the table of positions.
In a BART, a norm follows each sublayer, as in Vaswani et al. 2017. In an mBART, it precedes the sublayer, and
a last norm ends each stack.

The decoder starts with `decoder_start_token_id`. If a file lacks it, a BART starts with 2, its end symbol,
and an mBART with `bos_token_id`, as in transformers; the files of translators name the end symbol or a code
of the language. Layers and settings are in bart_layers.py.

Source: Lewis et al. 2020; Liu et al. 2020; https://huggingface.co/docs/transformers/model_doc/bart, /mbart.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from npformer.interop.families.bart_layers import (
    ENCODER_DECODER,
    SIZES,
    TOKENS,
    common_rows,
    fit_head,
    prefixed,
)
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import HEAD, norm_rows
from npformer.interop.families.settings_table import SettingTable, count, index
from npformer.models.bart import Bart, BartConfig

FIRST = 2  # the row of the first position
BART_SETTINGS = ENCODER_DECODER.variant(
    BartConfig,
    "BartForConditionalGeneration",
    count(("source_vocab", "target_vocab"), "vocab_size", 50265),
    *SIZES,
    index("start_id", "decoder_start_token_id", 2),
    required={"tie_word_embeddings": True},
    defaults={"pad_token_id": 1, "eos_token_id": 2},
)
MBART_SETTINGS = BART_SETTINGS.variant(
    BartConfig,
    "MBartForConditionalGeneration",
    index("start_id", "decoder_start_token_id", lambda file: file.index("bos_token_id", 0)),
    fixed={"norm": "pre", "final_norm": True},
)


def settings_of(table: SettingTable, config: BartConfig) -> dict[str, Any]:
    """Return the content of a config.json.

    Args:
        table: The settings of the family.
        config: Our configuration.
    """
    return table.written(config, forced_eos_token_id=config.end_id)


def rows(config: BartConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    yield from common_rows(config)
    d_model, n_rows = config.d_model, config.max_length + FIRST
    for stack, side in (("encoder", "source"), ("decoder", "target")):
        theirs = f"model.{stack}"
        table, shape = (f"{theirs}.embed_positions.weight",), (config.max_length, d_model)
        yield WeightRow(f"{side}.positions.weight", shape, table, first_rows=(FIRST,), n_rows=n_rows)
        yield from norm_rows(f"{side}.norm", f"{theirs}.layernorm_embedding", d_model)


def tensor_name(name: str, config: BartConfig) -> str | None:
    """Return the name with its prefix, or None for one that is no parameter.

    The copies of the table of tokens are none, nor is the version of a stack, a number in old files.
    """
    name = prefixed(name)
    return None if name in (*TOKENS, HEAD) or name.endswith(".version") else name


def family(name: str, table: SettingTable) -> Family:
    """Return BART or mBART, which differ in their settings."""
    return Family(name, Bart, table.read, partial(settings_of, table), rows, tensor_name, fit_head)


BART, MBART = family("bart", BART_SETTINGS), family("mbart", MBART_SETTINGS)
