"""Gemma 2, a Gemma with four norms in a layer, local layers and soft caps (models/gemma2.py).

As Gemma 1 (gemma.py), it is a Llama with RMS norms and rotary positions whose embeddings are multiplied by
sqrt(D), whose feed-forward networks are gated by the tanh GELU, and whose output is the table of tokens; the
gains of norms are stored minus 1. New in Gemma 2: a second norm follows each sublayer before the sum. The
layers 0, 2, 4 and so on are local, unless `layer_types` names others: a token attends to itself and to the
`sliding_window` - 1 tokens before it. Scores are divided by the root of `query_pre_attn_scalar`, not of the
width of a head. Each score x then becomes cap · tanh(x / cap) before it is masked, and so does each logit,
with a cap of its own. The names are those of Llama, but for the norms.

Source: Gemma team 2024, "Gemma 2"; https://huggingface.co/docs/transformers/model_doc/gemma2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from npformer.interop.families import gemma
from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import GATES as LLAMA_GATES
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.llama import tensor_name
from npformer.interop.families.parts import fit_head
from npformer.interop.families.settings_table import choice, count, number_or_null
from npformer.interop.families.windows import layer_types, local_layers
from npformer.interop.settings_file import Settings
from npformer.models.gemma2 import Gemma2, Gemma2Config

SETTINGS = gemma.SETTINGS.variant(
    Gemma2Config,
    "Gemma2ForCausalLM",
    choice("activation", "hidden_activation", LLAMA_GATES, "gelu_pytorch_tanh"),
    count("scale_width", "query_pre_attn_scalar", 256),
    count("local_window", "sliding_window", 4096),
    number_or_null("score_cap", "attn_logit_softcapping", 50.0),
    number_or_null("logit_cap", "final_logit_softcapping", 30.0),
    defaults={"num_key_value_heads": 4},
)
# `post_attention_layernorm` is the norm before the feed-forward network in a Llama, and after attention here
NORMS = {
    "norm1": "input_layernorm",
    "after1": "post_attention_layernorm",
    "norm2": "pre_feedforward_layernorm",
    "after2": "post_feedforward_layernorm",
}


def config_of(settings: Settings) -> Gemma2Config:
    """Return our configuration. The local layers have the rotary base of the others, unlike in Gemma 3."""
    config: Gemma2Config = SETTINGS.read(settings, local=local_layers(settings, every=2))
    return config.replace(local_base=config.rotary_base)


def settings_of(config: Gemma2Config) -> dict[str, Any]:
    """Return the content of a config.json."""
    return SETTINGS.written(config, layer_types=layer_types(config))


def rows(config: Gemma2Config) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    for row in llama_rows(config, NORMS, added=1.0):
        is_capped = row.ours == "output.weight" and config.logit_cap is not None
        # the cap is a layer around the output
        yield replace(row, ours="output.output.weight") if is_capped else row


GEMMA2 = Family("gemma2", Gemma2, config_of, settings_of, rows, tensor_name, fit_head)
