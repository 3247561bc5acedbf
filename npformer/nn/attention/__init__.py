"""The attention layers."""

from npformer.nn.attention.bucketed import BucketedAttention
from npformer.nn.attention.capped import CappedAttention
from npformer.nn.attention.hard import HardAttention, HardAttentionCache, MovingBaseline
from npformer.nn.attention.kv_cache import KVCache, PreallocatedKVCache
from npformer.nn.attention.latent import LatentAttention, LatentAttentionCache
from npformer.nn.attention.luong import AttentionalState, GlobalAttention, LocalMonotonic, LocalPredictive
from npformer.nn.attention.multi_head import MultiHeadAttention, MultiHeadCache
from npformer.nn.attention.multi_head_latent import MultiHeadLatentAttention
from npformer.nn.attention.projections import Projection, ProjectionCache
from npformer.nn.attention.qk_norm import QKNormAttention
from npformer.nn.attention.relative import RelativeAttention
from npformer.nn.attention.similarity import (
    BasicSelfAttention,
    Similarity,
    SimilarityAttention,
    SimilarityAttentionCache,
)
from npformer.nn.attention.tutorial import TutorialAttention

__all__ = [
    "AttentionalState",
    "BasicSelfAttention",
    "BucketedAttention",
    "CappedAttention",
    "GlobalAttention",
    "HardAttention",
    "HardAttentionCache",
    "KVCache",
    "LatentAttention",
    "LatentAttentionCache",
    "LocalMonotonic",
    "LocalPredictive",
    "MovingBaseline",
    "MultiHeadAttention",
    "MultiHeadCache",
    "MultiHeadLatentAttention",
    "PreallocatedKVCache",
    "Projection",
    "ProjectionCache",
    "QKNormAttention",
    "RelativeAttention",
    "Similarity",
    "SimilarityAttention",
    "SimilarityAttentionCache",
    "TutorialAttention",
]
