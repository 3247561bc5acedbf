"""Qwen3: a Llama whose queries and keys are normalized.

    block:  x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))
    where q = rotate(norm(x Wq)) and k = rotate(norm(x Wk)), for each head by itself

The width of a head is a setting of its own, and there are no biases. All else is Llama (models/gpt/).

Source: Yang et al. 2025, "Qwen3 technical report", section 2.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from npformer.errors import Registry
from npformer.models.gpt import GPT, Block, LlamaConfig, make_rotary
from npformer.models.settings import registry
from npformer.nn import QKNormAttention


@dataclass(frozen=True)
class Qwen3Config(LlamaConfig):
    """The settings of a Qwen3: those of a Llama, with the defaults of the family."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of Qwen3", {})

    def count_parameters(self) -> int:
        """Return the number of parameters of the model, without building it."""
        return super().count_parameters() + self.n_layers * 2 * self.d_head  # a gain of queries and of keys


class Qwen3(GPT):
    """A GPT with the blocks of Qwen3. Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    def make_layers(self, rng: np.random.Generator, dtype: Any) -> list[Block]:
        """Return the layers: the blocks of a GPT with another attention."""
        config = self.config
        attention = partial(QKNormAttention, eps=config.norm_eps)
        rotary = make_rotary(config, dtype)
        return [Block(config, rotary, rng, dtype, attention) for _ in range(config.n_layers)]
