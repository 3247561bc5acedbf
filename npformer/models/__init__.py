"""The models, and the registry that builds a model from its configuration."""

from npformer.models.recurrent import RecurrentConfig, RecurrentTranslator
from npformer.models.registry import ARCHITECTURES, architecture, build
from npformer.models.transformer import Transformer, TransformerConfig

__all__ = [
    "ARCHITECTURES",
    "RecurrentConfig",
    "RecurrentTranslator",
    "Transformer",
    "TransformerConfig",
    "architecture",
    "build",
]
