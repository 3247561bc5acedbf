"""Marian, the family of the opus-mt translators: https://huggingface.co/docs/transformers/model_doc/marian.

An encoder-decoder Transformer as in the paper, with the norm after each sublayer. Three things differ from
our defaults: the columns of the sinusoids, which are not in the file, are in another order; the decoder
starts with the id of padding; and the logits have a bias.

Source: Junczys-Dowmunt et al. 2018.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import ACTIVATIONS, linear_rows, name_of_activation, norm_rows
from npformer.interop.settings_file import LARGEST_TABLE, Settings
from npformer.models.transformer import Transformer, TransformerConfig

# the settings that Marian has twice, for the encoder and for the decoder, and we have once; their defaults
SIZES = {"ffn_dim": 4096, "attention_heads": 16}

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
    "mask_fill": -float("inf"),
}

SHARED = "model.shared.weight"
HEAD = "lm_head.weight"
BIAS = "final_logits_bias"
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")
TOKENS = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")


def config_of(settings: Settings) -> TransformerConfig:
    """Return our configuration of a Marian model.

    The probability of leaving out whole layers (encoder_layerdrop) acts only in training, and is not read.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    sizes = sizes_of(settings)
    max_length = sizes["max_length"]
    if max_length * sizes["d_model"] > LARGEST_TABLE:  # of the sinusoids, which are not in the file
        raise UserError(
            f"max_position_embeddings is {max_length:,} in {settings.place}, and the table of sinusoids "
            f"would have more than {LARGEST_TABLE:,} numbers: use another model"
        )
    tied = _tied(settings)
    source_vocab = settings.count("vocab_size", 58101)
    return settings.configure(
        TransformerConfig,
        source_vocab=source_vocab,
        target_vocab=source_vocab if tied == "all" else settings.count("decoder_vocab_size", source_vocab),
        **sizes,
        activation=settings.choice("activation_function", ACTIVATIONS, "gelu"),
        scale_embedding=settings.flag("scale_embedding", False),
        tied=tied,
        output_bias=True,
        **dropouts_of(settings),
        label_smoothing=0.0,
        fused_projections=True,
        pad_id=settings.index("pad_token_id", 58100),
        start_id=settings.index("decoder_start_token_id", 58100),
        end_id=settings.index("eos_token_id", 0),
        **FIXED,
    )


def sizes_of(settings: Settings) -> dict[str, Any]:
    """Return the settings of our configuration that are sizes of the layers, or raise UserError."""
    sizes = {name: _one_size(settings, name, default) for name, default in SIZES.items()}
    layers, decoder_layers = (settings.count(f"{side}_layers", 12) for side in ("encoder", "decoder"))
    return {
        "d_model": settings.count("d_model", 1024),
        "d_ff": sizes["ffn_dim"],
        "n_heads": sizes["attention_heads"],
        "n_layers": layers,
        "decoder_layers": None if decoder_layers == layers else decoder_layers,
        "max_length": settings.count("max_position_embeddings", 1024),
    }


def dropouts_of(settings: Settings) -> dict[str, float]:
    """Return the settings of our configuration that are probabilities of dropout."""
    return {
        "dropout": settings.number("dropout", 0.1),
        "attention_dropout": settings.number("attention_dropout", 0.0),
        "feed_forward_dropout": settings.number("activation_dropout", 0.0),
    }


def _one_size(settings: Settings, name: str, default: int) -> int:
    """Return a size that encoder and decoder have in common, and raise UserError if the sizes differ."""
    encoder, decoder = (settings.count(f"{side}_{name}", default) for side in ("encoder", "decoder"))
    if encoder != decoder:
        raise UserError(
            f"encoder_{name} is {encoder} and decoder_{name} {decoder} in {settings.place}, and npformer "
            "supports only equal numbers: use another model"
        )
    return encoder


def _tied(settings: Settings) -> str:
    """Return which tables are one, our setting `tied`, or raise UserError for what ours cannot tie."""
    is_tied = settings.flag("tie_word_embeddings", True)
    if not settings.flag("share_encoder_decoder_embeddings", True):
        return "output" if is_tied else "none"
    settings.require("tie_word_embeddings", True, default=True)
    return "all"


