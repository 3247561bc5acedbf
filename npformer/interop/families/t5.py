"""T5, T5 1.1 and Flan-T5: https://huggingface.co/docs/transformers/model_doc/t5.

There are no biases, and no positions but a table of the first layer of each stack, which all its layers read.
The output is the table of tokens, whose input is divided by sqrt(D); or, in T5 1.1 and Flan-T5, a matrix of
its own without this factor. What the layers compute is in npformer/models/t5.py.

Source: Raffel et al. 2020, "Exploring the Limits of Transfer Learning", section 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.errors import UserError
from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.interop.families.family import Family, Stored, WeightRow
from npformer.interop.families.parts import ACTIVATIONS, LayerShape, layer_rows, linear_rows, norm_rows
from npformer.interop.families.settings_table import (
    USUAL,
    SettingRow,
    SettingTable,
    count,
    flag,
    index,
    number,
)
from npformer.models import t5
from npformer.models.t5 import T5Config

NAMES = ACTIVATIONS | {"gated-gelu": "geglu_tanh", "gated-silu": "swiglu"}
SETTINGS = SettingTable(
    T5Config,
    (
        count(("source_vocab", "target_vocab"), "vocab_size", 32128),
        count("d_model", "d_model", 512),
        count("d_ff", "d_ff", 2048),
        count("n_heads", "num_heads", 8),
        count("d_head", "d_kv", 64),
        count("n_layers", "num_layers", 6),
        count("decoder_layers", "num_decoder_layers", USUAL),
        count("n_buckets", "relative_attention_num_buckets", 32),
        count("max_distance", "relative_attention_max_distance", 128),
        number("norm_eps", "layer_norm_epsilon", 1e-6),
        SettingRow(NAMES, "activation", "feed_forward_proj", "relu"),
        # files before version 5 of transformers say it by tie_word_embeddings
        flag("scale_output", "scale_decoder_outputs", lambda file: file.flag("tie_word_embeddings", True)),
        number(("dropout", "attention_dropout", "feed_forward_dropout"), "dropout_rate", 0.1),
        index("pad_id", "pad_token_id", 0),
        index("start_id", "decoder_start_token_id", lambda file: file.index("pad_token_id", 0)),
        index("end_id", "eos_token_id", 1),
    ),
    ours={"label_smoothing": 0.0},
    theirs={"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "is_encoder_decoder": True},
)
HEAD = "lm_head.weight"
# the parts of a layer of each stack, in our names and in theirs, which number the sublayers
ENCODER = {
    "self_attention": [f"0.SelfAttention.{part}" for part in "qkvo"],
    "norm1": "0.layer_norm",
    "norm2": "1.layer_norm",
}
DECODER = ENCODER | {
    "cross": [f"1.EncDecAttention.{part}" for part in "qkvo"],
    "norm3": "2.layer_norm",
}
NETWORK = {"inner": "wi", "outer": "wo"}
GATED_NETWORK = {"gate": "wi_0", "value": "wi_1", "outer": "wo"}


def settings_of(config: T5Config) -> dict[str, Any]:
    """Return the content of a config.json."""
    return SETTINGS.written(config, tie_word_embeddings=not config.own_output)


def rows(config: T5Config) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    d, heads = config.d_model, config.n_heads * config.head_key
    shape = LayerShape(d, config.d_ff, heads, bias=False, fused=config.fused_projections)
    yield WeightRow("source.tokens.weight", (config.source_vocab, d), ("shared.weight",))
    network = GATED_NETWORK if config.activation in GATED_ACTIVATIONS else NETWORK
    for side, attention in {"encoder": ENCODER, "decoder": DECODER}.items():
        table = (f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",)
        yield WeightRow(f"{side}.layers.0.self_attention.table", (config.n_buckets, config.n_heads), table)
        last = f"{1 if side == 'encoder' else 2}.DenseReluDense"
        parts = attention | {f"feed_forward.{ours}": f"{last}.{theirs}" for ours, theirs in network.items()}
        for i in range(config.n_layers if side == "encoder" else config.n_decoder_layers):
            yield from layer_rows(f"{side}.layers.{i}", f"{side}.block.{i}.layer", parts, shape)
        yield from norm_rows(f"{side}.norm", f"{side}.final_layer_norm", d, bias=False)
    if config.own_output:
        output = "output.output" if config.scale_output else "output"
        yield from linear_rows(output, ["lm_head"], d, config.target_vocab, bias=False)


def tensor_name(name: str, config: T5Config) -> str | None:
    """Return the name of a tensor, or None for a copy of the table of tokens and for what no layer reads."""
    is_copy = name.endswith(".embed_tokens.weight")
    is_unread = name.endswith(".EncDecAttention.relative_attention_bias.weight")  # old files have it
    return None if is_copy or is_unread else name


def with_head(config: T5Config, stored: Stored) -> T5Config:
    """Return the configuration with the output that the files have: the table of tokens, or a matrix.

    Raises:
        UserError: If the files have no decoder.
    """
    if not any(name.startswith("decoder.") for name in stored.tensors):
        raise UserError(
            f"the model of {stored.settings.place} was saved without its decoder (as T5EncoderModel): save "
            "it with T5ForConditionalGeneration"
        )
    return config.replace(own_output=HEAD in stored.tensors)


T5 = Family("t5", t5.T5, SETTINGS.read, settings_of, rows, tensor_name, with_head)
