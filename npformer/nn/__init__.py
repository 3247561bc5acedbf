"""Layers: objects that hold parameters and call the pure pairs of npformer.functional and npformer.kernels.

A layer has forward(x, ...) -> (y, cache), and backward(dy, cache), which adds to the gradients of its
parameters and returns the gradients of its inputs.
"""

from npformer.nn.attention import (
    AttentionalState,
    BasicSelfAttention,
    BucketedAttention,
    CappedAttention,
    GlobalAttention,
    HardAttention,
    KVCache,
    LatentAttention,
    LocalMonotonic,
    LocalPredictive,
    MovingBaseline,
    MultiHeadAttention,
    MultiHeadLatentAttention,
    PreallocatedKVCache,
    Projection,
    QKNormAttention,
    RelativeAttention,
    Similarity,
    SimilarityAttention,
)
from npformer.nn.context import AttentionMask, Context
from npformer.nn.dropout import Dropout
from npformer.nn.embedding import Embedding, InputEmbedding, TiedProjection
from npformer.nn.experts import MixtureOfExperts
from npformer.nn.feed_forward import FeedForward, GatedFeedForward
from npformer.nn.linear import Linear
from npformer.nn.lora import LoRALinear, add_lora, merge_lora
from npformer.nn.module import Module, Parameter
from npformer.nn.norm import AddNorm, BatchNorm, LayerNorm, RMSNorm
from npformer.nn.positions import FixedPositions, LearnedPositions, RotaryPositions
from npformer.nn.recurrent import Bidirectional, Recurrent

__all__ = [
    "AddNorm",
    "AttentionMask",
    "AttentionalState",
    "BasicSelfAttention",
    "BatchNorm",
    "Bidirectional",
    "BucketedAttention",
    "CappedAttention",
    "Context",
    "Dropout",
    "Embedding",
    "FeedForward",
    "FixedPositions",
    "GatedFeedForward",
    "GlobalAttention",
    "HardAttention",
    "InputEmbedding",
    "KVCache",
    "LatentAttention",
    "LayerNorm",
    "LearnedPositions",
    "Linear",
    "LoRALinear",
    "LocalMonotonic",
    "LocalPredictive",
    "MixtureOfExperts",
    "Module",
    "MovingBaseline",
    "MultiHeadAttention",
    "MultiHeadLatentAttention",
    "Parameter",
    "PreallocatedKVCache",
    "Projection",
    "QKNormAttention",
    "RMSNorm",
    "Recurrent",
    "RelativeAttention",
    "RotaryPositions",
    "Similarity",
    "SimilarityAttention",
    "TiedProjection",
    "add_lora",
    "merge_lora",
]
