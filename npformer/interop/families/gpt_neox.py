"""GPT-NeoX and Pythia: https://huggingface.co/docs/transformers/model_doc/gpt_neox.

`use_parallel_residual` says whether both sublayers read the same vector, and `partial_rotary_factor`
(`rotary_pct` in older files) which part of each head is rotated (models/gpt_neox.py). The rows of the fused
projection are ordered by heads: the K rows of the first head's queries, then of its keys, of its values, and
so on. In ours, all queries come first. Matrices are stored as (out, in).

Source: Black et al. 2022; Biderman et al. 2023.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.parts import (
    ACTIVATIONS,
    HEAD,
    OLD_HEAD,
    linear_rows,
    name_of_activation,
    norm_rows,
    with_head,
)
from npformer.interop.settings_file import Settings
from npformer.models.gpt_neox import GPTNeoX, GPTNeoXConfig

PREFIX = "gpt_neox."
_BUFFER = re.compile(r"gpt_neox\.layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)")


def config_of(settings: Settings) -> GPTNeoXConfig:
    """Return our configuration of a GPT-NeoX. Its dropouts, which act only in training, are left out.

    Raises:
        UserError: If a setting is missing or impossible, or asks for what our model does not have.
    """
    settings.require("attention_bias", True, default=True)
    rope = settings.part("rope_scaling" if settings.has("rope_scaling") else "rope_parameters")
    rope.choice("rope_type" if rope.has("rope_type") else "type", {"default": None}, "default")
    config = settings.configure(
        GPTNeoXConfig,
        vocab_size=settings.count("vocab_size", 50432),
        d_model=settings.count("hidden_size", 6144),
        n_layers=settings.count("num_hidden_layers", 44),
        n_heads=settings.count("num_attention_heads", 64),
        d_ff=settings.count("intermediate_size", 24576),
        context=settings.count("max_position_embeddings", 2048),
        norm_eps=settings.number("layer_norm_eps", 1e-5),
        activation=settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        tied=settings.flag("tie_word_embeddings", False),
        rotary_base=rope.number("rope_theta", settings.number("rotary_emb_base", 10000.0)),
        rotary_share=rope.number("partial_rotary_factor", settings.number("rotary_pct", 0.25)),
        parallel=settings.flag("use_parallel_residual", True),
    )
    settings.require_table("max_position_embeddings", config.context, config.rotated // 2)
    return config


def settings_of(config: GPTNeoXConfig) -> dict[str, Any]:
    """Return the content of a config.json, the way back from config_of."""
    return {
        "model_type": "gpt_neox",
        "architectures": ["GPTNeoXForCausalLM"],
        "vocab_size": config.vocab_size,
        "hidden_size": config.d_model,
        "num_hidden_layers": config.n_layers,
        "num_attention_heads": config.n_heads,
        "intermediate_size": config.hidden_width,
        "max_position_embeddings": config.context,
        "layer_norm_eps": config.norm_eps,
        "hidden_act": name_of_activation(config.activation),
        "tie_word_embeddings": config.tied,
        "rope_parameters": {
            "rope_type": "default",
            "rope_theta": config.rotary_base,
            "partial_rotary_factor": config.rotary_share,
        },
        "use_parallel_residual": config.parallel,
        "attention_bias": True,
        "bos_token_id": None,  # by default ids of tokens that are like all others in our models
        "eos_token_id": None,
    } | dict.fromkeys(("hidden_dropout", "attention_dropout"), config.dropout)


def rows(config: GPTNeoXConfig) -> Iterator[WeightRow]:
    """Yield the rows of the table that relates our parameters to the tensors of a file."""
    d, f, v = config.d_model, config.hidden_width, config.vocab_size
    yield WeightRow("embedding.tokens.weight", (v, d), (f"{PREFIX}embed_in.weight",))
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}", f"{PREFIX}layers.{i}"
        yield from _projection_rows(config, f"{ours}.self_attention", f"{theirs}.attention")
        yield from linear_rows(f"{ours}.self_attention.output", [f"{theirs}.attention.dense"], d, d)
        yield from linear_rows(f"{ours}.feed_forward.inner", [f"{theirs}.mlp.dense_h_to_4h"], d, f)
        yield from linear_rows(f"{ours}.feed_forward.outer", [f"{theirs}.mlp.dense_4h_to_h"], f, d)
        yield from norm_rows(f"{ours}.norm1", f"{theirs}.input_layernorm", d)
        yield from norm_rows(f"{ours}.norm2", f"{theirs}.post_attention_layernorm", d)
    yield from norm_rows("norm", f"{PREFIX}final_layer_norm", d)
    if config.head and not config.tied:
        yield WeightRow("output.weight", (d, v), (HEAD,), transpose=True)


def _projection_rows(config: GPTNeoXConfig, ours: str, theirs: str) -> Iterator[WeightRow]:
    """Yield the rows of the fused projection, whose tensor has the parts of a head side by side."""
    d, width, n_heads = config.d_model, config.d_head, config.n_heads
    # the first row of each head's queries, then of each head's keys, then of its values
    firsts = tuple((3 * head + part) * width for part in range(3) for head in range(n_heads))
    for kind, shape in {"weight": (d, 3 * d), "bias": (3 * d,)}.items():
        yield WeightRow(
            f"{ours}.query_key_value.{kind}",
            shape,
            (f"{theirs}.query_key_value.{kind}",) * len(firsts),
            transpose=kind == "weight",
            first_rows=firsts,
            n_rows=3 * d,
        )


def tensor_name(name: str, config: GPTNeoXConfig) -> str | None:
    """Return the current name of a tensor, or None for a mask, angles or the copy of a tied weight."""
    if name in (HEAD, OLD_HEAD):
        return None if config.tied else HEAD
    name = PREFIX + name.removeprefix(PREFIX)
    return None if _BUFFER.fullmatch(name) else name


GPT_NEOX = Family("gpt_neox", GPTNeoX, config_of, settings_of, rows, tensor_name, with_head)
