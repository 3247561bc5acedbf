"""GPT-NeoX and Pythia, a GPT-2 with parallel sublayers and rotary positions (models/gpt_neox.py).

With `use_parallel_residual`, the default, a layer is x + attention(norm1(x)) + feed_forward(norm2(x)), and
else that of a GPT-2. The first columns of each head are rotated: the share `partial_rotary_factor`
(`rotary_pct` in older files), usually a quarter. The GELU of Pythia is the exact one; the files of
GPT-NeoX-20B name `gelu_fast`, the tanh GELU. The output has a matrix of its own, without a bias. As in GPT-2,
norms and all other linear maps have biases.

The rows of the fused projection are ordered by heads: the d_head rows of the first head's queries, then of
its keys, of its values, and so on. In ours, all queries come first. Matrices are stored as (out, in).

Source: Black et al. 2022; Biderman et al. 2023; https://huggingface.co/docs/transformers/model_doc/gpt_neox.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from npformer.interop.families import parts
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.rotary import RotaryTable
from npformer.interop.families.settings_table import choice, count, flag, number, written_only
from npformer.models.gpt_neox import GPTNeoX, GPTNeoXConfig

PREFIX = "gpt_neox."
BUFFERS = r"layers\.\d+\.attention\.(bias|masked_bias|rotary_emb\.inv_freq)"  # masks and angles
SETTINGS = RotaryTable(
    GPTNeoXConfig,
    "GPTNeoXForCausalLM",
    (
        count("vocab_size", "vocab_size", 50432),
        *parts.sizes(d_model=6144, d_ff=24576, n_layers=44, n_heads=64),
        count("context", "max_position_embeddings", 2048),
        number("norm_eps", "layer_norm_eps", 1e-5),
        choice("activation", "hidden_act", parts.ACTIVATIONS, "gelu"),
        flag("tied", "tie_word_embeddings", False),
        flag("parallel", "use_parallel_residual", True),
        written_only("dropout", ("hidden_dropout", "attention_dropout")),
    ),
    required={"attention_bias": True},
    written_too=parts.NO_SPECIAL_TOKENS,
    share=0.25,  # of each head, the part that is rotated
    beside=("rotary_emb_base", "rotary_pct"),
)
# the parts of a layer, in our names and in theirs
LAYER = {
    "self_attention.output": "attention.dense",
    "feed_forward": ["mlp.dense_h_to_4h", "mlp.dense_4h_to_h"],
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
}


def rows(config: GPTNeoXConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    d, v, shape = config.d_model, config.vocab_size, parts.LayerShape(config.d_model, config.hidden_width)
    yield WeightRow("embedding.tokens.weight", (v, d), (f"{PREFIX}embed_in.weight",))
    for i in range(config.n_layers):
        ours, theirs = f"layers.{i}", f"{PREFIX}layers.{i}"
        yield from _projection_rows(config, f"{ours}.self_attention", f"{theirs}.attention")
        yield from parts.layer_rows(ours, theirs, LAYER, shape)
    yield from parts.norm_rows("norm", f"{PREFIX}final_layer_norm", d)
    yield from parts.head_rows(config)


def _projection_rows(config: GPTNeoXConfig, ours: str, theirs: str) -> Iterator[WeightRow]:
    """Yield the rows of the fused projection, whose tensor is ordered by heads."""
    d, d_head, n_heads = config.d_model, config.d_head, config.n_heads
    # the first rows of every head's queries, then keys, then values
    firsts = tuple((3 * head + part) * d_head for part in range(3) for head in range(n_heads))
    for kind, shape in {"weight": (d, 3 * d), "bias": (3 * d,)}.items():
        yield WeightRow(
            f"{ours}.query_key_value.{kind}",
            shape,
            (f"{theirs}.query_key_value.{kind}",) * len(firsts),  # one tensor holds them all
            transpose=kind == "weight",
            first_rows=firsts,
            n_rows=3 * d,
        )


tensor_name = partial(parts.tensor_name, prefix=PREFIX, skipped=BUFFERS)
GPT_NEOX = Family("gpt_neox", GPTNeoX, SETTINGS.read, SETTINGS.written, rows, tensor_name, parts.fit_head)
