"""Attention as layers."""

from npformer.attention.multi_head import KeysValues, MultiHeadAttention, MultiHeadCache

__all__ = ["KeysValues", "MultiHeadAttention", "MultiHeadCache"]
