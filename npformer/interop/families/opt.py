"""OPT, a GPT-2 with other names: https://huggingface.co/docs/transformers/model_doc/opt.

The activation is ReLU. The table of positions has two rows more than there are positions: the first token is
at row 2, since row 1 was meant for padding. Matrices are stored as (out, in), and queries, keys and values
apart.

OPT-350M is refused: it projects the embedding from another width, and its norms follow the sublayers.

Source: Zhang et al. 2022, "OPT: Open Pre-trained Transformer Language Models".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import (
    ACTIVATIONS,
    HEAD,
    linear_rows,
    name_of_activation,
    norm_rows,
    with_head,
)
from npformer.interop.settings_file import Settings
from npformer.models.gpt import GPT, GPTConfig

PREFIX = "model."
FIRST = 2  # the row of the first position


def config_of(settings: Settings) -> GPTConfig:
    """Return our configuration of an OPT. Its dropouts, which act only in training, are left out.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    d_model = settings.count("hidden_size", 768)
    settings.require("do_layer_norm_before", True, default=True)
    settings.require("_remove_final_layer_norm", False, default=False)
    settings.require("word_embed_proj_dim", d_model, default=d_model)
    settings.require("enable_bias", True, default=True)
    settings.require("layer_norm_elementwise_affine", True, default=True)
    return settings.configure(
        GPTConfig,
        vocab_size=settings.count("vocab_size", 50272),
        d_model=d_model,
        n_layers=settings.count("num_hidden_layers", 12),
        n_heads=settings.count("num_attention_heads", 12),
        d_ff=settings.count("ffn_dim", 3072),
        context=settings.count("max_position_embeddings", 2048),
        activation=settings.choice("activation_function", ACTIVATIONS, "relu"),
        tied=settings.flag("tie_word_embeddings", True),
    )


def settings_of(config: GPTConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    return {
        "model_type": "opt",
        "architectures": ["OPTForCausalLM"],
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "word_embed_proj_dim": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "ffn_dim": config.hidden_width,
        "max_position_embeddings": config.context,
        "activation_function": name_of_activation(config.activation),
        "tie_word_embeddings": config.tied,
        "dropout": config.dropout,
        "bos_token_id": None,  # by default ids that are tokens like all others in our models
        "eos_token_id": None,
        "pad_token_id": None,
    }


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    d, f, context = config.d_model, config.hidden_width, config.context
    theirs = f"{PREFIX}decoder"
    yield WeightRow("embedding.tokens.weight", (config.vocab_size, d), (f"{theirs}.embed_tokens.weight",))
    yield WeightRow(
        "embedding.positions.weight",
        (context, d),
        (f"{theirs}.embed_positions.weight",),
        first_rows=(FIRST,),
        n_rows=context + FIRST,
    )
    for i in range(config.n_layers):
        layer, attention = f"{theirs}.layers.{i}", f"{theirs}.layers.{i}.self_attn"
        projections = [f"{attention}.{part}_proj" for part in "qkv"]
        yield from linear_rows(f"layers.{i}.self_attention.query_key_value", projections, d, 3 * d)
        yield from linear_rows(f"layers.{i}.self_attention.output", [f"{attention}.out_proj"], d, d)
        yield from linear_rows(f"layers.{i}.feed_forward.inner", [f"{layer}.fc1"], d, f)
        yield from linear_rows(f"layers.{i}.feed_forward.outer", [f"{layer}.fc2"], f, d)
        yield from norm_rows(f"layers.{i}.norm1", f"{layer}.self_attn_layer_norm", d)
        yield from norm_rows(f"layers.{i}.norm2", f"{layer}.final_layer_norm", d)
    yield from norm_rows("norm", f"{theirs}.final_layer_norm", d)
    if config.head and not config.tied:
        yield WeightRow("output.weight", (d, config.vocab_size), (HEAD,), transpose=True)


def tensor_name(name: str, config: GPTConfig) -> str | None:
    """Return the name of a tensor with its prefix, or None for the copy of a tied weight."""
    if name == HEAD:
        return None if config.tied else HEAD
    return PREFIX + name.removeprefix(PREFIX)


OPT = Family("opt", GPT, config_of, settings_of, rows, tensor_name, with_head)