def settings_of(config: TransformerConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    sizes = {"ffn_dim": config.d_ff, "attention_heads": config.n_heads}
    return {
        "model_type": "marian",
        "architectures": ["MarianMTModel"],
        "is_encoder_decoder": True,
        "vocab_size": config.source_vocab,
        "decoder_vocab_size": config.target_vocab,
        "d_model": config.d_model,
        "encoder_layers": config.n_layers,
        "decoder_layers": config.n_decoder_layers,
        **{f"{side}_{name}": size for name, size in sizes.items() for side in ("encoder", "decoder")},
        "max_position_embeddings": config.max_length,
        "activation_function": name_of_activation(config.activation),
        "scale_embedding": config.scale_embedding,
        "share_encoder_decoder_embeddings": config.tied == "all",
        "tie_word_embeddings": config.tied != "none",
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "activation_dropout": config.feed_forward_dropout,
        "pad_token_id": config.pad_id,
        "decoder_start_token_id": config.start_id,
        "eos_token_id": config.end_id,
        "forced_eos_token_id": config.end_id,
    }


def rows(config: TransformerConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    d_model = config.d_model
    if config.tied == "all":
        yield WeightRow("source.tokens.weight", (config.source_vocab, d_model), (SHARED,))
    else:
        yield WeightRow("source.tokens.weight", (config.source_vocab, d_model), TOKENS[:1])
        yield WeightRow("target.tokens.weight", (config.target_vocab, d_model), TOKENS[1:])
    for side, n_layers in (("encoder", config.n_layers), ("decoder", config.n_decoder_layers)):
        for index in range(n_layers):
            yield from _layer_rows(config, side, index)
    if config.tied == "none":
        yield WeightRow("output.weight", (d_model, config.target_vocab), (HEAD,), transpose=True)
    if config.output_bias:
        yield WeightRow("output.bias", (config.target_vocab,), (BIAS,), leading_axis=True)


def _layer_rows(config: TransformerConfig, side: str, index: int) -> Iterator[WeightRow]:
    """Yield the rows of a layer of the encoder or the decoder."""
    d_model, d_ff = config.d_model, config.d_ff
    ours, theirs = f"{side}.layers.{index}", f"model.{side}.layers.{index}"
    yield from _attention_rows(config, f"{ours}.self_attention", f"{theirs}.self_attn", "qkv")
    yield from norm_rows(f"{ours}.norm1", f"{theirs}.self_attn_layer_norm", d_model)
    if side == "decoder":
        yield from _attention_rows(config, f"{ours}.cross", f"{theirs}.encoder_attn", "kv")
        yield from norm_rows(f"{ours}.norm2", f"{theirs}.encoder_attn_layer_norm", d_model)
    yield from linear_rows(f"{ours}.feed_forward.inner", [f"{theirs}.fc1"], d_model, d_ff)
    yield from linear_rows(f"{ours}.feed_forward.outer", [f"{theirs}.fc2"], d_ff, d_model)
    last_norm = "norm3" if side == "decoder" else "norm2"
    yield from norm_rows(f"{ours}.{last_norm}", f"{theirs}.final_layer_norm", d_model)


def _attention_rows(config: TransformerConfig, ours: str, theirs: str, fused: str) -> Iterator[WeightRow]:
    """Yield the rows of an attention, whose "qkv" or "kv" may be one matrix (config.fused_projections)."""
    names = {"q": "query", "k": "key", "v": "value"}
    groups = ["q", "k", "v"]
    if config.fused_projections:
        groups = ["qkv"] if fused == "qkv" else ["q", "kv"]
    for group in groups:
        layer = f"{ours}.{'_'.join(names[each] for each in group)}"
        theirs_of_group = [f"{theirs}.{each}_proj" for each in group]
        yield from linear_rows(layer, theirs_of_group, config.d_model, len(group) * config.d_model)
    yield from linear_rows(f"{ours}.output", [f"{theirs}.out_proj"], config.d_model, config.d_model)


def tensor_name(name: str, config: TransformerConfig) -> str | None:
    """Return the name with its prefix, or None for sinusoids and for the copy of a tied weight."""
    name = prefixed(name)
    if name in POSITIONS or (name == HEAD and config.tied != "none"):
        return None
    return None if name in TOKENS and config.tied == "all" else name


def prefixed(name: str) -> str:
    """Return the name of a tensor with the prefix that the files of a model without a head lack."""
    return f"model.{name}" if name.startswith(("shared.", "encoder.", "decoder.")) else name


def with_head(config: Any, settings: Settings, stored: Collection[str]) -> Any:
    """Return the configuration without a bias of the logits for a model that was saved without its head.

    Its output is the table of tokens, and its bias is 0, as in transformers. A model whose output has a
    matrix of its own is refused.

    Args:
        config: The configuration.
        settings: The settings of the config.json.
        stored: The names of the tensors in the files.
    """
    if BIAS in stored:
        return config
    if config.tied == "none":
        raise UserError(
            f"the model of {settings.place} was saved without its head ({HEAD} and {BIAS} are missing): save "
            "it with MarianMTModel"
        )
    return config.replace(output_bias=False)


MARIAN = Family("marian", Transformer, config_of, settings_of, rows, tensor_name, with_head)
