"""T5, a Transformer with relative positions, RMS norms and no bias parameters (models/t5.py).

A norm precedes each sublayer, and one ends each stack. The activation is ReLU. Scores are not divided by the
root of the head's width, nor embeddings multiplied by sqrt(D). The decoder starts with the id of padding.

The only positions are numbers that are added to the scores of self-attention: a table with a row for each
bucket of distances and a column for each head. Small distances have a bucket each, larger ones share buckets
in steps that grow, and from `max_distance` on, all share one. In the encoder, one half of the buckets is for
the tokens before and the other half for those after; in the decoder, all are for those before. The table is
in the first layer of each stack, and all layers of the stack use it.

Encoder and decoder share one table of tokens. It is the output as well, and what enters it is divided by
sqrt(D). In T5 1.1 and Flan-T5, the output is a matrix of its own without this division, and the tanh GELU
gates the feed-forward networks. The settings of all encoder-decoders, the special tokens, are in
bart_layers.py.

Source: Raffel et al. 2020, section 2.1; https://huggingface.co/docs/transformers/model_doc/t5.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.interop.families import parts
from npformer.interop.families.bart_layers import ENCODER_DECODER
from npformer.interop.families.family import Family, Stored, WeightRow
from npformer.interop.families.settings_table import USUAL, choice, count, flag, number
from npformer.models.t5 import T5 as T5Model
from npformer.models.t5 import T5Config

KINDS = parts.ACTIVATIONS | {"gated-gelu": "geglu_tanh", "gated-silu": "swiglu"}
SETTINGS = ENCODER_DECODER.variant(
    T5Config,
    "T5ForConditionalGeneration",
    count(("source_vocab", "target_vocab"), "vocab_size", 32128),
    count("d_model", "d_model", 512),
    count("d_ff", "d_ff", 2048),
    count("n_heads", "num_heads", 8),
    count("d_head", "d_kv", 64),
    count("n_layers", "num_layers", 6),
    count("decoder_layers", "num_decoder_layers", USUAL),  # as many as the encoder has
    count("n_buckets", "relative_attention_num_buckets", 32),
    count("max_distance", "relative_attention_max_distance", 128),
    number("norm_eps", "layer_norm_epsilon", 1e-6),
    choice("activation", "feed_forward_proj", KINDS, "relu"),
    # files before version 5 of transformers have no such setting: the output is scaled if it is the table
    flag("scale_output", "scale_decoder_outputs", lambda file: file.flag("tie_word_embeddings", True)),
    number(("dropout", "attention_dropout", "feed_forward_dropout"), "dropout_rate", 0.1),
    defaults={"pad_token_id": 0, "eos_token_id": 1},
)
# the parts of a layer of each stack, in our names and in theirs, which number the sublayers;
# the feed-forward network follows in rows
ENCODER = {
    "self_attention": [f"0.SelfAttention.{part}" for part in "qkvo"],
    "norm1": "0.layer_norm",
    "norm2": "1.layer_norm",
}
DECODER = ENCODER | {
    "cross": [f"1.EncDecAttention.{part}" for part in "qkvo"],
    "norm3": "2.layer_norm",
}


def settings_of(config: T5Config) -> dict[str, Any]:
    """Return the content of a config.json."""
    return SETTINGS.written(config, tie_word_embeddings=not config.own_output)


def rows(config: T5Config) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    d, queries = config.d_model, config.n_heads * config.head_key
    shape = parts.LayerShape(d, config.d_ff, queries=queries, bias=False, fused=config.fused_projections)
    maps = ("wi_0", "wi_1", "wo") if config.activation in GATED_ACTIVATIONS else ("wi", "wo")
    yield WeightRow("source.tokens.weight", (config.source_vocab, d), ("shared.weight",))
    # the feed-forward network is sublayer 1 of a layer of the encoder, and sublayer 2 in the decoder
    stacks = (("encoder", ENCODER, 1, config.n_layers), ("decoder", DECODER, 2, config.n_decoder_layers))
    for side, others, sublayer, n_layers in stacks:
        table = (f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",)
        yield WeightRow(f"{side}.layers.0.self_attention.table", (config.n_buckets, config.n_heads), table)
        layer = others | {"feed_forward": [f"{sublayer}.DenseReluDense.{part}" for part in maps]}
        for i in range(n_layers):
            yield from parts.layer_rows(f"{side}.layers.{i}", f"{side}.block.{i}.layer", layer, shape)
        yield from parts.norm_rows(f"{side}.norm", f"{side}.final_layer_norm", d, bias=False)
    if config.own_output:
        # with the division by sqrt(D), the output is the inner part of a layer that divides
        output = "output.output" if config.scale_output else "output"
        yield from parts.linear_rows(output, ["lm_head"], d, config.target_vocab, bias=False)


def tensor_name(name: str, config: T5Config) -> str | None:
    """Return the name of a tensor, or None for one that is no parameter: a copy, or an unread table."""
    # cross-attention has no positions, but old files hold a table for it
    unread = ".EncDecAttention.relative_attention_bias.weight"
    return None if name.endswith((".embed_tokens.weight", unread)) else name


def fit_head(config: T5Config, stored: Stored) -> T5Config:
    """Return the configuration with the output that the files have: the table of tokens, or a matrix."""
    return config.replace(own_output=parts.HEAD in stored.tensors)


T5 = Family("t5", T5Model, SETTINGS.read, settings_of, rows, tensor_name, fit_head)
