"""DeepSeek-V2 with dense layers: a Llama with multi-head latent attention.

    block:  x = x + self_attention(norm(x)),  x = x + feed_forward(norm(x))
    where keys and values are computed from a latent vector of each token

The KV cache keeps this latent vector and one rotated key of width d_rotary, which all heads share. In the
published models, most feed-forward networks are mixtures of experts, which are not part of this model.

Source: DeepSeek-AI 2024, "DeepSeek-V2", section 2.1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from npformer.errors import Registry, UserError
from npformer.models.gpt import GPT, Block, GPTConfig
from npformer.models.settings import registry
from npformer.nn import MultiHeadLatentAttention, RotaryPositions


@dataclass(frozen=True)
class DeepSeekConfig(GPTConfig):
    """The settings of a DeepSeek-V2: those of a GPT, with the defaults of the family, and three widths."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of DeepSeek", {})

    norm: str = "rms"
    norm_eps: float = 1e-6
    positions: str = "rotary"
    activation: str = "swiglu"
    bias: bool = False

    d_latent: int = 512  # the width of the latent vector of keys and values
    d_query_latent: int | None = None  # that of the queries; None: they are computed from the input itself
    d_rotary: int = 64  # the width of the rotated part of queries and keys, beside d_head other columns

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require(
            choices={"positions": ("rotary",), "rotary_scaling": ("none",)},
            counts=("d_latent", "d_query_latent", "d_rotary"),
        )
        if self.d_rotary % 2:
            raise UserError(f"d_rotary is {self.d_rotary}, and pairs of numbers are rotated: make it even")
        for name in ("n_kv_heads", "qkv_bias"):
            if getattr(self, name):
                raise UserError(f"{name} is {getattr(self, name)}: latent attention has none, leave it out")

    @property
    def has_qkv_bias(self) -> bool:
        """False: the maps before the attention have no biases."""
        return False

    @property
    def cached_numbers(self) -> int:
        """The numbers that the KV cache of a layer keeps for each token: the latent vector and a key."""
        return self.d_latent + self.d_rotary

    def count_parameters(self) -> int:
        """Return the number of parameters of the model, without building it."""
        width = self.n_heads * self.d_head
        maps = self.d_model * (self.d_latent + self.d_rotary) + self.d_latent * (1 + 2 * width)
        query = self.n_heads * (self.d_head + self.d_rotary)
        if self.d_query_latent is None:
            maps += self.d_model * query
        else:
            maps += self.d_query_latent * (self.d_model + 1 + query)
        return super().count_parameters() + self.n_layers * (maps - 3 * self.d_model * width)


class DeepSeek(GPT):
    """A GPT with the blocks of DeepSeek-V2. Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    config: DeepSeekConfig

    def make_layers(self, rng: np.random.Generator, dtype: Any) -> list[Block]:
        """Return the layers: the blocks of a GPT with another attention."""
        c = self.config
        rotary = RotaryPositions(
            c.context,
            c.d_rotary + c.d_head,
            rotated=c.d_rotary,
            base=c.rotary_base,
            layout=c.rotary_layout,
            dtype=dtype,
        )

        def attention(d_model: int, n_heads: int, **settings: Any) -> MultiHeadLatentAttention:
            kept = {name: settings[name] for name in ("d_head", "dropout", "rotary", "output_bias", "rng")}
            widths: dict[str, Any] = {"d_latent": c.d_latent, "d_query_latent": c.d_query_latent}
            return MultiHeadLatentAttention(d_model, n_heads, **widths, **kept, eps=c.norm_eps, dtype=dtype)

        return [Block(c, rotary, rng, dtype, attention) for _ in range(c.n_layers)]
