"""OLMo 2, a Llama whose norms follow the sublayers, with QK-norm (models/olmo2.py).

What a sublayer returns is normalized and then added to its input, which is not normalized; a norm follows the
last layer, as in a Llama. The names are those of Llama, but `post_attention_layernorm` normalizes what
attention adds, and `post_feedforward_layernorm` what the feed-forward network adds. `q_norm` and `k_norm` are
the gains of RMS norms of the whole projections, before they are split into heads. There are no biases.

Source: OLMo team 2024; https://huggingface.co/docs/transformers/model_doc/olmo2.
"""

from __future__ import annotations

from collections.abc import Iterator

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import LLAMA_LIKE, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import fit_head
from npformer.interop.families.qwen3 import gain_rows
from npformer.models.olmo2 import Olmo2, Olmo2Config

SETTINGS = LLAMA_LIKE.variant(
    Olmo2Config,
    "Olmo2ForCausalLM",
    required={"attention_bias": False},
    defaults={"rms_norm_eps": 1e-5},
)
NORMS = {"norm1": "post_attention_layernorm", "norm2": "post_feedforward_layernorm"}


def rows(config: Olmo2Config) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    yield from llama_rows(config, NORMS)
    yield from gain_rows(config, whole=True)


OLMO2 = Family("olmo2", Olmo2, SETTINGS.read, SETTINGS.written, rows, tensor_name, fit_head)
