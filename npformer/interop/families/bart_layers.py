"""The settings, the layers, the tables of tokens and the output that BART, mBART and Marian have in common.

T5 has the settings and the tensors of every encoder-decoder model, under other names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from npformer.errors import UserError
from npformer.interop.families.family import Stored, WeightRow
from npformer.interop.families.parts import (
    ACTIVATIONS,
    HEAD,
    LayerShape,
    layer_rows,
    linear_rows,
    norm_rows,
)
from npformer.interop.families.settings_table import SettingTable, choice, count, flag, index, number
from npformer.models.transformer import TransformerConfig

SHARED = "model.shared.weight"  # the table of tokens, if there is one for both sides
TOKENS = ("model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight")  # those of each side
BIAS = "final_logits_bias"
# the settings of every encoder-decoder model: its special tokens
ENCODER_DECODER = SettingTable(
    TransformerConfig,
    architecture=None,  # each variant names its own
    rows=(
        index("pad_id", "pad_token_id"),
        index("start_id", "decoder_start_token_id", lambda file: file.index("pad_token_id")),
        index("end_id", "eos_token_id"),
    ),
    fixed={"label_smoothing": 0.0},
    written_too={"is_encoder_decoder": True},
)
# where two names of theirs stand, the layers of encoder and decoder must have equal widths
SIZES = (
    count("d_model", "d_model", 1024),
    count("n_layers", "encoder_layers", 12),
    count("decoder_layers", "decoder_layers", 12),
    count("d_ff", ("encoder_ffn_dim", "decoder_ffn_dim"), 4096),
    count("n_heads", ("encoder_attention_heads", "decoder_attention_heads"), 16),
    count("max_length", "max_position_embeddings", 1024),
    choice("activation", "activation_function", ACTIVATIONS, "gelu"),
    flag("scale_embedding", "scale_embedding", False),
    number("dropout", "dropout", 0.1),
    number("attention_dropout", "attention_dropout", 0.0),
    number("feed_forward_dropout", "activation_dropout", 0.0),
)
# the parts of a layer of each stack, in our names and in theirs
ENCODER = {
    "self_attention": [f"self_attn.{part}" for part in ("q_proj", "k_proj", "v_proj", "out_proj")],
    "norm1": "self_attn_layer_norm",
    "feed_forward": ["fc1", "fc2"],
    "norm2": "final_layer_norm",
}
DECODER = ENCODER | {
    "cross": [f"encoder_attn.{part}" for part in ("q_proj", "k_proj", "v_proj", "out_proj")],
    "norm2": "encoder_attn_layer_norm",
    "norm3": "final_layer_norm",
}


def common_rows(config: TransformerConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold the tables of tokens, both stacks and the output."""
    d = config.d_model
    if config.tied == "all":
        yield WeightRow("source.tokens.weight", (config.source_vocab, d), (SHARED,))
    else:
        yield WeightRow("source.tokens.weight", (config.source_vocab, d), TOKENS[:1])
        yield WeightRow("target.tokens.weight", (config.target_vocab, d), TOKENS[1:])
    layers = {"encoder": ENCODER, "decoder": DECODER}
    yield from stack_rows(config, layers, layer="model.{}.layers.{}", norm="model.{}.layer_norm")
    if config.tied == "none":
        yield from linear_rows("output", ["lm_head"], d, config.target_vocab, bias=False)
    if config.output_bias:
        yield WeightRow("output.bias", (config.target_vocab,), (BIAS,), leading_axis=True)


def stack_rows(
    config: TransformerConfig,
    layers: Mapping[str, Mapping[str, str | Sequence[str]]],
    *,
    layer: str,
    norm: str,
    bias: bool = True,
) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold the layers of the encoder and of the decoder, and their last norms.

    Args:
        config: The configuration.
        layers: The parts of a layer of each stack, in our names and in theirs.
        layer: The name of a layer in the file, with {} for the stack and for the number of the layer.
        norm: The name of the last norm of a stack in the file, with {} for the stack.
        bias: False if norms and linear maps have no biases.
    """
    d, queries = config.d_model, config.n_heads * config.head_key
    shape = LayerShape(d, config.d_ff, queries=queries, bias=bias, fused=config.fused_projections)
    for stack, n_layers in (("encoder", config.n_layers), ("decoder", config.n_decoder_layers)):
        for i in range(n_layers):
            yield from layer_rows(f"{stack}.layers.{i}", layer.format(stack, i), layers[stack], shape)
        if config.final_norm:
            yield from norm_rows(f"{stack}.norm", norm.format(stack), d, bias=bias)


def prefixed(name: str) -> str:
    """Return the name of a tensor with the prefix that the files of a model without a head lack."""
    return f"model.{name}" if name.startswith(("shared.", "encoder.", "decoder.")) else name


def fit_head(config: Any, stored: Stored) -> Any:
    """Return the configuration without a bias of the logits for a model that was saved without its head.

    Its output is the table of tokens, and its bias is 0, as in transformers.

    Raises:
        UserError: If its output has a matrix of its own.
    """
    if BIAS in stored.tensors:
        return config
    if config.tied == "none":
        raise UserError(
            f"the model of {stored.settings.place} was saved without its head ({HEAD} and {BIAS} are "
            "missing): save it with MarianMTModel"
        )
    return config.replace(output_bias=False)
