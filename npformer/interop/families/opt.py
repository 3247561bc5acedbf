"""OPT, a GPT-2 with ReLU (models/gpt/).

The table of positions has two rows more than there are positions: the first token is at row 2, since row 1
was meant for padding. Matrices are stored as (out, in), and queries, keys and values apart. All else is as in
GPT-2.

OPT-350M is refused: it projects the embedding from another width, and its norms follow the sublayers.

Source: Zhang et al. 2022; https://huggingface.co/docs/transformers/model_doc/opt.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from npformer.interop.families import parts
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.settings_table import SettingTable, choice, count, flag, written_only
from npformer.models.gpt import GPT, GPTConfig

PREFIX = "model."
FIRST = 2  # the row of the first position
SETTINGS = SettingTable(
    GPTConfig,
    "OPTForCausalLM",
    (
        count("vocab_size", "vocab_size", 50272),
        # the embedding must be as wide as the layers: that of OPT-350M is not
        count("d_model", ("hidden_size", "word_embed_proj_dim"), lambda file: file.count("hidden_size", 768)),
        count("n_layers", "num_hidden_layers", 12),
        count("n_heads", "num_attention_heads", 12),
        count("d_ff", "ffn_dim", 3072),
        count("context", "max_position_embeddings", 2048),
        choice("activation", "activation_function", parts.ACTIVATIONS, "relu"),
        flag("tied", "tie_word_embeddings", True),
        written_only("dropout", "dropout"),
    ),
    required={
        "do_layer_norm_before": True,
        "_remove_final_layer_norm": False,
        "enable_bias": True,
        "layer_norm_elementwise_affine": True,
    },
    written_too=parts.NO_SPECIAL_TOKENS,
)
# the parts of a layer, in our names and in theirs
LAYER = {
    "self_attention": [f"self_attn.{part}" for part in ("q_proj", "k_proj", "v_proj", "out_proj")],
    "norm1": "self_attn_layer_norm",
    "feed_forward": ["fc1", "fc2"],
    "norm2": "final_layer_norm",  # of the layer: the last norm of the model has the same name
}


def rows(config: GPTConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    d, context = config.d_model, config.context
    shape = parts.LayerShape(d, config.hidden_width)
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
        yield from parts.layer_rows(f"layers.{i}", f"{theirs}.layers.{i}", LAYER, shape)
    yield from parts.norm_rows("norm", f"{theirs}.final_layer_norm", d)
    yield from parts.head_rows(config)


tensor_name = partial(parts.tensor_name, prefix=PREFIX)
OPT = Family("opt", GPT, SETTINGS.read, SETTINGS.written, rows, tensor_name, parts.fit_head)
