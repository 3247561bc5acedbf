"""The encoder-decoder Transformer and its configurations."""

from npformer.models.transformer.config import ARCHITECTURES, TransformerConfig
from npformer.models.transformer.layers import DecoderLayer, EncoderLayer
from npformer.models.transformer.model import Transformer, TransformerCache, shifted_right
from npformer.models.transformer.stacks import Decoder, Encoder, EncoderDecoder

__all__ = [
    "ARCHITECTURES",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "Transformer",
    "TransformerCache",
    "TransformerConfig",
    "shifted_right",
]
