"""Layers: parameters round the pure pairs. forward(x) -> (y, cache), backward(dy, cache) -> dx."""

from npformer.layers.batch_norm import BatchNorm
from npformer.layers.dropout import Dropout
from npformer.layers.embedding import Embedding, TiedProjection
from npformer.layers.feed_forward import FeedForward
from npformer.layers.input import InputEmbedding
from npformer.layers.linear import Linear
from npformer.layers.norm import LayerNorm
from npformer.layers.positions import FixedPositions, LearnedPositions
from npformer.layers.recurrent import BothWays, Recurrent
from npformer.layers.residual import Residual
from npformer.layers.sequence import SequenceResidual, check_sequence

__all__ = [
    "BatchNorm",
    "BothWays",
    "Dropout",
    "Embedding",
    "FeedForward",
    "FixedPositions",
    "InputEmbedding",
    "LayerNorm",
    "LearnedPositions",
    "Linear",
    "Recurrent",
    "Residual",
    "SequenceResidual",
    "TiedProjection",
    "check_sequence",
]
