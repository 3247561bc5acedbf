"""Marian, the family of the opus-mt translators: https://huggingface.co/docs/transformers/model_doc/marian.

An encoder-decoder Transformer as in the paper, with the norm after each sublayer. Three things differ from
our defaults: the columns of the sinusoids, which are not in the file, are in another order; the decoder
starts with the id of padding; and the logits have a bias.

Source: Junczys-Dowmunt et al. 2018.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, Stored, WeightRow
from npformer.interop.families.parts import ACTIVATIONS, LayerShape, layer_rows, linear_rows
from npformer.interop.families.settings_table import SettingRow, SettingTable, count, flag, index, number
from npformer.interop.settings_file import LARGEST_TABLE, Settings
from npformer.models.transformer import Transformer, TransformerConfig

# the settings of our configuration for which Marian has one value
FIXED: dict[str, Any] = {
    "d_head": None,
    "d_value": None,
    "norm": "post",
    "norm_eps": 1e-5,
    "final_norm": False,
    "positions": "marian",
    "zero_padding": False,
    "attention_bias": True,
    "attention_output": True,
    "projection_activation": "none",
    "scale_scores": True,
    "query_masking": "none",
    "fused_projections": True,
    "label_smoothing": 0.0,
    "mask_fill": -float("inf"),
}

SHARED = "model.shared.weight"
HEAD = "lm_head.weight"
BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
TOKENS = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")


# the settings that BART has, too; encoder and decoder have layers of equal widths here
SIZES = (
    count("d_model", "d_model", 1024),
    count("n_layers", "encoder_layers", 12),
    count("decoder_layers", "decoder_layers", 12),
    count("d_ff", ("encoder_ffn_dim", "decoder_ffn_dim"), 4096),
    count("n_heads", ("encoder_attention_heads", "decoder_attention_heads"), 16),
    count("max_length", "max_position_embeddings", 1024),
    SettingRow(ACTIVATIONS, "activation", "activation_function", "gelu"),
    flag("scale_embedding", "scale_embedding", False),
    number("dropout", "dropout", 0.1),
    number("attention_dropout", "attention_dropout", 0.0),
    number("feed_forward_dropout", "activation_dropout", 0.0),
)
SETTINGS = SettingTable(
    TransformerConfig,
    (
        count("source_vocab", "vocab_size", 58101),
        count("target_vocab", "decoder_vocab_size", lambda file: file.count("vocab_size", 58101)),
        *SIZES,
        index("pad_id", "pad_token_id", 58100),
        index("start_id", "decoder_start_token_id", 58100),
        index("end_id", "eos_token_id", 0),
    ),
    ours=FIXED | {"output_bias": True},
    theirs={"model_type": "marian", "architectures": ["MarianMTModel"], "is_encoder_decoder": True},
)
# the parts of a layer of each stack, in our names and in theirs
ENCODER = {
    "self_attention": [f"self_attn.{part}" for part in ("q_proj", "k_proj", "v_proj", "out_proj")],
    "norm1": "self_attn_layer_norm",
    "feed_forward.inner": "fc1",
    "feed_forward.outer": "fc2",
    "norm2": "final_layer_norm",
}
DECODER = ENCODER | {
    "cross": [f"encoder_attn.{part}" for part in ("q_proj", "k_proj", "v_proj", "out_proj")],
    "norm2": "encoder_attn_layer_norm",
    "norm3": "final_layer_norm",
}


def config_of(settings: Settings) -> TransformerConfig:
    """Return our configuration of a Marian model.

    The probability of leaving out whole layers (encoder_layerdrop) acts only in training, and is not read.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    tied = _tied(settings)
    vocab_size = {"target_vocab": settings.count("vocab_size", 58101)} if tied == "all" else {}
    length, d_model = settings.count("max_position_embeddings", 1024), settings.count("d_model", 1024)
    if length * d_model > LARGEST_TABLE:  # of the sinusoids, which are not in the file
        raise UserError(
            f"max_position_embeddings is {length:,} in {settings.place}, and the table of sinusoids "
            f"would have more than {LARGEST_TABLE:,} numbers: use another model"
        )
    config: TransformerConfig = SETTINGS.read(settings, tied=tied, **vocab_size)
    return config


def _tied(settings: Settings) -> str:
    """Return which tables are one, our setting `tied`, or raise UserError for what ours cannot tie."""
    is_tied = settings.flag("tie_word_embeddings", True)
    if not settings.flag("share_encoder_decoder_embeddings", True):
        return "output" if is_tied else "none"
    settings.require("tie_word_embeddings", True, default=True)
    return "all"


def settings_of(config: TransformerConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    return SETTINGS.written(
        config,
        share_encoder_decoder_embeddings=config.tied == "all",
        tie_word_embeddings=config.tied != "none",
        forced_eos_token_id=config.end_id,
    )


def rows(config: TransformerConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    d_model = config.d_model
    if config.tied == "all":
        yield WeightRow("source.tokens.weight", (config.source_vocab, d_model), (SHARED,))
    else:
        yield WeightRow("source.tokens.weight", (config.source_vocab, d_model), TOKENS[:1])
        yield WeightRow("target.tokens.weight", (config.target_vocab, d_model), TOKENS[1:])
    shape = LayerShape(d_model, config.d_ff, fused=config.fused_projections)
    for side, parts in {"encoder": ENCODER, "decoder": DECODER}.items():
        for i in range(config.n_layers if side == "encoder" else config.n_decoder_layers):
            yield from layer_rows(f"{side}.layers.{i}", f"model.{side}.layers.{i}", parts, shape)
    if config.tied == "none":
        yield from linear_rows("output", ["lm_head"], d_model, config.target_vocab, bias=False)
    if config.output_bias:
        yield WeightRow("output.bias", (config.target_vocab,), (BIAS,), leading_axis=True)


def tensor_name(name: str, config: TransformerConfig) -> str | None:
    """Return the name with its prefix, or None for sinusoids and for the copy of a tied weight."""
    name = prefixed(name)
    if name in POSITIONS or (name == HEAD and config.tied != "none"):
        return None
    return None if name in TOKENS and config.tied == "all" else name


def prefixed(name: str) -> str:
    """Return the name of a tensor with the prefix that the files of a model without a head lack."""
    return f"model.{name}" if name.startswith(("shared.", "encoder.", "decoder.")) else name


def with_head(config: Any, stored: Stored) -> Any:
    """Return the configuration without a bias of the logits for a model that was saved without its head.

    Its output is the table of tokens, and its bias is 0, as in transformers. A model whose output has a
    matrix of its own is refused.
    """
    if BIAS in stored.tensors:
        return config
    if config.tied == "none":
        raise UserError(
            f"the model of {stored.settings.place} was saved without its head ({HEAD} and {BIAS} are "
            "missing): save it with MarianMTModel"
        )
    return config.replace(output_bias=False)


MARIAN = Family("marian", Transformer, config_of, settings_of, rows, tensor_name, with_head)
