"""SmolLM3: a Llama in which some layers have no positions, as a rule every fourth one.

    block:  x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))
    where q and k are rotated by their positions, except in these layers

A layer without positions knows the order of the tokens through the causal mask and through the layers below
it. It can attend to a token at any distance in the same way, which helps with texts that are longer than
those of the training.

Source: Bakouch et al. 2025, "SmolLM3"; Yang et al. 2025, "RoPE to NoPE and back again".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from npformer.errors import Registry
from npformer.models.gpt import GPT, Block, LlamaConfig, make_rotary
from npformer.models.settings import registry


@dataclass(frozen=True)
class SmolLM3Config(LlamaConfig):
    """The settings of a SmolLM3: those of a Llama, with the defaults of the family,
    and the layers without positions."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of SmolLM3", {})

    unrotated: tuple[int, ...] = ()  # the layers without positions, counted from 0

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "unrotated", tuple(self.unrotated))  # a list in a checkpoint


class SmolLM3(GPT):
    """A GPT with the blocks of SmolLM3. Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    config: SmolLM3Config

    def make_layers(self, rng: np.random.Generator, dtype: Any) -> list[Block]:
        """Return the layers: the blocks of a GPT, some of them without a rotation."""
        config, rotary = self.config, make_rotary(self.config, dtype)
        return [
            Block(config, None if layer in config.unrotated else rotary, rng, dtype)
            for layer in range(config.n_layers)
        ]
