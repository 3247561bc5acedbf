"""Context and AttentionMask: the settings and the masks of a forward pass, which all layers receive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from npformer.backend import Array
from npformer.functional.packing import Packing


@dataclass(frozen=True)
class Context:
    """The settings of one forward pass that every layer receives.

    Args:
        train: True turns dropout on. It has no other effect.
        rng: The generator for dropout, or a seed (see seeded).
    """

    train: bool = False
    rng: Any = None

    def dropout(self, p: float) -> float:
        """Return the dropout probability p during training, and 0 otherwise."""
        return p if self.train else 0.0

    def seeded(self) -> Context:
        """Return a context with a new generator if `rng` is a seed, and this context otherwise.

        The gradient checker gives a seed, since every evaluation must draw the same numbers.
        """
        return Context(self.train, np.random.default_rng(self.rng)) if isinstance(self.rng, int) else self


INFERENCE = Context()


@dataclass(frozen=True)
class AttentionMask:
    """The masks of the queries and keys of attention, and their packing.

    Args:
        allowed: Bool, broadcastable to the scores (B, H, T, S). True means that the query may attend to the
            key.
        queries: Bool, broadcastable to (B, H, T, 1). True at the queries that are not padding.
        packing: The packing of the queries if they are rows (N, D). None for queries (B, T, D).
        key_packing: The packing of the keys, in cross-attention with packed keys.
    """

    allowed: Array | None = None
    queries: Array | None = None
    packing: Packing | None = None
    key_packing: Packing | None = None

    @staticmethod
    def of(mask: Array | AttentionMask | None, queries: Array | None = None) -> AttentionMask:
        """Return an AttentionMask unchanged, and put a bool array or None into a new one as `allowed`."""
        return mask if isinstance(mask, AttentionMask) else AttentionMask(mask, queries)


EVERYTHING = AttentionMask()  # every query may attend to every key
