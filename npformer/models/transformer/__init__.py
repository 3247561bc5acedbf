"""The encoder-decoder Transformer and its configurations."""

from npformer.models.transformer.config import ARCHITECTURES, TransformerConfig
from npformer.models.transformer.layers import DecoderLayer, EncoderLayer
from npformer.models.transformer.model import Transformer, TransformerCache, shifted_right
from npformer.models.transformer.pre_norm import PreNormDecoderLayer, PreNormEncoderLayer
from npformer.models.transformer.sequences import SequenceDecoderLayer, SequenceEncoderLayer
from npformer.models.transformer.stacks import (
    Decoder,
    Encoder,
    EncoderDecoder,
    make_decoder_layer,
    make_encoder_layer,
)

__all__ = [
    "ARCHITECTURES",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderDecoder",
    "EncoderLayer",
    "PreNormDecoderLayer",
    "PreNormEncoderLayer",
    "SequenceDecoderLayer",
    "SequenceEncoderLayer",
    "Transformer",
    "TransformerCache",
    "TransformerConfig",
    "make_decoder_layer",
    "make_encoder_layer",
    "shifted_right",
]
