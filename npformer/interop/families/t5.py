"""T5, a Transformer with relative positions, RMS norms and no bias parameters (models/t5.py).

A norm precedes each sublayer, and one ends each stack. The activation is ReLU. Scores are not divided by
sqrt(d_kv), nor embeddings multiplied by sqrt(D). The heads together may be wider than D. The decoder starts
with the id of padding.

Positions act in self-attention alone: each score gets a number that depends on the head and on the bucket of
the distance (functional/relative_bias.py). In the encoder, the left and the right have buckets of their own.
Each stack has one table (buckets, heads), in its first layer, for all its layers.

Encoder, decoder and output share one table of tokens. The decoder's last vectors are divided by sqrt(D)
before they are multiplied by it. In T5 1.1 and Flan-T5, the output is a matrix of its own without this
division, and the tanh GELU gates the feed-forward networks.

Source: Raffel et al. 2020, section 2.1; https://huggingface.co/docs/transformers/model_doc/t5.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from npformer.functional.gated import GATED_ACTIVATIONS
from npformer.interop.families import parts
from npformer.interop.families.bart_layers import ENCODER_DECODER, stack_rows
from npformer.interop.families.family import Family, Stored, WeightRow
from npformer.interop.families.settings_table import USUAL, choice, count, flag, number
from npformer.models.t5 import T5 as T5Model
from npformer.models.t5 import T5Config

KINDS = parts.ACTIVATIONS | {"gated-gelu": "geglu_tanh", "gated-silu": "swiglu"}
# ENCODER_DECODER has the special tokens
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
    # a file without this setting divides if `tie_word_embeddings` is true; see fit_head for the matrix
    flag("scale_output", "scale_decoder_outputs", lambda file: file.flag("tie_word_embeddings", True)),
    number(("dropout", "attention_dropout", "feed_forward_dropout"), "dropout_rate", 0.1),
    defaults={"pad_token_id": 0, "eos_token_id": 1},
)
# the sublayers of a layer, in our names and in theirs
ENCODER = {"self_attention": "SelfAttention", "feed_forward": "DenseReluDense"}
DECODER = {"self_attention": "SelfAttention", "cross": "EncDecAttention", "feed_forward": "DenseReluDense"}


def settings_of(config: T5Config) -> dict[str, Any]:
    """Return the content of a config.json."""
    return SETTINGS.written(config, tie_word_embeddings=not config.own_output)


def numbered(sublayers: dict[str, str], config: T5Config) -> Iterator[tuple[str, str | list[str]]]:
    """Yield the parts of a layer: its sublayers, which a file numbers from 0, and the norm before each."""
    network = ("wi_0", "wi_1", "wo") if config.activation in GATED_ACTIVATIONS else ("wi", "wo")
    for i, (ours, theirs) in enumerate(sublayers.items()):
        maps = network if ours == "feed_forward" else "qkvo"
        yield f"norm{i + 1}", f"{i}.layer_norm"
        yield ours, [f"{i}.{theirs}.{each}" for each in maps]


def rows(config: T5Config) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    v, d = config.source_vocab, config.d_model
    yield WeightRow("source.tokens.weight", (v, d), ("shared.weight",))
    layers = {"encoder": dict(numbered(ENCODER, config)), "decoder": dict(numbered(DECODER, config))}
    yield from stack_rows(config, layers, layer="{}.block.{}.layer", norm="{}.final_layer_norm", bias=False)
    for stack in layers:
        table = (f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight",)
        yield WeightRow(f"{stack}.layers.0.self_attention.table", (config.n_buckets, config.n_heads), table)
    if config.own_output:
        yield from parts.linear_rows("output.output", ["lm_head"], d, v, bias=False)


def tensor_name(name: str, config: T5Config) -> str | None:
    """Return the name of a tensor, or None for a copy, or for the table of cross-attention in old files."""
    unread = r".*\.(embed_tokens|EncDecAttention\.relative_attention_bias)\.weight"
    return None if re.fullmatch(unread, name) else name


def fit_head(config: T5Config, stored: Stored) -> T5Config:
    """Return the configuration with own_output=True if the files hold a matrix of the output."""
    return config.replace(own_output=parts.HEAD in stored.tensors)


T5 = Family("t5", T5Model, SETTINGS.read, settings_of, rows, tensor_name, fit_head)
