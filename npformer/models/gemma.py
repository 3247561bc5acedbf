"""Gemma: a Llama whose embeddings are multiplied by sqrt(D), with the tanh GELU as its gate.

    x = sqrt(D) embedding(ids)
    block:  x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))

The width of a head is a setting of its own, and there are no biases. All else is Llama (models/gpt/).

Source: Gemma team 2024, "Gemma", section 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from npformer.errors import Registry
from npformer.models.gpt import GPT, LlamaConfig
from npformer.models.settings import registry


@dataclass(frozen=True)
class GemmaConfig(LlamaConfig):
    """The settings of a Gemma: those of a Llama, with the defaults of the family."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of Gemma", {})

    activation: str = "geglu_tanh"


class Gemma(GPT):
    """A GPT whose embeddings are multiplied by sqrt(D). Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def __init__(
        self, config: GemmaConfig, *, rng: np.random.Generator | None = None, dtype: Any = np.float32
    ) -> None:
        super().__init__(config, rng=rng, dtype=dtype)
        self.embedding.tokens.scale = math.sqrt(config.d_model)
