"""Gemma 1, a Llama whose embeddings are multiplied by sqrt(D), with the tanh GELU (models/gemma.py).

The tanh GELU gates the feed-forward network; "gelu" in the files means it, too. The output is the table of
tokens, without the factor. There are no biases, and the width of a head is usually 256, not D / heads. The
names are those of Llama. A file has the gain of a norm minus 1, so that an untrained norm is all zeros; our
gain is 1 more.

Source: Gemma team 2024, "Gemma"; https://huggingface.co/docs/transformers/model_doc/gemma.
"""

from __future__ import annotations

from collections.abc import Iterator

from npformer.interop.families.family import Family, WeightRow
from npformer.interop.families.llama import LLAMA_LIKE, tensor_name
from npformer.interop.families.llama import rows as llama_rows
from npformer.interop.families.parts import fit_head
from npformer.interop.families.settings_table import choice
from npformer.models.gemma import Gemma, GemmaConfig

GATES = {"gelu_pytorch_tanh": "geglu_tanh", "gelu": "geglu_tanh"}
SETTINGS = LLAMA_LIKE.variant(
    GemmaConfig,
    "GemmaForCausalLM",
    choice("activation", "hidden_act", GATES, "gelu"),
    required={"attention_bias": False, "use_bidirectional_attention": False},
    defaults={
        "num_key_value_heads": 16,
        "head_dim": 256,
        "max_position_embeddings": 8192,
        "tie_word_embeddings": True,
    },
)


def rows(config: GemmaConfig) -> Iterator[WeightRow]:
    """Yield which tensors of a file hold each of our parameters."""
    yield from llama_rows(config, added=1.0)


GEMMA = Family("gemma", Gemma, SETTINGS.read, SETTINGS.written, rows, tensor_name, fit_head)
