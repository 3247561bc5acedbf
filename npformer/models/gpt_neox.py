"""GPT-NeoX, the model of Pythia: both sublayers read the same vector, and a part of each head is rotated.

    block:  x = x + self_attention(norm1(x)) + feed_forward(norm2(x))

In GPT-2, the feed-forward network reads what attention has added, and has to wait for it. Here the two are
computed from the same x, so that their matrix products can run side by side: the parallel residual. The first
quarter of the columns of each head is rotated by the positions, and the others are not. All else is GPT-2,
with the exact GELU and an output matrix of its own.

Source: Black et al. 2022, "GPT-NeoX-20B", section 2.1; Biderman et al. 2023, "Pythia".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from npformer.backend import Array
from npformer.errors import Registry, UserError
from npformer.models.gpt import GPT, Block, BlockCache, GPTConfig
from npformer.models.settings import registry
from npformer.nn import PreallocatedKVCache, RotaryPositions
from npformer.nn.context import AttentionMask, Context
from npformer.validation import require_share


@dataclass(frozen=True)
class GPTNeoXConfig(GPTConfig):
    """The settings of a GPT-NeoX: those of a GPT, with the defaults of the family, and two more."""

    named: ClassVar[Registry[dict[str, Any]]] = registry("preset of GPT-NeoX", {})

    positions: str = "rotary"
    activation: str = "gelu"
    tied: bool = False
    rotary_share: float = 0.25  # the part of the columns of a head that is rotated
    parallel: bool = True  # False: the feed-forward network reads what attention has added, as in a GPT

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rotary_share != 1:
            require_share("rotary_share", self.rotary_share)
        if self.rotated < 2 or self.rotated % 2:
            raise UserError(
                f"rotary_share is {self.rotary_share}: it rotates {self.rotated} of {self.d_head} columns, "
                "and they must be pairs; change it"
            )

    @property
    def rotated(self) -> int:
        """The number of columns of a head that are rotated, at least a pair: transformers rounds 1 up."""
        n = int(self.d_head * self.rotary_share)
        return 2 if n == 1 else n


class ParallelBlock(Block):
    """A layer of GPT-NeoX: x = x + self_attention(norm1(x)) + feed_forward(norm2(x)).

    Shapes: x (B, T, D) -> y (B, T, D). The arguments are those of Block.
    """

    def forward(self, x: Array, mask: AttentionMask, context: Context) -> tuple[Array, BlockCache]:
        """Compute self-attention and the feed-forward network of the same vectors.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            mask: The causal mask.
            context: The settings of the forward pass.

        Returns:
            y, of shape (B, T, D), and the cache.
        """
        h, norm1_cache = self.norm1.forward(x)
        h, attention_cache = self.self_attention.forward(h, mask=mask, context=context)
        h, dropout1_cache = self.dropout1.forward(h, context)

        f, norm2_cache = self.norm2.forward(x)
        f, feed_forward_cache = self.feed_forward.forward(f, context)
        f, dropout2_cache = self.dropout2.forward(f, context)
        return x + h + f, BlockCache(
            norm1_cache, attention_cache, dropout1_cache, norm2_cache, feed_forward_cache, dropout2_cache
        )

    def backward(self, dy: Array, cache: BlockCache) -> Array:
        """Return dx, of shape (B, T, D)."""
        # y = x + h + f: a sum passes its gradient to all terms
        # f = dropout2(feed_forward(norm2(x)))
        df = self.dropout2.backward(dy, cache.dropout2)
        df = self.feed_forward.backward(df, cache.feed_forward)
        # h = dropout1(self_attention(norm1(x)))
        dh = self.dropout1.backward(dy, cache.dropout1)
        dh = self.self_attention.backward(dh, cache.self_attention)
        # x was used three times, so its three gradients are added
        return dy + self.norm1.backward(dh, cache.norm1) + self.norm2.backward(df, cache.norm2)

    def next_positions(self, x: Array, kv_cache: PreallocatedKVCache, mask: Array | None) -> Array:
        """Compute the output of the layer for the next T positions, as BlockDecoding.next_positions does.

        Args:
            x: The vectors of the tokens, of shape (B, T, D).
            kv_cache: The keys and values of the positions before.
            mask: The mask, or None if all queries may attend to all keys.
        """
        h, _ = self.self_attention.decode_step(self.norm1(x), kv_cache, mask)
        y: Array = x + h + self.feed_forward(self.norm2(x))
        return y


class GPTNeoX(GPT):
    """A GPT with the blocks of GPT-NeoX. Shapes: ids (B, T) integers -> logits (B, T, V).

    Args:
        config: The configuration.
        rng: The generator of the initial values.
        dtype: The dtype of the parameters.
    """

    config: GPTNeoXConfig

    def make_layers(self, rng: np.random.Generator, dtype: Any) -> list[Block]:
        """Return the layers."""
        c = self.config
        rotary = RotaryPositions(c.context, c.d_head, base=c.rotary_base, rotated=c.rotated, dtype=dtype)
        kind = ParallelBlock if c.parallel else Block
        return [kind(c, rotary, rng, dtype) for _ in range(c.n_layers)]
