"""Context and AttentionMask: the settings and the masks of a forward pass, as models pass them to layers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from npformer.backend import Array
from npformer.errors import UserError
from npformer.functional.packing import Packing


@dataclass(frozen=True)
class Context:
    """The settings of one forward pass, which a model passes to its layers.

    Args:
        train: True turns dropout on. It has no other effect.
        rng: The generator for dropout.
    """

    train: bool = False
    rng: Any = None

    def dropout(self, p: float) -> float:
        """Return the dropout probability p during training, and 0 otherwise."""
        return p if self.train else 0.0


INFERENCE = Context()


@dataclass(frozen=True)
class AttentionMask:
    """The masks of attention, and the packing of its queries and keys.

    Args:
        allowed: Bool, broadcastable to the scores (B, H, T, S). True means that the query may attend to the
            key.
        queries: Bool, broadcastable to (B, H, T, 1). True at the queries that are not padding.
        packing: The packing of the queries, if their array has the packed shape (N, D). None for (B, T, D).
        key_packing: The packing of the keys of cross-attention, or None if they are not packed.
    """

    allowed: Array | None = None
    queries: Array | None = None
    packing: Packing | None = None
    key_packing: Packing | None = None

    @property
    def pairs(self) -> Array | None:
        """Bool, True if the query may attend to the key and is not padding. None stands for all True."""
        if self.queries is None:
            return self.allowed
        return self.queries if self.allowed is None else self.allowed & self.queries

    @staticmethod
    def of(mask: Array | AttentionMask | None, queries: Array | None = None) -> AttentionMask:
        """Return an AttentionMask. If mask is a bool array or None, it becomes `allowed` of a new one.

        Args:
            mask: Bool, broadcastable to the scores (B, H, T, S), or None, or an AttentionMask, which is
                returned unchanged.
            queries: The query mask of a new AttentionMask: bool, broadcastable to (B, H, T, 1), or None.

        Raises:
            UserError: If a mask has three axes. Its first axis would be that of the heads, which is rarely
                meant.
        """
        if isinstance(mask, AttentionMask):
            return mask
        for name, given, wanted in (("mask", mask, "(B, 1, T, S)"), ("query_mask", queries, "(B, 1, T, 1)")):
            if given is not None and getattr(given, "ndim", None) == 3:
                raise UserError(f"{name} has shape {given.shape} without an axis of heads: write {wanted}")
        return AttentionMask(mask, queries)


EVERYTHING = AttentionMask()  # every query may attend to every key
