"""GPT-2, whose layers GPT has (models/gpt/).

A norm precedes each sublayer, and one follows the last layer. Positions are a learned table, and the
activation is the tanh GELU. Linear maps and norms have biases; the output, which is the table of tokens, has
none. A token attends to itself and to those before it, with scores that are divided by the root of the head's
width.

The linear maps are stored as (in, out), like ours, and queries, keys and values are fused, like ours. So no
weight is transposed and none is divided. Old files lack the prefix of the names, and hold the causal masks
beside the parameters.

Source: Radford et al. 2019; https://huggingface.co/docs/transformers/model_doc/gpt2.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from npformer.interop.families import parts
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.settings_table import (
    USUAL,
    SettingTable,
    choice,
    count,
    flag,
    number,
    written_only,
)
from npformer.models.gpt import GPT, GPTConfig

PREFIX = "transformer."
# the layers of a block, in our names and in theirs, after the prefix of the block
LINEAR = {
    "self_attention.query_key_value": "attn.c_attn",
    "self_attention.output": "attn.c_proj",
    "feed_forward.inner": "mlp.c_fc",
    "feed_forward.outer": "mlp.c_proj",
}
NORMS = {"norm1": "ln_1", "norm2": "ln_2"}
SETTINGS = SettingTable(
    GPTConfig,
    "GPT2LMHeadModel",
    (
        count("vocab_size", "vocab_size", 50257),
        count("d_model", "n_embd", 768),
        count("n_layers", "n_layer", 12),
        count("n_heads", "n_head", 12),
        count("d_ff", "n_inner", USUAL),  # 4 D
        count("context", "n_positions", 1024),
        number("norm_eps", "layer_norm_epsilon", 1e-5),
        choice("activation", "activation_function", parts.ACTIVATIONS, "gelu_new"),
        flag("tied", "tie_word_embeddings", True),
        written_only("dropout", ("resid_pdrop", "embd_pdrop", "attn_pdrop")),
    ),
    required={
        "scale_attn_weights": True,
        "scale_attn_by_inverse_layer_idx": False,
        "add_cross_attention": False,
    },
    written_too=parts.NO_SPECIAL_TOKENS,
)


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    d, f = config.d_model, config.hidden_width
    yield WeightRow("embedding.tokens.weight", (config.vocab_size, d), (f"{PREFIX}wte.weight",))
    yield WeightRow("embedding.positions.weight", (config.context, d), (f"{PREFIX}wpe.weight",))
    widths = dict(zip(LINEAR, [(d, 3 * d), (d, d), (d, f), (f, d)], strict=True))
    for i in range(config.n_layers):
        for ours, theirs in LINEAR.items():
            name, tensor = f"layers.{i}.{ours}", f"{PREFIX}h.{i}.{theirs}"
            yield WeightRow(f"{name}.weight", widths[ours], (f"{tensor}.weight",))
            yield WeightRow(f"{name}.bias", widths[ours][1:], (f"{tensor}.bias",))
        for ours, theirs in NORMS.items():
            yield from parts.norm_rows(f"layers.{i}.{ours}", f"{PREFIX}h.{i}.{theirs}", d)
    yield from parts.norm_rows("norm", f"{PREFIX}ln_f", d)
    yield from parts.head_rows(config)


tensor_name = partial(parts.tensor_name, prefix=PREFIX, skipped=r"h\.\d+\.attn\.(masked_)?bias")
GPT2 = Family("gpt2", GPT, SETTINGS.read, SETTINGS.written, rows, tensor_name, parts.fit_head)
