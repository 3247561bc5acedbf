"""Llama, a GPT-2 with RMS norms, rotary positions, SwiGLU and shared key heads (models/gpt/).

Positions are not added to the embeddings: queries and keys are rotated in every layer. Several heads of
queries may share one head of keys and values. Norms have no biases, and in most models linear maps have none
either. The output is usually a matrix of its own. All matrices are stored as (out, in), and queries, keys and
values apart. Many families begin with the tables of this file.

Source: Touvron et al. 2023; https://huggingface.co/docs/transformers/model_doc/llama.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from npformer.interop.families import parts
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.rotary import RotaryTable
from npformer.interop.families.settings_table import USUAL, choice, count, flag, number, written_only
from npformer.models.gpt import GPT, GPTConfig

# the activation of the gate in a config.json, and our gated activation
GATES = {"silu": "swiglu", "swish": "swiglu", "gelu": "geglu", "gelu_pytorch_tanh": "geglu_tanh"}
# what Llama and its variants have in common; each names its own architecture
LLAMA_LIKE = RotaryTable(
    GPTConfig,
    architecture=None,
    rows=(
        count("vocab_size", "vocab_size"),
        *parts.sizes(),
        count("n_kv_heads", "num_key_value_heads", USUAL),  # as many as heads of queries
        count("head_dim", "head_dim", USUAL),  # D / heads
        count("context", "max_position_embeddings", 2048),
        number("norm_eps", "rms_norm_eps", 1e-6),
        choice("activation", "hidden_act", GATES, "silu"),
        flag("tied", "tie_word_embeddings", False),
        written_only("dropout", "attention_dropout"),
    ),
    fixed={"norm": "rms", "positions": "rotary"},
    written_too=parts.NO_SPECIAL_TOKENS,
)
BIAS = flag("bias", ("attention_bias", "mlp_bias"), False)
SETTINGS = LLAMA_LIKE.variant(GPTConfig, "LlamaForCausalLM", BIAS)
# the linear maps of a layer, in our names and in theirs; the norms, which never have biases, are apart
LAYER = {
    "self_attention": [f"self_attn.{part}_proj" for part in "qkvo"],
    "feed_forward": [f"mlp.{part}_proj" for part in ("gate", "up", "down")],
}
NORMS = {"norm1": "input_layernorm", "norm2": "post_attention_layernorm"}


def rows(config: GPTConfig, norms: Mapping[str, str] = NORMS, *, added: float = 0.0) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters.

    Args:
        config: Our configuration.
        norms: The norms of a layer, in our names and in theirs.
        added: The number that is added to the gains of the file (Gemma: 1).
    """
    d = config.d_model
    queries, keys = config.n_heads * config.d_head, config.key_heads * config.d_head
    shape = parts.LayerShape(
        d, config.hidden_width, queries=queries, keys=keys, bias=config.bias, qkv_bias=config.has_qkv_bias
    )
    yield WeightRow("embedding.tokens.weight", (config.vocab_size, d), ("model.embed_tokens.weight",))
    for i in range(config.n_layers):
        yield from parts.layer_rows(f"layers.{i}", f"model.layers.{i}", LAYER, shape)
        for ours, theirs in norms.items():
            gain = (f"model.layers.{i}.{theirs}.weight",)
            yield WeightRow(f"layers.{i}.{ours}.gain", (d,), gain, added=added)
    yield WeightRow("norm.gain", (d,), ("model.norm.weight",), added=added)
    yield from parts.head_rows(config)


tensor_name = partial(parts.tensor_name, prefix="model.", skipped=r".*\.rotary_emb\.inv_freq")
LLAMA = Family("llama", GPT, SETTINGS.read, SETTINGS.written, rows, tensor_name, parts.fit_head)
