"""Attention as layers."""

from npformer.attention.any_similarity import SimilarityAttention, SimilarityAttentionCache
from npformer.attention.basic import BasicSelfAttention
from npformer.attention.hard import HardAttention, HardAttentionCache, MovingBaseline
from npformer.attention.latent import LatentAttention, LatentAttentionCache
from npformer.attention.luong import AttentionalState, GlobalAttention, LocalMonotonic, LocalPredictive
from npformer.attention.multi_head import KeysValues, MultiHeadAttention, MultiHeadCache
from npformer.attention.relative import RelativeAttention
from npformer.attention.similarity import Similarity

__all__ = [
    "AttentionalState",
    "BasicSelfAttention",
    "GlobalAttention",
    "HardAttention",
    "HardAttentionCache",
    "KeysValues",
    "LatentAttention",
    "LatentAttentionCache",
    "LocalMonotonic",
    "LocalPredictive",
    "MovingBaseline",
    "MultiHeadAttention",
    "MultiHeadCache",
    "RelativeAttention",
    "Similarity",
    "SimilarityAttention",
    "SimilarityAttentionCache",
]
